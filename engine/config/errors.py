"""`ConfigError`, which every unusable setting raises."""

from adjudge.engine.errors import UsageError

__all__ = ["ConfigError"]


class ConfigError(UsageError):
    """A configuration cannot be used: the key or place, the problem, and what to do, in one line."""
