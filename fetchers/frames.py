"""What passes between a fetcher and its worker processes.

A frame is a big-endian 32-bit length and that much msgpack. Nothing that arrives is ever unpickled or run, in
either direction. A worker's first frame is empty: its imports are done, so no page's clock pays for them.
"""

import struct
from typing import Literal

import msgspec

__all__ = ["LENGTH", "Extraction", "Extractor", "Job", "Reply"]

Extractor = Literal["trafilatura", "fast"]

LENGTH = struct.Struct(">I")


class Extraction(msgspec.Struct, frozen=True, array_like=True):
    """What a body says, in plain text."""

    title: str
    description: str
    text: str


class Job(msgspec.Struct, frozen=True, array_like=True):
    """A body to be read, with its Content-Type header, for at most `seconds`."""

    body: bytes
    content_type: str
    seconds: float


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """What was found, or why nothing was. `resident` is the memory that the worker holds, in bytes."""

    found: Extraction | None
    problem: str
    resident: int
