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

    An import may drop an exception or turn it into another one, and the command would go on.
    Nothing changes where somebody else minds interrupts.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        if is_main and signal.getsignal(signal.SIGINT) is end:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def end(number: int, frame: FrameType | None) -> None:
    """The handler of a signal that ends the process with 130 at once."""
    os._exit(INTERRUPTED)
