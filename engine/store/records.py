"""The records of a part: its rows one by one, so that a look-up reads some kilobytes and decodes one row.

A frame is the records of a few rows: the bytes of each, then each row's values in the order of the columns as
MessagePack, all of it compressed. A directory has the place and a CRC-32 of each frame. Other readers pass over both:
the columns hold the same rows.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from adjudge.engine.store.kinds import R, TableKind
from adjudge.engine.store.place import StoredFile, damaged

__all__ = ["Block", "Frames", "Records", "directory_bytes", "framed", "listed", "record_of"]

_ENTRY = np.dtype([("at", "<u8"), ("size", "<u4"), ("whole", "<u4"), ("sum", "<u4")])
_SUM = struct.Struct("<I")
_CODEC = pa.Codec(
    "snappy"
)  # its frames are a third larger than those of zstd, and read in a quarter of the time
_encoder = msgspec.msgpack.Encoder()


def directory_bytes(rows: int, frame: int) -> int:
    """The bytes of the directory of `rows` rows, `frame` to a frame."""
    return -(-rows // max(1, frame)) * _ENTRY.itemsize + _SUM.size


def record_of(row: object) -> bytes:
    """The record of `row`: a struct that is encoded as an array, or its values. Raises what msgspec raises."""
    return _encoder.encode(row)


class Frames:
    """The frames of rows as they come, `frame` rows to each. A frame is compressed as soon as it is full."""

    def __init__(self, frame: int) -> None:
        self._frame = frame
        self._full: list[tuple[bytes, int]] = []  # compressed, and how many bytes it was
        self._last: list[bytes] = []

    def add(self, record: bytes) -> None:
        """Add the `record` of the next row."""
        self._last.append(record)
        if len(self._last) == self._frame:
            self._full.append(_compressed(self._last))
            self._last = []

    def pieces(self, at: int) -> list[bytes]:
        """The frames, to be written at the offset `at`, and then their directory."""
        frames, entries = [], []
        for found, whole in [*self._full, _compressed(self._last)] if self._last else self._full:
            frames.append(found)
            entries.append((at, len(found), whole, zlib.crc32(found)))
            at += len(found)
        directory = np.array(entries, _ENTRY).tobytes()
        return [*frames, directory, _SUM.pack(zlib.crc32(directory))]


def _compressed(records: list[bytes]) -> tuple[bytes, int]:
    whole = struct.pack(f"<{len(records)}I", *map(len, records)) + b"".join(records)
    return _CODEC.compress(whole, asbytes=True), len(whole)


def framed(table: pa.Table, frame: int) -> Frames:
    """The frames of `table`."""
    frames = Frames(frame)
    for values in zip(*map(listed, table.columns), strict=True):
        frames.add(record_of(values))
    return frames


class Block(Generic[R]):
    """The rows of one or more frames of the part at `where`, each decoded when it is asked for.

    `frames` are uncompressed, of `frame` rows each but the last, `count` rows in all; a row is made by `row` of its
    values. Raises DamagedPart.
    """

    def __init__(
        self, where: str, frames: Sequence[bytes], frame: int, count: int, row: Callable[[list[Any]], R]
    ) -> None:
        self._where = where
        self._frames = frames
        self._frame = frame
        self._count = count
        self._row = row

    def __len__(self) -> int:
        """How many rows it has."""
        return self._count

    def __iter__(self) -> Iterator[R]:
        """All rows, in order. Raises DamagedPart."""
        return map(self.__getitem__, range(self._count))

    def __getitem__(self, at: int) -> R:
        """The row at `at`. Raises DamagedPart."""
        number, place = divmod(at, self._frame)
        whole = self._frames[number]
        count = min(self._frame, self._count - number * self._frame)
        try:
            lengths = struct.unpack_from(f"<{count}I", whole)
            start = 4 * count + sum(lengths[:place])
            return self._row(msgspec.msgpack.decode(whole[start : start + lengths[place]], type=list))
        except (msgspec.MsgspecError, struct.error, TypeError, ValueError) as error:
            raise damaged(self._where, f"a record cannot be read: {error}") from error


class Records:
    """Where the frames of a part are: `rows` rows, `frame` to each, with values of the `names`."""

    def __init__(self, names: Sequence[str], rows: int, frame: int, entries: npt.NDArray[Any]) -> None:
        self.frame = frame
        self._names = tuple(names)
        self._rows = rows
        self._entries = entries

    @classmethod
    def of(cls, where: str, names: Sequence[str], rows: int, frame: int, directory: bytes) -> "Records":
        """Those of the part at `where`, which has that `directory`. Raises DamagedPart."""
        entries = directory[: -_SUM.size]
        if frame < 1 or directory[-_SUM.size :] != _SUM.pack(zlib.crc32(entries)):
            raise damaged(where, "its check sums do not match")
        return cls(names, rows, frame, np.frombuffer(entries, _ENTRY))

    def __len__(self) -> int:
        """How many frames there are."""
        return len(self._entries)

    def read(self, file: StoredFile, first: int, count: int, kind: TableKind[R]) -> Block[R]:
        """The rows of `count` frames from the frame `first` on, or of as many as there are, read from `file` at once.

        Raises StoreError if they are damaged.
        """
        entries = self._entries[first : first + count].tolist()
        start = entries[0][0]
        data = memoryview(file.read(start, entries[-1][0] + entries[-1][1] - start))
        frames = []
        for at, size, whole, total in entries:
            found = data[at - start : at - start + size]
            if zlib.crc32(found) != total:
                raise damaged(file.where, "its check sums do not match")
            try:
                frames.append(_CODEC.decompress(found, whole, asbytes=True))
            except (OSError, pa.ArrowException, ValueError) as error:
                raise damaged(file.where, str(error)) from error
        rows = min(count * self.frame, self._rows - first * self.frame)
        return Block(file.where, frames, self.frame, rows, self._maker(kind))

    def _maker(self, kind: TableKind[R]) -> Callable[[list[Any]], R]:
        """What makes a row of its values; columns that this version lacks are left out, and others take defaults."""
        if self._names == kind.columns:
            return lambda values: kind.row(*values)
        return lambda values: kind.row(
            **{name: value for name, value in zip(self._names, values, strict=True) if name in kind.columns}
        )


def listed(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values; times are integers in their unit. What is not plain takes pyarrow longer, so it is cast first."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values: list[Any] = column.to_pylist()
    return values
