"""Dr.Mi-Bench: planning, retrieval and reasoning over the literature."""
