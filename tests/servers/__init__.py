"""Servers that tests and benchmarks talk to."""
