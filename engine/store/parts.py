"""A table of a store: immutable Parquet parts with a key index, opened, refreshed, flushed and closed.

Each process is one writer: it buffers rows, journals them, and writes them as a whole part every `flush_seconds` or 32
MB. Nothing is edited in place. Of several answered rows with the same key, the earliest (written_at, part, row) wins,
in every process that opens the same parts. The most recently read blocks of rows are cached in memory, up to a limit.
"""

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.store.footers import Footer
from adjudge.engine.store.journal import live_parts, open_part, read_catalog
from adjudge.engine.store.part import Block, Part, R, Records, TableKind
from adjudge.engine.store.place import MissingFile, Place, StoredFile
from adjudge.engine.store.rows import integers
from adjudge.engine.store.writer import FLUSH_SECONDS, KeyIndex, Locations, Prefixes, Writer, prefixes
from adjudge.fetchers.flight import shared
from adjudge.scoring.contract.reasons import TRANSIENT

__all__ = ["PartStore", "Table", "answering", "scan"]

At = tuple[int, int]  # a part's number, and the number of a block of rows in it
Rows = Block[R] | list[R]


class Blocks(Generic[R]):
    """The rows of blocks, at most `most` of them in all, and always the last block."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: OrderedDict[At, Rows[R]] = OrderedDict()
        self._held = 0

    def get(self, block: At) -> Rows[R] | None:
        """The rows of `block`, which now is the last that was looked up; None if they are not here."""
        rows = self._rows.get(block)
        if rows is not None:
            self._rows.move_to_end(block)
        return rows

    def keep(self, block: At, rows: Rows[R]) -> Rows[R]:
        """Keep `rows` as those of `block`, and return them."""
        self._discard(block)
        self._rows[block] = rows
        self._held += len(rows)
        while self._held > self._most and len(self._rows) > 1:
            self._discard(next(iter(self._rows)))
        return rows

    def forget(self, which: Callable[[At], bool]) -> None:
        """Discard the blocks for which `which` is true."""
        for block in list(filter(which, self._rows)):
            self._discard(block)

    def _discard(self, block: At) -> None:
        self._held -= len(self._rows.pop(block, ()))


OPEN_PARTS = 8
FRAMES_A_REQUEST = 64  # of an object store: a request takes as long as reading hundreds of kilobytes


class PartStore(Generic[R]):
    """The rows of one table kind at `place`. Use from one event loop; `open` before use, `close` after.

    `answers(reason)` says whether a row with that reason counts as an answer; other rows are asked for again. The last
    `cached` rows that were looked up stay in memory, by default as many as the kind says.
    """

    def __init__(
        self,
        place: Place,
        kind: TableKind[R],
        answers: Callable[[str | None], bool],
        flush_seconds: float = FLUSH_SECONDS,
        cached: int | None = None,
    ) -> None:
        self._place = place / kind.name
        self._kind = kind
        self._answers = answers
        self._index = KeyIndex()
        self._every = False
        self._names: list[str] = []  # parts by number
        self._numbers: dict[str, int] = {}
        self._indexed: list[int] = []  # how many rows of each part are indexed
        self._partial: set[str] = set()  # parts that were journals when they were indexed
        self._footers: dict[str, Footer] = {}
        self._gone: set[int] = set()  # parts that were replaced and deleted since
        self._known: set[str] = set()  # parts that only replace indexed ones
        self._records: dict[int, Records] = {}  # of each part that has some and is complete
        self._block_rows: dict[int, int] = {}
        self._open: dict[int, Part] = {}
        self._files: dict[int, StoredFile] = {}
        self._frames = 1 if self._place.is_local else FRAMES_A_REQUEST
        self._blocks: Blocks[R] = Blocks(kind.cached if cached is None else cached)
        self._reading: dict[At, asyncio.Task[Rows[R]]] = {}
        self._absent: set[bytes] = set()  # keys that were looked up, and not in the index as it is
        self.writer = Writer(self._place, kind, flush_seconds, self._written)

    @property
    def table(self) -> str:
        """The table's name."""
        return self._kind.name

    @property
    def rows(self) -> int:
        """Rows that answer: indexed ones and those not yet written."""
        return len(self._index) + self.writer.answering

    async def open(self, every: bool = False) -> None:
        """Build the key index, of `every` row or only of rows that answer. Raises StoreError."""
        self._every = every
        await self._take_in(await asyncio.to_thread(self._unread))

    async def refresh(self) -> None:
        """Index the rows that other processes have written since, as `open` did. Raises StoreError."""
        partial = set(self._partial)
        await self._take_in(await asyncio.to_thread(self._unread))
        self._blocks.forget(lambda block: self._names[block[0]] in partial)  # read when they had fewer rows

    def _unread(self) -> list[str]:
        """Parts and journals of other processes that may have rows beyond the indexed ones, oldest first."""
        catalog = read_catalog(self._place, self._footers)
        names = catalog.names if self._kind.journaled else catalog.live
        return [
            name
            for name in names
            if (name not in self._numbers and name not in self._known and self.writer.name not in name)
            or name in self._partial
        ]

    async def _take_in(self, names: list[str]) -> None:
        rows = await asyncio.to_thread(self._keyed, names)
        if rows is not None:
            await asyncio.to_thread(self._index.add, *rows)
            self._absent.clear()

    def _keyed(self, names: list[str]) -> tuple[Prefixes, Locations, Locations] | None:
        """Prefix, part and row of each row in `names` that is not yet indexed, in order of precedence."""
        prefix, written, part, row = [], [], [], []
        for name in names:
            try:
                opened = open_part(self._place, self._kind, name)
                if self._has_all(opened):
                    self._known.add(name)
                    continue
                keyed = opened.read(["key", "reason", "written_at"])
            except MissingFile:  # replaced by a part that is listed too, or was listed before
                self._lost(name)
                continue
            number = self._number(name)
            self._note(number, opened)
            known, self._indexed[number] = self._indexed[number], max(self._indexed[number], len(keyed))
            kept = np.flatnonzero(self._answering(keyed["reason"])).astype(np.uint32)
            kept = kept[kept >= known]
            prefix.append(prefixes(keyed["key"])[kept])
            written.append(integers(keyed["written_at"])[kept])
            part.append(np.full(len(kept), number, np.uint32))
            row.append(kept)
        if not row:
            return None
        order = np.argsort(np.concatenate(written), kind="stable")
        parts, rows = (np.concatenate(each)[order].astype(np.uint64) for each in (part, row))
        return np.concatenate(prefix)[order], parts, rows

    def _has_all(self, part: Part) -> bool:
        """Whether every row of `part` is indexed where it was before, in parts that are still there."""
        replaced = [self._numbers.get(name, -1) for name in part.replaces]
        indexed = bool(replaced) and min(replaced) >= 0 and self._partial.isdisjoint(part.replaces)
        return indexed and self._gone.isdisjoint(replaced)

    def _lost(self, name: str) -> None:
        """The part `name` has been deleted: what replaced it is to be indexed."""
        if name in self._numbers:
            self._gone.add(self._numbers[name])
            self._known.clear()

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
        """The rows that answer `keys`, from memory or a local file. None means "not in memory", not "absent".

        A block of a local file is read on the event loop. That blocks it for less than scoring one case takes
        (3 ms for a part of an older version, else 0.1 ms), and costs far less than suspending each question.
        """
        places = self._index.find(keys)
        self._absent.update(key for key, found in zip(keys, places, strict=True) if not found)
        return [self._at_hand(*wanted) for wanted in zip(keys, places, strict=True)]

    def _at_hand(self, key: bytes, places: list[tuple[int, int]]) -> R | None:
        row = self.writer.find(key)
        if row is not None:
            return row
        for part, at in places:
            if part in self._gone:
                continue
            number, at = divmod(at, self._block_rows[part])
            rows = self._blocks.get((part, number))
            if rows is None:
                if not self._place.is_local:
                    return None
                try:
                    rows = self._blocks.keep((part, number), self._load(part, number))
                except MissingFile:
                    return None
            found = _row(rows, at, key)
            if found is not None and self._answers(found.reason):
                return found
        return None

    def holds(self, groups: Sequence[bytes]) -> list[bool]:
        """Of each group of keys, 16 bytes after 16 bytes, whether rows answer all, as far as 8 bytes of each tell."""
        keys = b"".join(groups)
        ends = list(accumulate(len(group) // 16 for group in groups))
        held = [True] * len(groups)
        for at in self._index.lacking(keys):
            if not self.writer.has(keys[16 * at : 16 * at + 16]):
                held[bisect_right(ends, at)] = False
        return held

    async def get(self, key: bytes) -> R | None:
        """The row that answers `key`, or None. If every row is indexed and none answers, the last row of `key`."""
        if key in self._absent:
            self._absent.discard(key)
            return self.writer.find(key)
        places = self._index.find([key])[0]
        row = self._at_hand(key, places)
        if row is not None:
            return row
        for part, at in places:
            if part in self._gone:
                continue
            number, at = divmod(at, self._block_rows[part])
            try:
                rows = await self._rows((part, number))
            except MissingFile:  # what replaced it has its rows
                self._lost(self._names[part])
                await self.refresh()
                return await self.get(key)
            found = _row(rows, at, key)
            if found is not None:
                row = found
                if self._answers(row.reason):
                    break
        return row

    def put(self, *rows: tuple[R, int]) -> None:
        """Buffer `rows` for the next part, each with its size in bytes, roughly.

        Raises StoreError if an earlier part could not be written; the rows are kept, as long as there is memory for
        them, and written with that part once this is possible.
        """
        self.writer.put([(row, size, self._answers(row.reason)) for row, size in rows])
        if self.writer.failure is not None:
            raise self.writer.failure

    async def close(self) -> None:
        """Write everything put so far, and let go of index and rows. Raises StoreError."""
        try:
            await self.writer.close()
        finally:
            self._index = KeyIndex()
            self._blocks.forget(lambda block: True)
            self._open.clear()
            self._files.clear()

    async def _written(self, name: str, rows: int, prefix: Prefixes, row: Locations) -> None:
        """Index the part `name` of `rows` rows by the rows that answer."""
        number = self._number(name)
        self._indexed[number] = rows
        self._block_rows[number] = self._kind.frame * self._frames or self._kind.row_group
        part = np.full(len(row), number, np.uint64)
        await asyncio.to_thread(self._index.add, prefix, part, row)
        self._absent.clear()

    async def _rows(self, block: At) -> Rows[R]:
        """The rows of one block, from memory, or read once for all that wait for them."""
        rows = self._blocks.get(block)
        if rows is not None:
            return rows
        reading = self._reading.get(block)
        if reading is None:
            reading = self._reading[block] = asyncio.ensure_future(self._read(block))
        return await shared(reading)

    async def _read(self, block: At) -> Rows[R]:
        try:
            return self._blocks.keep(block, await asyncio.to_thread(self._load, *block))
        finally:
            del self._reading[block]

    def _load(self, number: int, block: int) -> Rows[R]:
        records = self._records.get(number)
        if records is not None:
            return records.read(self._file(number), block * self._frames, self._frames, self._kind)
        return self._part(number).block(block, self._frames, self._kind)

    def _part(self, number: int) -> Part:
        """The part of that number. The last few stay open, so that their footers are read once."""
        part = self._open.get(number)
        if part is None:
            part = open_part(self._place, self._kind, self._names[number])
            self._note(number, part)
            if not part.is_growing:
                self._open[number] = part
                if len(self._open) > OPEN_PARTS:
                    self._open.pop(next(iter(self._open)), None)
        return part

    def _note(self, number: int, part: Part) -> None:
        """Remember how the part of that number is read."""
        self._block_rows[number] = part.block_rows(self._frames)
        if part.is_growing:
            self._partial.add(self._names[number])
            return
        self._partial.discard(self._names[number])
        if part.records is not None:
            self._records[number] = part.records

    def _file(self, number: int) -> StoredFile:
        """The file of the part of that number."""
        file = self._files.get(number)
        if file is None:
            file = self._files[number] = self._place.open(self._names[number])
        return file


def _row(rows: Rows[R], at: int, key: bytes) -> R | None:
    """The row at `at`, if it has that key: an index has only half of it, and a journal may have lost its last rows."""
    row = rows[at] if at < len(rows) else None
    return row if row is not None and row.key == key else None


def scan(store: Place, kind: TableKind[Any], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The tables of all live parts of `kind` in `store`, oldest first."""
    place = store / kind.name
    for name in live_parts(place):
        yield open_part(place, kind, name).read(columns)


def answering(retry_unscored: bool) -> Callable[[str | None], bool]:
    """Whether a row with a reason answers: with `retry_unscored` only scored ones, else all but transient failures."""
    return (lambda reason: reason is None) if retry_unscored else (lambda reason: reason not in TRANSIENT)


class Table(Generic[R]):
    """The base of the stores of judgments, pages and scorecards.

    Use from one event loop; call `open` before the first look-up, and `close` at the end.
    """

    def __init__(self, parts: PartStore[R]) -> None:
        self._parts = parts

    @property
    def name(self) -> str:
        """The name of the table, which is also the name of its folder."""
        return self._parts.table

    @property
    def rows(self) -> int:
        """Rows that answer: indexed ones and those not yet written."""
        return self._parts.rows

    @property
    def unwritten(self) -> int:
        """Rows that are buffered for the next part."""
        return self._parts.writer.unwritten

    @property
    def written(self) -> int:
        """Rows written since this object was made."""
        return self._parts.writer.written

    @property
    def written_bytes(self) -> int:
        """Bytes of Parquet written since this object was made."""
        return self._parts.writer.written_bytes

    @property
    def set_aside(self) -> int:
        """Rows left out since this object was made because no file can hold them."""
        return self._parts.writer.set_aside

    @property
    def healthy(self) -> bool:
        """Whether the last attempt to write a part succeeded. Attempts go on by themselves as long as it did not."""
        return self._parts.writer.failure is None

    async def open(self, every: bool = False) -> None:
        """Build the key index, of `every` row or only of rows that answer. Raises StoreError."""
        await self._parts.open(every)

    async def refresh(self) -> None:
        """Index the parts that other processes have written since, of rows that answer. Raises StoreError."""
        await self._parts.refresh()

    async def flush(self) -> None:
        """Write everything put so far. Raises StoreError; what could not be written is tried again."""
        await self._parts.writer.flush()

    async def close(self) -> None:
        """Write everything put so far. Raises StoreError if any part could not be written."""
        await self._parts.close()
