"""Checks the arithmetic of every protocol against case files with expected numbers."""
