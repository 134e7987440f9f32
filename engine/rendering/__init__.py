"""A leaderboard as a page, as Markdown and as tables."""
