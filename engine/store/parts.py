"""Immutable Parquet parts with a key index, which hold judgments, pages and scores.

Each process is one writer: it buffers rows and writes them as a whole part every `flush_seconds` or 32 MB; until then a
journal has them too. Nothing is edited in place. Of several answering rows with the same key, the earliest (written_at,
part, row) wins, in every process that opens the same parts.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.store.catalog import live_parts, open_part
from adjudge.engine.store.index import KeyIndex, Locations, Prefixes, prefixes
from adjudge.engine.store.journal import journals
from adjudge.engine.store.kinds import R, TableKind
from adjudge.engine.store.part import Part, current
from adjudge.engine.store.place import MissingFile, Place
from adjudge.engine.store.scratch import journal_folder
from adjudge.engine.store.writer import FLUSH_SECONDS, Writer

__all__ = ["CACHED_GROUPS", "FLUSH_SECONDS", "PartStore", "scan"]

CACHED_GROUPS = 64
OPEN_PARTS = 8

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
        self._index = KeyIndex()
        self._every = False
        self._names: list[str] = []  # parts by number
        self._numbers: dict[str, int] = {}
        self._indexed: list[int] = []  # how many rows of each part are indexed
        self._growing: set[str] = set()  # parts that were journals when they were indexed
        self._gone: set[int] = set()  # parts that were replaced and deleted since
        self._open: dict[int, Part] = {}
        self._groups: OrderedDict[Group, list[R]] = OrderedDict()
        self._reading: dict[Group, asyncio.Task[list[R]]] = {}
        self._pending: dict[bytes, R] = {}
        self.writer = Writer(self._place, kind, flush_seconds, self._written)

    @property
    def table(self) -> str:
        """The table's name."""
        return self._kind.name

    @property
    def rows(self) -> int:
        """Rows that answer: indexed ones and those not yet written."""
        return len(self._index) + len(self._pending)

    async def open(self, every: bool = False) -> None:
        """Build the key index, of `every` row or only of rows that answer. Raises StoreError."""
        self._every = every
        self._growing = await asyncio.to_thread(self._journals)
        await self._take_in(await asyncio.to_thread(live_parts, self._place))

    async def refresh(self) -> None:
        """Index the rows that other processes have written since, as `open` did. Raises StoreError."""
        growing = self._growing
        await self._take_in(await asyncio.to_thread(self._others))
        for group in [group for group in self._groups if self._names[group[0]] in growing]:
            del self._groups[group]  # read when it had fewer rows

    def _others(self) -> list[str]:
        """Parts and journals of other processes that may have rows beyond the indexed ones."""
        growing = self._journals()
        written = {name for name in self._place.files() if name not in self._numbers or name in self._growing}
        self._growing = growing
        return sorted(growing | written)

    def _journals(self) -> set[str]:
        names = journals(journal_folder(self._place)) if self._kind.journaled else []
        return {name for name in names if self.writer.name not in name}

    async def _take_in(self, names: list[str]) -> None:
        rows = await asyncio.to_thread(self._keyed, names)
        if rows is not None:
            await asyncio.to_thread(self._index.add, *rows)

    def _keyed(self, names: list[str]) -> tuple[Prefixes, Locations, Locations] | None:
        """Prefix, part and row of each row in `names` that is not yet indexed, in order of precedence."""
        prefix, written, part, row = [], [], [], []
        for name in names:
            try:
                keyed = open_part(self._place, self._kind, name).read(["key", "reason", "written_at"])
            except MissingFile:  # replaced by a part that is listed too, or was listed before
                continue
            number = self._number(name)
            known, self._indexed[number] = self._indexed[number], max(self._indexed[number], len(keyed))
            kept = np.flatnonzero(self._answering(keyed["reason"])).astype(np.uint32)
            kept = kept[kept >= known]
            prefix.append(prefixes(keyed["key"])[kept])
            written.append(keyed["written_at"].cast(pa.int64()).to_numpy()[kept])
            part.append(np.full(len(kept), number, np.uint32))
            row.append(kept)
        if not row:
            return None
        order = np.argsort(np.concatenate(written), kind="stable")
        parts, rows = (np.concatenate(each)[order].astype(np.uint64) for each in (part, row))
        return np.concatenate(prefix)[order], parts, rows

    def _number(self, name: str) -> int:
        """The number of the part `name` in the index."""
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
            self._indexed.append(0)
        return self._numbers[name]

    def _answering(self, reasons: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Which rows answer, or all of them."""
        if self._every:
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
            if part in self._gone:
                continue
            group, at = divmod(at, self._kind.row_group)
            rows = self._groups.get((part, group))
            if rows is None:
                if not self._place.is_local:
                    return None
                try:
                    rows = self._keep((part, group), self._load(part, group))
                except MissingFile:
                    return None
            found = _row(rows, at, key)
            if found is not None and self._answers(found.reason):
                self._groups.move_to_end((part, group))
                return found
        return None

    async def get(self, key: bytes) -> R | None:
        """The row that answers `key`, or None. If every row is indexed and none answers, the last row of `key`."""
        row = self._pending.get(key)
        if row is not None:
            return row
        for part, at in self._index.find([key])[0]:
            if part in self._gone:
                continue
            group, at = divmod(at, self._kind.row_group)
            try:
                rows = await self._rows((part, group))
            except MissingFile:  # what replaced it has its rows
                self._gone.add(part)
                await self.refresh()
                return await self.get(key)
            found = _row(rows, at, key)
            if found is not None:
                row = found
                if self._answers(row.reason):
                    break
        return row

    def put(self, row: R, size: int) -> None:
        """Buffer `row` for the next part; `size` is roughly its bytes.

        Raises StoreError if an earlier part could not be written; the row is kept, as long as there is memory for it,
        and written with that part once this is possible.
        """
        kept = self.writer.put(row, size)
        if kept is not None and self._answers(kept.reason):
            self._pending.setdefault(kept.key, kept)
        if self.writer.failure is not None:
            raise self.writer.failure

    async def _written(self, name: str, rows: list[R], put: list[R]) -> None:
        """Index the part `name`, which has `rows`: what can be stored of the rows that were `put` for it."""
        number = self._number(name)
        self._indexed[number] = len(rows)
        at = [i for i, row in enumerate(rows) if self._answers(row.reason)]
        keys = pa.array([rows[i].key for i in at], pa.binary(16))
        await asyncio.to_thread(
            self._index.add,
            prefixes(pa.chunked_array([keys])),
            np.full(len(at), number, np.uint64),
            np.asarray(at, np.uint64),
        )
        for row in put:
            if self._pending.get(row.key) is row:
                del self._pending[row.key]

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
        table = current(self._part(part).group(group), self._kind)
        return list(map(self._kind.row, *map(_listed, table.columns)))

    def _part(self, number: int) -> Part:
        """The part of that number. The last few stay open, so that their footers are read once."""
        part = self._open.get(number)
        if part is None:
            part = open_part(self._place, self._kind, self._names[number])
            if self._names[number] not in self._growing:
                self._open[number] = part
                if len(self._open) > OPEN_PARTS:
                    self._open.pop(next(iter(self._open)), None)
        return part


def _row(rows: list[R], at: int, key: bytes) -> R | None:
    """The row at `at`, if it has that key: an index has only half of it, and a journal may have lost its last rows."""
    return rows[at] if at < len(rows) and rows[at].key == key else None


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


def scan(store: Place, kind: TableKind[Any], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The tables of all live parts of `kind` in `store`, oldest first."""
    place = store / kind.name
    for name in live_parts(place):
        yield open_part(place, kind, name).read(columns)
