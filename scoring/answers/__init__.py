"""What protocols share about answers: sameness, overlap and partial scores."""
