"""Keeps what functions make of recent texts: reports, pages and criteria are read by several protocols.

Calls from several threads are safe; two that bring the same text at once may both read it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

__all__ = ["Remembered", "remembered"]

P = ParamSpec("P")
R = TypeVar("R")


class Remembered(Protocol[P, R]):
    """A function of a text that keeps its results; `__wrapped__` does not."""

    __wrapped__: Callable[Concatenate[str, P], R]

    def __call__(self, text: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result for `text`."""
        ...


def remembered(characters: int) -> Callable[[Callable[Concatenate[str, P], R]], Remembered[P, R]]:
    """Keep what a function makes of its last texts: of at most `characters` together, and of none above a quarter."""

    def wrap(function: Callable[Concatenate[str, P], R]) -> Remembered[P, R]:
        kept: OrderedDict[Hashable, tuple[str, R]] = OrderedDict()
        lock = Lock()
        held = 0

        @wraps(function)
        def call(text: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
            nonlocal held
            key = (text, args, tuple(kwargs.items()))
            with lock:
                if key in kept:
                    kept.move_to_end(key)
                    return kept[key][1]
            made = function(text, *args, **kwargs)
            with lock:
                if key not in kept and len(text) * 4 <= characters:
                    kept[key] = text, made
                    held += len(text)
                while held > characters:
                    _, (oldest, _) = kept.popitem(last=False)
                    held -= len(oldest)
            return made

        return call

    return wrap
