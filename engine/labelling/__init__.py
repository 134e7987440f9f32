"""Verdicts for people to label: which, what is shown of each, a local page, and a table to fill in."""
