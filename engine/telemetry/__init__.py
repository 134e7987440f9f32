"""Metrics, the endpoint that serves them, and logs."""
