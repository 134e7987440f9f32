"""What protocols share about answers: sameness, preferences and partial scores."""
