"""What a server takes on: a bound on rollouts being scored and on bytes being read, refused before memory grows."""

from collections.abc import Iterator
from contextlib import contextmanager

from adjudge.engine.config.reward import ServerLimits

__all__ = ["Admission", "Overloaded"]


class Overloaded(RuntimeError):
    """More is at work than the limits admit."""


class Admission:
    """Counts what was admitted. `items` rollouts are being scored, `body_bytes` are held or promised.

    Whoever comes while less than the limit is at work is admitted whole, so that one large batch always can be.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self.items = 0
        self.body_bytes = 0
        self._limits = limits

    @contextmanager
    def body(self, size: int) -> Iterator[None]:
        """Hold `size` bytes of a body. Raises Overloaded."""
        if self.items >= self._limits.items or self.body_bytes + size > self._limits.bytes:
            raise Overloaded("more is being scored than this server admits")
        self.body_bytes += size
        try:
            yield
        finally:
            self.body_bytes -= size

    @contextmanager
    def rollouts(self, count: int) -> Iterator[None]:
        """Score `count` rollouts. Raises Overloaded."""
        if self.items >= self._limits.items:
            raise Overloaded("more is being scored than this server admits")
        self.items += count
        try:
            yield
        finally:
            self.items -= count
