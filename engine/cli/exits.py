"""Exit codes, and how a process ends that is interrupted before its command has begun."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["DONE", "FAILED", "INCOMPLETE", "INTERRUPTED", "REGRESSED", "USAGE", "beginning", "end_at_once"]

DONE, FAILED, USAGE, INCOMPLETE, REGRESSED, INTERRUPTED = 0, 1, 2, 3, 4, 130


def end_at_once() -> None:
    """From now on an interrupt ends the process with 130 at once, unless somebody minds it already.

    As an exception it may be lost in an import, which drops it or turns it into another one, and the command goes on.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def beginning() -> Iterator[None]:
    """`end_at_once` inside the block; behind it an interrupt is an exception again."""
    end_at_once()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
