"""A worker process: reads jobs from stdin, writes replies to stdout (`fetchers.frames`) until stdin ends.

`python -P -m adjudge.fetchers.worker EXTRACTOR ADDRESS_SPACE_BYTES`
"""

import gc
import os
import resource
import signal
import sys
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from lxml import etree

from adjudge.fetchers.extract import Unreadable, extract
from adjudge.fetchers.frames import LENGTH, Extractor, Job, Reply

__all__ = ["main"]

# Objects before a garbage collection: a page makes tens of thousands, of which hardly any are in cycles.
_NEW_OBJECTS = 50_000
# What parsers raise on broken input. Anything else ends the process, which is the outer boundary.
_PARSER_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    etree.LxmlError,
)


def main(extractor: Extractor, address_space: int) -> None:
    """Answer jobs until stdin ends. `address_space` is a limit in bytes."""
    # Out of Ctrl-C's reach; its own session would be scheduled apart from its parent's. Not every event loop can
    # start a process in a group of its own: uvloop, which Ray takes where it is installed, cannot.
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    _silence()
    decoder = msgspec.msgpack.Decoder(Job)
    encoder = msgspec.msgpack.Encoder()
    extract(b"<p>warm</p>", "text/html", extractor)
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    _send(sink, b"")
    while header := source.read(LENGTH.size):
        job = decoder.decode(source.read(LENGTH.unpack(header)[0]))
        # The parent kills a worker that is late; the alarm is for when the parent has died.
        signal.setitimer(signal.ITIMER_REAL, job.seconds + 1.0)
        reply = _answer(job, extractor)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        _send(sink, encoder.encode(reply))


def _answer(job: Job, extractor: Extractor) -> Reply:
    found, problem = None, ""
    try:
        found = extract(job.body, job.content_type, extractor)
    except Unreadable as error:
        problem = str(error)
    except _PARSER_ERRORS as error:
        problem = f"the parser gave up: {type(error).__name__}"
    return Reply(found, problem, _resident())


def _resident() -> int:
    """Bytes of memory held now. Linux's ru_maxrss counts what the parent held when it started this process."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
    except OSError:  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _send(sink: BinaryIO, payload: bytes) -> None:
    sink.write(LENGTH.pack(len(payload)))
    sink.write(payload)
    sink.flush()


def _silence() -> None:
    """Keep anything that a library prints out of the frames."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)


if __name__ == "__main__":
    main(cast(Extractor, sys.argv[1]), int(sys.argv[2]))
