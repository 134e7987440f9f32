"""Limits on the rollouts being scored and the bytes being read: what exceeds them is refused before memory grows."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from adjudge.engine.config.reward import ServerLimits

__all__ = ["Admission", "Overloaded"]


ARRIVING = min(512, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)  # bodies that are read at once


class Overloaded(RuntimeError):
    """The server is at its limits."""


class Admission:
    """Counts what was admitted: `items` rollouts are being scored, `body_bytes` bytes are held or announced.

    A request that comes while fewer than the limit are being scored is admitted whole, so that a large batch can be.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self.items = 0
        self.body_bytes = 0
        self._arriving = 0
        self._limits = limits

    @contextmanager
    def body(self, size: int) -> Iterator[None]:
        """Hold `size` bytes of a body. Raises Overloaded."""
        if self.items >= self._limits.items or self.body_bytes + size > self._limits.bytes:
            raise Overloaded("the server is at its limits; try again later")
        self.body_bytes += size
        try:
            yield
        finally:
            self.body_bytes -= size

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """Read a body. Raises Overloaded: each that arrives slowly holds a connection."""
        if self._arriving >= ARRIVING:
            raise Overloaded("too many requests are being sent at once; try again later")
        self._arriving += 1
        try:
            yield
        finally:
            self._arriving -= 1

    @contextmanager
    def rollouts(self, count: int) -> Iterator[None]:
        """Score `count` rollouts. Raises Overloaded."""
        if self.items >= self._limits.items:
            raise Overloaded("the server is at its limits; try again later")
        self.items += count
        try:
            yield
        finally:
            self.items -= count
