"""What a run does: which cases, in which order, when it stops, and what it may spend."""
