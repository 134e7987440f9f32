"""Rewards over HTTP."""
