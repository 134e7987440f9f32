"""Immutable Parquet parts with a key index, which hold judgments, pages and scores.

Each process is one writer: it buffers rows and writes them as a whole part every `flush_seconds` or 32 MB. Nothing is
edited in place, so a kill loses at most the rows not yet written. Of several answering rows with the same key, the
earliest (written_at, part, row) wins, in every process that opens the same parts.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.store.index import KeyIndex, Locations, Prefixes, prefixes
from adjudge.engine.store.kinds import R, TableKind
from adjudge.engine.store.place import Place, StoreError

__all__ = [
    "SCHEMA_VERSION",
    "PartStore",
    "current",
    "live_parts",
    "scan",
    "stamped",
    "version_of",
]

SCHEMA_VERSION = 2  # 2: pages have a size
FLUSH_BYTES = 32 << 20
FLUSH_SECONDS = 2.0
CACHED_GROUPS = 64
_VERSION_KEY = b"adjudge.schema"
_REPLACES_KEY = b"adjudge.replaces"

Group = tuple[int, int]  # a part's number, and the number of a row group in it


class PartStore(Generic[R]):
    """The rows of one table kind at `place`. Use from one event loop; `open` before use, `close` after.

    `answers(reason)` says whether a row with that reason counts as an answer; other rows are asked for again. The last
    `cached` row groups that were read stay in memory.
    """

    def __init__(
        self,
        place: Place,
        kind: TableKind[R],
        answers: Callable[[str | None], bool],
        flush_seconds: float = FLUSH_SECONDS,
        cached: int = CACHED_GROUPS,
    ) -> None:
        self._cached = cached
        self._place = place / kind.name
        self._kind = kind
        self._answers = answers
        self._flush_seconds = flush_seconds
        self._index = KeyIndex()
        self._parts: list[str] = []
        self._groups: OrderedDict[Group, list[R]] = OrderedDict()
        self._reading: dict[Group, asyncio.Task[list[R]]] = {}
        self._buffer: list[R] = []
        self._bytes = 0
        self._pending: dict[bytes, R] = {}
        self._writer = secrets.token_hex(4)
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._failure: StoreError | None = None
        self.written = 0
        self.written_bytes = 0

    @property
    def table(self) -> str:
        """The table's name."""
        return self._kind.name

    @property
    def unwritten(self) -> int:
        """Rows that are buffered for the next part."""
        return len(self._buffer)

    @property
    def rows(self) -> int:
        """Rows that answer: indexed ones and those not yet written."""
        return len(self._index) + len(self._pending)

    async def open(self, every: bool = False) -> None:
        """Build the key index, of `every` row or only of rows that answer. Raises StoreError."""
        names = await asyncio.to_thread(live_parts, self._place)
        await self._take_in(names, every)

    async def refresh(self) -> None:
        """Index the parts that other processes have written since, of rows that answer. Raises StoreError."""
        known = set(self._parts)
        await self._take_in(
            [name for name in await asyncio.to_thread(self._place.files) if name not in known]
        )

    async def _take_in(self, names: list[str], every: bool = False) -> None:
        first = len(self._parts)
        self._parts += names
        rows = await asyncio.to_thread(self._keyed, names, first, every)
        if rows is not None:
            await asyncio.to_thread(self._index.add, *rows)

    def _keyed(
        self, names: list[str], first: int, every: bool
    ) -> tuple[Prefixes, Locations, Locations] | None:
        """Prefix, part and row of every row in `names` (parts `first`, `first` + 1, ...), in order of precedence."""
        prefix, written, row = [], [], []
        for name in names:
            keyed = self._place.open(name).read(columns=["key", "reason", "written_at"])
            kept = np.flatnonzero(self._answering(keyed["reason"], every)).astype(np.uint32)
            prefix.append(prefixes(keyed["key"])[kept])
            written.append(keyed["written_at"].cast(pa.int64()).to_numpy()[kept])
            row.append(kept)
        if not names:
            return None
        part = np.repeat(np.arange(first, first + len(names), dtype=np.uint32), [len(rows) for rows in row])
        order = np.argsort(np.concatenate(written), kind="stable")
        parts, rows = part[order].astype(np.uint64), np.concatenate(row)[order].astype(np.uint64)
        return np.concatenate(prefix)[order], parts, rows

    def _answering(self, reasons: pa.ChunkedArray, every: bool) -> npt.NDArray[np.bool_]:
        """Which rows answer, or all of them."""
        if every:
            return np.ones(len(reasons), bool)
        kinds = pc.cast(reasons, pa.string()).dictionary_encode(null_encoding="encode").combine_chunks()
        if isinstance(kinds, pa.ChunkedArray):
            kinds = kinds.chunk(0)
        good = np.array([self._answers(reason) for reason in kinds.dictionary.to_pylist()], bool)
        answering: npt.NDArray[np.bool_] = good[kinds.indices.to_numpy()]
        return answering

    def at_hand(self, keys: Sequence[bytes]) -> list[R | None]:
        """The rows that answer `keys`, from memory or a local file. None does not mean that there is no such row.

        A row group of a local file is read on the event loop. That blocks it for about as long as scoring one case
        (3 ms), which costs far less than suspending each of the thousand questions that the group answers.
        """
        places = self._index.find(keys)
        return [self._at_hand(*wanted) for wanted in zip(keys, places, strict=True)]

    def _at_hand(self, key: bytes, places: list[tuple[int, int]]) -> R | None:
        row = self._pending.get(key)
        if row is not None:
            return row
        for part, at in places:
            group, at = divmod(at, self._kind.row_group)
            rows = self._groups.get((part, group))
            if rows is None:
                if not self._place.is_local:
                    return None
                rows = self._keep((part, group), self._load(part, group))
            if rows[at].key == key and self._answers(rows[at].reason):
                self._groups.move_to_end((part, group))
                return rows[at]
        return None

    async def get(self, key: bytes) -> R | None:
        """The row that answers `key`, or None. If every row is indexed and none answers, the last row of `key`."""
        row = self._pending.get(key)
        if row is not None:
            return row
        for part, at in self._index.find([key])[0]:
            group, at = divmod(at, self._kind.row_group)
            rows = await self._rows((part, group))
            if rows[at].key == key:
                row = rows[at]
                if self._answers(row.reason):
                    break
        return row

    def put(self, row: R, size: int) -> None:
        """Buffer `row` for the next part; `size` is roughly its bytes. Raises StoreError if an earlier part failed."""
        if self._failure is not None:
            raise self._failure
        self._buffer.append(row)
        self._bytes += size
        if self._answers(row.reason):
            self._pending.setdefault(row.key, row)
        if self._bytes >= FLUSH_BYTES:
            self._begin_flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        self._begin_flush()

    def _begin_flush(self) -> asyncio.Task[None]:
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush())
            self._flushing.add_done_callback(self._flushed)
        return self._flushing

    def _flushed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(error := task.exception(), StoreError):
            self._failure = error
        if self._buffer and self._timer is None:  # became due while the previous part was being written
            self._begin_flush()

    async def flush(self) -> None:
        """Write everything put so far. Raises StoreError."""
        while self._flushing is not None and not self._flushing.done():
            await asyncio.shield(self._flushing)
        await asyncio.shield(self._begin_flush())  # a cancelled caller must not cancel the writing

    async def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        rows, self._buffer, self._bytes = self._buffer, [], 0
        if not rows:
            return
        name = f"{time.time_ns():020d}-{self._writer}-{len(self._parts):06d}.parquet"
        part = len(self._parts)
        self._parts.append(name)
        self.written_bytes += await asyncio.to_thread(self._write, name, rows)
        self.written += len(rows)
        at = [i for i, row in enumerate(rows) if self._answers(row.reason)]
        keys = pa.array([rows[i].key for i in at], pa.binary(16))
        await asyncio.to_thread(
            self._index.add,
            prefixes(pa.chunked_array([keys])),
            np.full(len(at), part, np.uint64),
            np.asarray(at, np.uint64),
        )
        for i in at:
            if self._pending.get(rows[i].key) is rows[i]:
                del self._pending[rows[i].key]

    def _write(self, name: str, rows: list[R]) -> int:
        schema = self._kind.schema
        arrays = [pa.array(list(map(attrgetter(field.name), rows)), field.type) for field in schema]
        table = pa.Table.from_arrays(arrays, schema=stamped(schema))
        return self._place.write(name, table, self._kind.row_group)

    async def close(self) -> None:
        """Write everything put so far. Raises StoreError if any part could not be written."""
        await self.flush()
        if self._failure is not None:
            raise self._failure

    async def _rows(self, group: Group) -> list[R]:
        """The rows of one group, from the cache, or read once for all that wait for them."""
        rows = self._groups.get(group)
        if rows is not None:
            self._groups.move_to_end(group)
            return rows
        reading = self._reading.get(group)
        if reading is None:
            reading = self._reading[group] = asyncio.ensure_future(self._read(group))
        return await asyncio.shield(reading)

    async def _read(self, group: Group) -> list[R]:
        try:
            return self._keep(group, await asyncio.to_thread(self._load, *group))
        finally:
            del self._reading[group]

    def _keep(self, group: Group, rows: list[R]) -> list[R]:
        self._groups[group] = rows
        if len(self._groups) > self._cached:
            self._groups.popitem(last=False)
        return rows

    def _load(self, part: int, group: int) -> list[R]:
        table = current(self._place.open(self._parts[part]).read_row_group(group), self._kind)
        return list(map(self._kind.row, *map(_listed, table.columns)))


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """The values; times are integers in their unit. Converts through numpy, in a fraction of pyarrow's time."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type) or (pa.types.is_primitive(column.type) and column.null_count):
        values: list[Any] = column.to_pylist()  # numpy has no nested values and no null integers
    else:
        values = column.to_numpy().tolist()
    return values


def stamped(schema: pa.Schema, replaces: Sequence[str] = ()) -> pa.Schema:
    """`schema` with the schema version, and the names of the parts that the new one `replaces`, in its metadata."""
    return schema.with_metadata(
        {_VERSION_KEY: str(SCHEMA_VERSION).encode(), _REPLACES_KEY: msgspec.json.encode(list(replaces))}
    )


def live_parts(place: Place) -> list[str]:
    """Names of the parts at `place` that no other part replaces, oldest first. Raises StoreError for newer schemas."""
    names = place.files()
    replaced: set[str] = set()
    for name in names:
        metadata = place.open(name).schema_arrow.metadata or {}
        if not 1 <= version_of(metadata) <= SCHEMA_VERSION:
            raise StoreError(
                f"{place.uri}/{name}: schema version {version_of(metadata) or 'missing'}, and this adjudge reads up to "
                f"{SCHEMA_VERSION}; use the adjudge that wrote it, or another --store"
            )
        replaced.update(msgspec.json.decode(metadata.get(_REPLACES_KEY, b"[]"), type=list[str]))
    return [name for name in names if name not in replaced]


def version_of(metadata: Mapping[bytes, bytes]) -> int:
    """The schema version in a part's metadata; 0 if it is missing or not a number."""
    version = metadata.get(_VERSION_KEY, b"").decode()
    return int(version) if version.isdecimal() else 0


def current(table: pa.Table, kind: TableKind[Any]) -> pa.Table:
    """Rows of any supported version in this version's columns; columns that an older version lacks are null."""
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in kind.schema
    ]
    return pa.table(columns, schema=kind.schema)


def scan(place: Place, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The tables of all live parts at `place`, oldest first."""
    for name in live_parts(place):
        yield place.open(name).read(columns=columns)
