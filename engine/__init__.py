"""Runs evaluations and rewards: command line, configuration, formats, store, leaderboard, reward server."""
