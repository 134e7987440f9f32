"""Correlations, reliability, variance components and agreement with people."""
