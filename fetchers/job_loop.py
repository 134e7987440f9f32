"""The inside of a worker process: it answers jobs from stdin until stdin ends (`fetchers/frames.py`)."""

import gc
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import BinaryIO

from adjudge.fetchers.frames import LENGTH

__all__ = ["answer_jobs", "at_most", "resident"]

# Until a garbage collection: a page makes tens of thousands, of which hardly any are in cycles.
_NEW_OBJECTS = 50_000


def answer_jobs(answer: Callable[[bytes], bytes], address_space: int, warm: Callable[[], object]) -> None:
    """Call `warm`, report ready, then `answer` each job until stdin ends. `address_space` is a limit in bytes."""
    # Out of Ctrl-C's reach; a session of its own would be scheduled apart from its parent's. Not every event loop can
    # start a process in a group of its own: uvloop, which Ray takes where it is installed, cannot.
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    _silence()
    warm()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    _send(sink, b"")
    while header := source.read(LENGTH.size):
        _send(sink, answer(source.read(LENGTH.unpack(header)[0])))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End the process after `seconds`. The parent kills a late worker sooner; this is for when it has no parent."""
    signal.setitimer(signal.ITIMER_REAL, seconds + 1.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def resident() -> int:
    """Bytes of memory held now. Linux's ru_maxrss counts what the parent held when it started this process."""
    file = _memory()
    if file is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(os.pread(file, 100, 0).split()[1]) * resource.getpagesize()


@cache
def _memory() -> int | None:
    """The open file that says how much memory this process holds; None if this is not Linux."""
    try:
        return os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return None


def _send(sink: BinaryIO, payload: bytes) -> None:
    sink.write(LENGTH.pack(len(payload)))
    sink.write(payload)
    sink.flush()


def _silence() -> None:
    """Nothing a library prints may end up between two frames."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
