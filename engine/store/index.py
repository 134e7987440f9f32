"""The key index: sorted arrays of a key's first 64 bits and its row's location, 16 bytes a row."""

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["KeyIndex", "Locations", "Prefixes", "prefixes"]

_GROWTH = 8  # each run is at least this many times as long as the next, so a million rows make two or three

Prefixes = npt.NDArray[np.uint64]
Locations = npt.NDArray[np.uint64]


class KeyIndex:
    """Rows by key prefix. Of equal prefixes the earliest added comes first.

    Sorted runs, the longest first. Rows may be added from any thread: a concurrent look-up sees all of them or none.
    """

    def __init__(self) -> None:
        self._runs: tuple[tuple[Prefixes, Locations], ...] = ()
        self._adding = threading.Lock()

    def __len__(self) -> int:
        """Rows indexed."""
        return sum(len(prefix) for prefix, _ in self._runs)

    def add(self, prefix: Prefixes, part: Locations, row: Locations) -> None:
        """Add rows, in order of precedence: `prefix` uint64[n], the part's number and the row in it uint64[n]."""
        if not len(prefix):
            return
        order = np.argsort(prefix, kind="stable")
        run = prefix[order], (part[order] << np.uint64(32)) | row[order]
        with self._adding:
            runs = self._runs
            while runs and len(runs[-1][0]) < _GROWTH * len(run[0]):
                *longer, last = runs
                runs, run = tuple(longer), _merged(last, run)
            self._runs = (*runs, run)

    def find(self, keys: Sequence[bytes]) -> list[list[tuple[int, int]]]:
        """For each of the 16-byte `keys`, (part, row) of every row whose prefix matches, earliest added first."""
        found: list[list[tuple[int, int]]] = [[] for _ in keys]
        wanted = np.frombuffer(b"".join(keys), ">u8")[::2].astype(np.uint64)
        for prefix, location in self._runs:
            starts, ends = prefix.searchsorted(wanted), prefix.searchsorted(wanted, "right")
            for places, start, end in zip(found, starts.tolist(), ends.tolist(), strict=True):
                if start < end:
                    places += [(packed >> 32, packed & 0xFFFFFFFF) for packed in location[start:end].tolist()]
        return found

    def lacking(self, keys: bytes) -> list[int]:
        """The places of those `keys`, 16 bytes after 16 bytes, that have no row."""
        wanted = np.frombuffer(keys, ">u8")[::2].astype(np.uint64)
        lacks = np.ones(len(wanted), bool)
        for prefix, _ in self._runs:
            at = np.minimum(prefix.searchsorted(wanted), len(prefix) - 1)
            lacks &= prefix[at] != wanted
        return np.flatnonzero(lacks).tolist()


def _merged(
    first: tuple[Prefixes, Locations], then: tuple[Prefixes, Locations]
) -> tuple[Prefixes, Locations]:
    """Both runs as one; of equal prefixes those of `first` come first."""
    prefix, location = map(np.concatenate, zip(first, then, strict=True))
    order = np.argsort(prefix, kind="stable")
    return prefix[order], location[order]


def prefixes(keys: pa.ChunkedArray) -> Prefixes:
    """The first 64 bits of 16-byte keys, as uint64[n]."""
    if len(keys) == 0:
        return np.empty(0, np.uint64)
    flat = keys.combine_chunks()
    if isinstance(flat, pa.ChunkedArray):
        flat = pa.concat_arrays(flat.chunks)
    words = np.frombuffer(flat.buffers()[1], dtype=">u8").reshape(-1, 2)
    return words[flat.offset : flat.offset + len(flat), 0].astype(np.uint64)
