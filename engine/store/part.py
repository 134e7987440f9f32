"""One part: an immutable Parquet file whose bytes are checked on every read.

Each kind of table has a struct for its rows; the struct's fields, annotated with Arrow types, are the columns.

Between its row groups and its footer a part holds data that other Parquet readers skip: since schema 4, the records of
its rows, if the kind has them; a CRC-32 of every column of every row group; and a CRC-32 of these together with the
footer. Parts of schemas 1 and 2 have no checksums and are read unchecked.

Records allow a lookup to read a few kilobytes and decode one row. A frame holds a few rows: the length of each, then
each row's values in column order as MessagePack, compressed together. A directory gives the position and the CRC-32 of
every frame. The columns hold the same rows.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Annotated, Any, Generic, Protocol, TypeVar, get_type_hints

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.errors import StoreError
from adjudge.engine.store.place import Bytes, DamagedPart, Place, StoredFile, damaged

__all__ = [
    "NAMES",
    "SCHEMA_VERSION",
    "Block",
    "Frames",
    "Integer",
    "Key",
    "Name",
    "Part",
    "R",
    "Records",
    "TableKind",
    "Text",
    "Time",
    "current",
    "encoded",
    "framed",
    "listed",
    "record_of",
    "schema_of",
    "stamped",
    "write_part",
]

NAMES = pa.dictionary(pa.int32(), pa.string())  # for columns of few different values

Key = Annotated[bytes, pa.binary(16)]
Name = Annotated[str, NAMES]
Text = Annotated[str, pa.string()]
Integer = Annotated[int, pa.int32()]
Time = Annotated[int, pa.timestamp("us", "UTC")]  # microseconds since the epoch


class Row(Protocol):
    """The fields of every row. A row is a msgspec struct with more fields, the last of which is `written_at`."""

    @property
    def key(self) -> bytes:
        """The 16-byte key that it is looked up by."""

    @property
    def reason(self) -> str | None:
        """The reason why there is no answer; None if there is one."""


R = TypeVar("R", bound=Row)


class TableKind(msgspec.Struct, Generic[R], frozen=True):
    """A kind of table: the name of its folder, the struct of its rows, and how many of them make a row group.

    `cached` is how many rows that were looked up stay in memory. `named_by` are the columns by which a message names a
    row. `journaled` says whether rows are kept in a journal until their part is written. `frame` is how many rows make
    a frame of records; 0 where rows are looked up by row group. `unique` are columns whose values hardly repeat.
    """

    name: str
    row: type[R]
    row_group: int
    cached: int
    named_by: tuple[str, ...]
    journaled: bool
    frame: int = 0
    unique: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the order of the struct's fields."""
        return schema_of(self.row)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in that order."""
        return _columns(self.row)


@cache
def schema_of(row: type) -> pa.Schema:
    """The columns of a struct whose fields are annotated with Arrow types."""
    hints = get_type_hints(row, include_extras=True)
    return pa.schema([(name, hint.__metadata__[0]) for name, hint in hints.items()])


@cache
def _columns(row: type[Row]) -> tuple[str, ...]:
    return tuple(schema_of(row).names)


_ENTRY = np.dtype([("at", "<u8"), ("size", "<u4"), ("whole", "<u4"), ("sum", "<u4")])
_SUM = struct.Struct("<I")
_CODEC = "snappy"  # of new frames: to unpack one is most of a look-up at random, and zstd's takes five times as long
_CODECS = {"snappy": pa.Codec("snappy"), "zstd": pa.Codec("zstd", compression_level=1)}
_encoder = msgspec.msgpack.Encoder()
_values = msgspec.msgpack.Decoder(list[Any]).decode


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
    return _CODECS[_CODEC].compress(whole, asbytes=True), len(whole)


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
        self, where: str, frames: Sequence[bytes], frame: int, count: int, row: Callable[..., R]
    ) -> None:
        self._where = where
        self._frames = frames
        self._frame = frame
        self._ends: list[list[int]] = [[] for _ in frames]  # of the rows of a frame, once one of them is read
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
        try:
            ends = self._ends[number]
            if not ends:
                count = min(self._frame, self._count - number * self._frame)
                lengths = struct.unpack_from(f"<{count}I", self._frames[number])
                ends = self._ends[number] = list(accumulate(lengths, initial=4 * count))
            return self._row(*_values(self._frames[number][ends[place] : ends[place + 1]]))
        except (msgspec.MsgspecError, struct.error, TypeError, ValueError) as error:
            raise damaged(self._where, f"a record cannot be read: {error}") from error


class Records:
    """Where the frames of a part are: `rows` rows, `frame` to each, with values of the `names`, packed by `codec`."""

    def __init__(
        self, names: Sequence[str], rows: int, frame: int, codec: pa.Codec, entries: npt.NDArray[Any]
    ) -> None:
        self.frame = frame
        self._codec = codec
        self._names = tuple(names)
        self._rows = rows
        self._entries = entries

    @classmethod
    def of(
        cls, where: str, names: Sequence[str], rows: int, frame: int, codec: str, directory: bytes
    ) -> "Records":
        """The frames of the part at `where`, by its `directory`. Raises DamagedPart."""
        entries = directory[: -_SUM.size]
        if frame < 1 or directory[-_SUM.size :] != _SUM.pack(zlib.crc32(entries)):
            raise damaged(where, "its check sums do not match")
        return cls(names, rows, frame, _CODECS[codec], np.frombuffer(entries, _ENTRY))

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
                frames.append(self._codec.decompress(found, whole, asbytes=True))
            except (OSError, pa.ArrowException, ValueError) as error:
                raise damaged(file.where, str(error)) from error
        rows = min(count * self.frame, self._rows - first * self.frame)
        return Block(file.where, frames, self.frame, rows, self._maker(kind))

    def _maker(self, kind: TableKind[R]) -> Callable[..., R]:
        """The function that makes a row of its values; unknown columns are dropped, and missing ones take defaults."""
        if self._names == kind.columns:
            return kind.row
        return lambda *values: kind.row(
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


SCHEMA_VERSION = 6
"""2: pages have a size; 3: parts have check sums; 4: judgments have records; 5: outcomes of evidence are typed; 6: a
part names what packs its records (snappy, or for a while zstd), and a scorecard of an earlier run is referred to."""
_CHECKED = 3
_VERSION_KEY = b"adjudge.schema"
_REPLACES_KEY = b"adjudge.replaces"
_SEGMENTS_KEY = b"adjudge.segments"
_FRAME_KEY = b"adjudge.frame"
_MAGIC = b"adjudge\x01"
_BLOCK_END = struct.Struct("<II8s")  # how many check sums precede, one of them and the footer, and the magic
_FILE_END = struct.Struct("<I4s")
_TAIL = 1 << 16

_NO_SEGMENTS: Mapping[str, int] = {}


def stamped(
    schema: pa.Schema, replaces: Sequence[str] = (), segments: Mapping[str, int] = _NO_SEGMENTS
) -> pa.Schema:
    """`schema` with a part's metadata.

    The schema version, the names of the parts that the new one `replaces`, and of each writer in `segments` the number
    of the last part whose rows it contains.
    """
    return schema.with_metadata(
        {
            _VERSION_KEY: str(SCHEMA_VERSION).encode(),
            _REPLACES_KEY: msgspec.json.encode(list(replaces)),
            _SEGMENTS_KEY: msgspec.json.encode(segments),
        }
    )


def encoded(table: pa.Table, kind: TableKind[Any], frames: Frames | None = None) -> list[Bytes]:
    """The bytes of a part, in pieces: row groups, frames, their directory, check sums, footer.

    `frames` are those of the table's rows, where they are made already.
    """
    if kind.frame:
        table = table.replace_schema_metadata(
            {**table.schema.metadata, _FRAME_KEY: f"{kind.frame} {_CODEC}".encode()}
        )
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=1,
        row_group_size=kind.row_group,
        use_dictionary=[name for name in table.column_names if name not in kind.unique]
        if kind.unique
        else True,
    )
    whole = memoryview(sink.getvalue())
    length, _ = _FILE_END.unpack(whole[-_FILE_END.size :])
    body, footer = whole[: -length - _FILE_END.size], whole[-length - _FILE_END.size :]
    metadata = _metadata(bytes(footer))
    ranges = [
        (at, size) for group in range(metadata.num_row_groups) for _, at, size in _chunks(metadata, group)
    ]
    sums = np.array([zlib.crc32(whole[at : at + size]) for at, size in ranges], "<u4").tobytes()
    total = zlib.crc32(footer, zlib.crc32(sums))
    records = (frames or framed(table, kind.frame)).pieces(len(body)) if kind.frame else []
    return [body, *records, sums, _BLOCK_END.pack(len(ranges), total, _MAGIC), footer]


def write_part(
    place: Place, name: str, table: pa.Table, kind: TableKind[Any], frames: Frames | None = None
) -> int:
    """Write `table`, whose schema is `stamped`, as the part `name` at `place`; its bytes. Raises StoreError."""
    return place.write(name, encoded(table, kind, frames))


class Part:
    """The part in `file`. Raises StoreError if its footer is damaged, or of a later version than this adjudge reads.

    One that `is_growing` was made of a journal: the part of that name will have more rows, and other bytes.
    """

    def __init__(self, file: StoredFile, is_growing: bool = False) -> None:
        self._file = file
        self.is_growing = is_growing
        tail_at = max(0, file.size - _TAIL)
        tail = file.read(tail_at, file.size - tail_at)
        self._small = (
            b"" if tail_at else tail
        )  # a small part is read once: of an object store, in one request
        if len(tail) < 12 or tail[-4:] != b"PAR1":
            raise self._damaged("not a Parquet file")
        length, _ = _FILE_END.unpack(tail[-_FILE_END.size :])
        footer_at = file.size - length - _FILE_END.size
        if footer_at < 4:
            raise self._damaged("its footer is too long")
        block_at = max(0, footer_at - _BLOCK_END.size)
        footer = self._bytes(tail, tail_at, footer_at, file.size)
        block = self._bytes(tail, tail_at, block_at, footer_at)
        self._sums = self._checked(tail, tail_at, block_at, block, footer)
        try:
            self._metadata = _metadata(footer)
            self._schema = self._metadata.schema.to_arrow_schema()
        except (OSError, pa.ArrowException, ValueError) as error:
            raise self._damaged(str(error)) from error
        if not 1 <= self.version <= SCHEMA_VERSION:
            raise StoreError(
                f"{file.where}: schema version {self.version or 'missing'}, and this adjudge reads up to "
                f"{SCHEMA_VERSION}; use the adjudge that wrote it, or another --store"
            )
        if self._sums is None and self.version >= _CHECKED:
            raise self._damaged("its check sums are missing")
        self.records = self._recorded(tail, tail_at, block_at)

    def _bytes(self, tail: bytes, tail_at: int, start: int, end: int) -> bytes:
        return (
            tail[start - tail_at : end - tail_at] if start >= tail_at else self._file.read(start, end - start)
        )

    def _checked(self, tail: bytes, tail_at: int, block_at: int, block: bytes, footer: bytes) -> Any:
        """The checksums of the columns, in file order; None if the part has none."""
        if len(block) < _BLOCK_END.size or not block.endswith(_MAGIC):
            return None
        count, total, _ = _BLOCK_END.unpack(block)
        if block_at - 4 * count < 0:
            raise self._damaged("its check sums do not match")
        sums = self._bytes(tail, tail_at, block_at - 4 * count, block_at)
        if zlib.crc32(footer, zlib.crc32(sums)) != total:
            raise self._damaged("its check sums do not match")
        return np.frombuffer(sums, "<u4")

    def _recorded(self, tail: bytes, tail_at: int, block_at: int) -> Records | None:
        """Where its records are; None if it has none."""
        frame, _, codec = self._stamp(_FRAME_KEY, b"").decode("ascii", "replace").partition(" ")
        if self._sums is None or not frame.isdecimal():
            return None
        if (codec or "snappy") not in _CODECS:
            raise self._damaged("its records are packed by an unknown codec")
        end = block_at - self._sums.nbytes
        start = end - directory_bytes(self._metadata.num_rows, int(frame))
        if start < 0:
            raise self._damaged("it has no room for its records")
        directory = self._bytes(tail, tail_at, start, end)
        return Records.of(
            self._file.where, self.names, self._metadata.num_rows, int(frame), codec or "snappy", directory
        )

    def _damaged(self, why: str) -> DamagedPart:
        return damaged(self._file.where, why)

    @property
    def version(self) -> int:
        """The schema version; 0 if it is missing or not a number."""
        version = self._stamp(_VERSION_KEY, b"")
        return int(version) if version.isdigit() else 0

    @property
    def replaces(self) -> list[str]:
        """Names of the parts that it replaces."""
        found: list[str] = self._decoded(_REPLACES_KEY, b"[]", list[str])
        return found

    @property
    def segments(self) -> dict[str, int]:
        """Of each writer whose parts it replaces, the number of the last one."""
        found: dict[str, int] = self._decoded(_SEGMENTS_KEY, b"{}", dict[str, int])
        return found

    def _stamp(self, key: bytes, default: bytes) -> bytes:
        found: bytes = (self._schema.metadata or {}).get(key, default)
        return found

    def _decoded(self, key: bytes, default: bytes, kind: Any) -> Any:
        try:
            return msgspec.json.decode(self._stamp(key, default), type=kind)
        except msgspec.MsgspecError as error:
            raise self._damaged(f"its metadata cannot be read: {error}") from error

    @property
    def groups(self) -> list[int]:
        """The rows of each row group."""
        return [self._metadata.row_group(number).num_rows for number in range(self._metadata.num_row_groups)]

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return list(self._schema.names)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows, of those `columns` that the part has. Raises StoreError if they are damaged."""
        return self._read(range(self._metadata.num_row_groups), columns)

    def group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a row group. Raises StoreError if they are damaged."""
        return self._read([number], columns)

    def block_rows(self, frames: int) -> int:
        """The rows of a full block: those of `frames` frames, or of a row group if the part has no records."""
        return max([1, *self.groups[:1]]) if self.records is None else self.records.frame * frames

    def block(self, number: int, frames: int, kind: TableKind[R]) -> Block[R] | list[R]:
        """The rows of the block `number`, of `frames` frames each. Raises StoreError if they are damaged."""
        if self.records is not None:
            return self.records.read(self._file, number * frames, frames, kind)
        return list(map(kind.row, *map(listed, current(self.group(number, kind.columns), kind).columns)))

    def batches(self, group: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a row group, in batches. Raises StoreError if they are damaged."""
        source = self._source([group], columns)
        wanted = [name for name in columns if name in self.names]
        try:
            yield from source.iter_batches(rows, row_groups=[group], columns=wanted)
        except (OSError, pa.ArrowException, ValueError) as error:
            raise self._damaged(str(error)) from error

    def _read(self, groups: Sequence[int], columns: Sequence[str] | None) -> pa.Table:
        source = self._source(groups, columns)
        wanted = None if columns is None else [name for name in columns if name in self.names]
        try:
            return source.read_row_groups(list(groups), columns=wanted)
        except (OSError, pa.ArrowException, ValueError) as error:
            raise self._damaged(str(error)) from error

    def _source(self, groups: Sequence[int], columns: Sequence[str] | None) -> pq.ParquetFile:
        """The file with only those columns of those row groups in memory, each checked."""
        memory = np.empty(self._file.size, np.uint8)  # what is not written to takes no memory
        for number in groups:
            first = number * self._metadata.num_columns
            wanted = [
                (at, size, index)
                for index, (name, at, size) in enumerate(_chunks(self._metadata, number), first)
                if columns is None or name.split(".")[0] in columns
            ]
            for start, end, chunks in _adjacent(wanted):
                found = self._small[start:end] or self._file.read(start, end - start)
                for at, size, index in chunks:
                    view = memoryview(found)[at - start : at - start + size]
                    if self._sums is not None and zlib.crc32(view) != self._sums[index]:
                        raise self._damaged("its check sums do not match")
                memory[start:end] = np.frombuffer(found, np.uint8)
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(memory)), metadata=self._metadata)


def _metadata(footer: bytes) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(b"PAR1" + footer))


def _chunks(metadata: pq.FileMetaData, group: int) -> Iterator[tuple[str, int, int]]:
    """Where each column of a row group is: its path, its offset and its bytes."""
    row_group = metadata.row_group(group)
    for number in range(row_group.num_columns):
        column = row_group.column(number)
        start = column.dictionary_page_offset or column.data_page_offset
        yield column.path_in_schema, start, column.total_compressed_size


Chunk = tuple[int, int, int]


def _adjacent(chunks: Sequence[Chunk]) -> Iterator[tuple[int, int, list[Chunk]]]:
    """`chunks` (offset, bytes, index) in runs without gaps, each with its start and end."""
    run: list[Chunk] = []
    for chunk in sorted(chunks):
        if run and chunk[0] != run[-1][0] + run[-1][1]:
            yield run[0][0], run[-1][0] + run[-1][1], run
            run = []
        run.append(chunk)
    if run:
        yield run[0][0], run[-1][0] + run[-1][1], run


def current(table: pa.Table, kind: TableKind[Any]) -> pa.Table:
    """Rows of any supported version in this version's columns; columns missing from an older version are null."""
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in kind.schema
    ]
    return pa.table(columns, schema=kind.schema)
