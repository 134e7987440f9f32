"""Compares two systems' reports on one task."""
