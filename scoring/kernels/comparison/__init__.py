"""Paired tests, sequences that stop early, corrections by labels, preferences, strengths and frontiers."""
