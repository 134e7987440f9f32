"""Exit codes, and how a signal ends a command."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

DONE, FAILED, USAGE, INCOMPLETE, REGRESSED, INTERRUPTED = 0, 1, 2, 3, 4, 130
SAME_S = 1.0  # a terminal and a parent process may both pass on one Ctrl-C


@contextmanager
def beginning() -> Iterator[None]:
    """Inside the block an interrupt ends the process with 130 at once; after it, an interrupt is an exception again.

    An import may drop an exception or turn it into another one, and the command would go on. The request to end,
    SIGTERM, is an interrupt too where `main` of the installed command minds it: there the exception comes once, so that
    what cleans up is not interrupted by the same Ctrl-C. Nothing changes where somebody else minds a signal.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        found = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
        before = {one: handler for one, handler in found.items() if handler in _OURS}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        once = _Once()
        for number, handler in before.items():
            if signal.getsignal(number) is end:
                signal.signal(number, once if handler is end else handler)


def end(number: int, frame: FrameType | None) -> None:
    """The handler of a signal that ends the process with 130 at once."""
    os._exit(INTERRUPTED)


_OURS = (signal.default_int_handler, end)


class _Once:
    """The handler of a signal that raises KeyboardInterrupt once. Another signal, SAME_S later, ends the process."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since = now
            raise KeyboardInterrupt
        if now - self._since > SAME_S:
            end(number, frame)
