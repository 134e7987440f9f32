"""What a run is to do: which cases, in which order, when it stops, and what it may spend."""
