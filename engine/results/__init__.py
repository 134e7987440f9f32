"""Recorded results of published benchmarks: their files read as scorecards, and scorecards written as their files."""
