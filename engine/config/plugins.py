"""What packages from outside register under our entry points: their code runs here first, and may be broken."""

from collections.abc import Callable
from typing import Any

from adjudge.engine.config.errors import ConfigError
from adjudge.engine.errors import unloadable

__all__ = ["plugin"]


def plugin(key: str, name: str, load: Callable[[], Any]) -> Any:
    """What `load` gives for the entry `name` of the key `key`. Raises ConfigError if its package cannot be imported."""
    try:
        return load()
    except Exception as error:  # importing runs code that is not ours
        raise ConfigError(unloadable(key, name, error)) from error
