"""An event loop whose clock jumps to the next timer: hours of waiting are tested at once and exactly."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its `time()` starts at 0 and advances only when nothing else is left to do. No files, no sockets."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if timeout is None and not found:
            raise RuntimeError("nothing will ever happen: a task waits for what nobody does")
        if not found:
            self._loop.now += timeout or 0
        return found


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
