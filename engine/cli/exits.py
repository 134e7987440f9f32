"""Exit codes, and how a process ends that is interrupted before its command has begun."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

DONE, FAILED, USAGE, INCOMPLETE, REGRESSED, INTERRUPTED = 0, 1, 2, 3, 4, 130


@contextmanager
def beginning() -> Iterator[None]:
    """Inside the block an interrupt ends the process with 130 at once; after it, an interrupt is an exception again.

    An import may drop an exception or turn it into another one, and the command would go on. The request to end,
    SIGTERM, is an interrupt too where `main` of the installed command minds it. Nothing changes where somebody else
    minds a signal.
    """
    minded = []
    if threading.current_thread() is threading.main_thread():
        minded = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) in _OURS]
    for number in minded:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in minded:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.default_int_handler)


def end(number: int, frame: FrameType | None) -> None:
    """The handler of a signal that ends the process with 130 at once."""
    os._exit(INTERRUPTED)


_OURS = (signal.default_int_handler, end)
