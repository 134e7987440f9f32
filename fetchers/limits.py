"""The limits of a fetcher: small values with their units."""

import os
from math import inf

import msgspec

from adjudge.fetchers.process import Extractor


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds on what is done at once and on what one page may cost."""

    in_flight: int = 64
    """Pages between their first byte and their text, over all hosts."""
    per_host: int = 4
    """Requests to one site at once; "www." and the bare name are one site."""
    delay: float = 0.0
    """Seconds between two requests to one site, counted from when they are sent."""
    max_bytes: int = 10 << 20
    """Of a body, both as it travels and after its encoding is undone."""
    max_pdf_bytes: int = 50 << 20
    """Of a PDF, if that is more than `max_bytes`. Few that are so large are read at once."""
    redirects: int = 20
    """Most redirects of one page; as many as browsers follow."""
    retries: int = 2
    """After the first attempt, and only for failures that may pass."""
    workers: int | None = None
    """Extraction processes; None: one per core that this process may use, and for "fast" one more, which fills the
    gaps between such short pieces of work."""

    def __post_init__(self) -> None:
        for name in ("in_flight", "per_host", "max_bytes", "max_pdf_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("delay", "redirects", "retries"):
            if not 0 <= getattr(self, name) < inf:
                raise ValueError(f"{name} must be finite and not negative")
        if self.workers is not None and self.workers < 1:
            raise ValueError("workers must be at least 1")

    def most(self, kind: str | None) -> int:
        """How many bytes a body of this kind may have."""
        return max(self.max_bytes, self.max_pdf_bytes) if kind == "pdf" else self.max_bytes

    def processes(self, extractor: Extractor) -> int:
        """How many extraction processes `workers` stands for."""
        if self.workers is not None:
            return self.workers
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cores + (extractor == "fast")


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds. None of them counts time spent waiting for a turn."""

    connect: float = 10.0
    """For the name, the connection and the TLS handshake of one request."""
    read: float = 15.0
    """Between two pieces of a response."""
    total: float = 60.0
    """For the whole page on the network: every redirect and retry together."""
    extract: float = 20.0
    """For reading the body, in a worker process."""

    def __post_init__(self) -> None:
        for name in ("connect", "read", "total", "extract"):
            if not 0 < getattr(self, name) < inf:
                raise ValueError(f"{name} must be positive and finite")


PATIENCE_S = 60.0
"""Seconds for which a page that its site refuses for its load (429, or 503 with a Retry-After) is asked for again,
slower each time, and the longest wait that it may ask for (Retry-After). A site that refuses everything for so long is
given up. Not without `retries`."""
DEFAULT_LIMITS = Limits()
DEFAULT_TIMEOUTS = Timeouts()
