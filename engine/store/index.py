"""The key index: sorted arrays of a key's first 64 bits and its row's location, 16 bytes a row, behind a filter."""

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["KeyIndex", "Locations", "Prefixes", "prefixes", "prefixes_of"]

_GROWTH = 8  # each run is at least this many times as long as the next, so a million rows make two or three
_AT_ONCE = 1 << 16  # rows that a filter takes at a time: what it makes of them is five times as long

Prefixes = npt.NDArray[np.uint64]
Locations = npt.NDArray[np.uint64]


class _Filter:
    """Which keys may have one of some prefixes: those for which the bit that their own first bits number is set.

    For `rows` prefixes it has 16 to 32 bits each, so that at most one absent key in 16 is taken for one that may be
    there. A search takes longer, and lets go of the interpreter's lock, which other threads then take.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._shift = max(0, 32 - max(3, (16 * rows - 1).bit_length()))
        self._bits = np.zeros(1 << (32 - self._shift - 3), np.uint8)
        self._bytes = memoryview(self._bits.data)

    def add(self, prefix: Prefixes) -> None:
        """Add prefixes, sorted."""
        for start in range(0, len(prefix), _AT_ONCE):
            place = (prefix[start : start + _AT_ONCE] >> np.uint64(32 + self._shift)).astype(np.int64)
            byte, bit = place >> 3, np.left_shift(1, place & 7).astype(np.uint8)
            first = np.flatnonzero(np.diff(byte, prepend=-1))
            self._bits[byte[first]] |= np.bitwise_or.reduceat(bit, first)

    def likely(self, keys: Sequence[bytes]) -> list[int]:
        """The places of those `keys` that may be there."""
        found, bits, shift = [], self._bytes, self._shift
        for at, key in enumerate(keys):
            place = int.from_bytes(key[:4], "big") >> shift
            if bits[place >> 3] >> (place & 7) & 1:
                found.append(at)
        return found


class KeyIndex:
    """Rows by key prefix. Of equal prefixes the earliest added comes first.

    Sorted runs, the longest first. Rows may be added from any thread: a concurrent look-up sees all of them or none.
    """

    def __init__(self) -> None:
        self._runs: tuple[tuple[Prefixes, Locations], ...] = ()
        self._filter = _Filter(1)
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
            self._widen(len(self) + len(prefix), run[0])
            while runs and len(runs[-1][0]) < _GROWTH * len(run[0]):
                *longer, last = runs
                runs, run = tuple(longer), _merged(last, run)
            self._runs = (*runs, run)

    def _widen(self, rows: int, prefix: Prefixes) -> None:
        """Have the filter let `prefix` through, of `rows` in all."""
        if rows <= self._filter.rows:
            self._filter.add(prefix)
            return
        wider = _Filter(2 * rows)
        for known in (prefix, *(prefix for prefix, _ in self._runs)):
            wider.add(known)
        self._filter = wider

    def find(self, keys: Sequence[bytes]) -> list[list[tuple[int, int]]]:
        """For each of the 16-byte `keys`, (part, row) of every row whose prefix matches, earliest added first."""
        found: list[list[tuple[int, int]]] = [[] for _ in keys]
        likely = self._filter.likely(keys) if self._runs else []
        if not likely:
            return found
        wanted = prefixes_of(b"".join([keys[at] for at in likely]))
        for prefix, location in self._runs:
            starts, ends = prefix.searchsorted(wanted), prefix.searchsorted(wanted, "right")
            for places, start, end in zip(
                [found[at] for at in likely], starts.tolist(), ends.tolist(), strict=True
            ):
                if start < end:
                    places += [(packed >> 32, packed & 0xFFFFFFFF) for packed in location[start:end].tolist()]
        return found

    def lacking(self, keys: bytes) -> list[int]:
        """The places of those `keys`, 16 bytes after 16 bytes, that have no row."""
        wanted = prefixes_of(keys)
        lacks = np.ones(len(wanted), bool)
        for prefix, _ in self._runs:
            at = np.minimum(prefix.searchsorted(wanted), len(prefix) - 1)
            lacks &= prefix[at] != wanted
        return np.flatnonzero(lacks).tolist()


def _merged(
    first: tuple[Prefixes, Locations], then: tuple[Prefixes, Locations]
) -> tuple[Prefixes, Locations]:
    """Both runs as one; of equal prefixes those of `first` come first."""
    at = first[0].searchsorted(then[0], "right")
    prefix, location = (np.insert(old, at, new) for old, new in zip(first, then, strict=True))
    return prefix, location


def prefixes(keys: pa.ChunkedArray) -> Prefixes:
    """The first 64 bits of 16-byte keys, as uint64[n]."""
    if len(keys) == 0:
        return np.empty(0, np.uint64)
    flat = keys.combine_chunks()
    if isinstance(flat, pa.ChunkedArray):
        flat = pa.concat_arrays(flat.chunks)
    return prefixes_of(flat.buffers()[1])[flat.offset : flat.offset + len(flat)]


def prefixes_of(keys: "bytes | pa.Buffer") -> Prefixes:
    """The first 64 bits of each of `keys`, 16 bytes after 16 bytes, as uint64[n]."""
    return np.frombuffer(keys, ">u8")[::2].astype(np.uint64)
