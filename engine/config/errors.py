"""What is wrong with a configuration."""

from adjudge.engine.errors import UsageError

__all__ = ["ConfigError"]


class ConfigError(UsageError):
    """A configuration cannot be used: the key or place, the problem, and what to do, in one line."""
