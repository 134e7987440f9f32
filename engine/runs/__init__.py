"""A run: its record, its scores and items, and its leaderboard as data."""
