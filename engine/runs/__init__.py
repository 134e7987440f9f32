"""A run: what it is to do, its record, its scores and items, and its leaderboard as data."""
