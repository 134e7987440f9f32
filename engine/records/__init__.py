"""What a run leaves behind, and how its score rows are read."""
