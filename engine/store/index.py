"""The key index: sorted arrays of a key's first 64 bits and its row's location, 16 bytes a row."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["KeyIndex", "Locations", "Prefixes", "prefixes"]

_MAX_RUNS = 16

Prefixes = npt.NDArray[np.uint64]
Locations = npt.NDArray[np.uint64]


class KeyIndex:
    """Rows by key prefix. Of equal prefixes the earliest added comes first."""

    def __init__(self) -> None:
        self._runs: list[tuple[Prefixes, Locations]] = []

    def __len__(self) -> int:
        """Rows indexed."""
        return sum(len(prefix) for prefix, _ in self._runs)

    def add(self, prefix: Prefixes, part: Locations, row: Locations) -> None:
        """Add rows, in order of precedence: `prefix` uint64[n], the part's number and the row in it uint64[n]."""
        order = np.argsort(prefix, kind="stable")
        self._runs.append((prefix[order], (part[order] << np.uint64(32)) | row[order]))
        if len(self._runs) > _MAX_RUNS:
            self._merge()

    def find(self, key: bytes) -> Iterator[tuple[int, int]]:
        """(part, row) of every row whose key may be `key`, earliest added first."""
        wanted = np.uint64(int.from_bytes(key[:8], "big"))
        for prefix, location in self._runs:
            start = int(prefix.searchsorted(wanted))
            while start < len(prefix) and prefix[start] == wanted:
                packed = int(location[start])
                yield packed >> 32, packed & 0xFFFFFFFF
                start += 1

    def _merge(self) -> None:
        prefix = np.concatenate([prefix for prefix, _ in self._runs])
        location = np.concatenate([location for _, location in self._runs])
        order = np.argsort(prefix, kind="stable")
        self._runs = [(prefix[order], location[order])]


def prefixes(keys: pa.ChunkedArray) -> Prefixes:
    """The first 64 bits of 16-byte keys, as uint64[n]."""
    if len(keys) == 0:
        return np.empty(0, np.uint64)
    flat = keys.combine_chunks()
    if isinstance(flat, pa.ChunkedArray):
        flat = pa.concat_arrays(flat.chunks)
    words = np.frombuffer(flat.buffers()[1], dtype=">u8").reshape(-1, 2)
    return words[flat.offset : flat.offset + len(flat), 0].astype(np.uint64)
