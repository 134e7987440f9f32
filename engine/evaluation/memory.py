"""A process's memory, tuned for thousands of waiting questions and for many threads that write."""

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# New objects until a collection: questions in flight hold tens of thousands, and arrive in bursts.
YOUNG = 200_000
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of glibc's mallopt
_LARGE = 1 << 20  # bytes; what is as large goes back to the system when it is freed

ONE_HEAP = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(_LARGE),
    "MIMALLOC_PURGE_DELAY": "0",
}
"""The environment of a process that is to begin with what `share_heap` sets."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely inside the block; else half of a run's CPU time goes into collections that free nothing."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def share_heap() -> None:
    """Let all threads of this process have one heap, and Arrow give back at once what it frees.

    Else each thread that writes a part keeps what that took: a fifth of the memory of a long run. It has its full
    effect before threads begin and Arrow is imported. Only for processes that are ours alone; does nothing where the C
    library is not glibc.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "0")
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)


def give_back() -> None:
    """Give the system what this process has freed and still holds, in some milliseconds; with glibc alone."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
