"""The writing half of a table: rows are buffered and journaled, then written as parts, with retries.

Only the loss of the machine loses a row after `put`: until its part is written, it is in memory and in the journal.
While parts cannot be written, `put` keeps the row and raises, and the next attempt follows on its own.

The key index is a sorted array of the keys' first 64 bits and their rows' locations, 16 bytes per row, behind a filter.
"""

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from adjudge.engine.errors import StoreError
from adjudge.engine.store.compaction import MANY, merge_small
from adjudge.engine.store.journal import Journal, take_in_leftovers
from adjudge.engine.store.part import Frames, R, TableKind, record_of, write_part
from adjudge.engine.store.place import Place, journal_folder
from adjudge.engine.store.rows import UNSTORABLE, Columns, cleaned, set_aside
from adjudge.fetchers.flight import shared

__all__ = ["FLUSH_SECONDS", "KeyIndex", "Locations", "Prefixes", "Writer", "prefixes"]

_log = logging.getLogger(__name__)

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
        """The places of those `keys`, 16 bytes after 16 bytes, that have no row, in order."""
        prefix = prefixes_of(keys)
        order = np.argsort(prefix)  # neighbours are found faster: what leads to them is in the cache
        wanted = prefix[order]
        lacks = np.ones(len(wanted), bool)
        for known, _ in self._runs:
            at = np.minimum(known.searchsorted(wanted), len(known) - 1)
            lacks &= known[at] != wanted
        places: list[int] = np.sort(order[lacks]).tolist()
        return places


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


FLUSH_BYTES = 32 << 20
FLUSH_SECONDS = 2.0
SYNC_SECONDS = 1.0

OnPart = Callable[[str, int, Prefixes, Locations], Awaitable[None]]


class Batch(Generic[R]):
    """The rows of the part to be called `name`, in the order they came, and their journal.

    They are kept as what the part will have of them, columns and frames. `answering` has the number of the first row of
    each key that answers.
    """

    def __init__(self, name: str, kind: TableKind[R], journal: Journal | None) -> None:
        self.name = name
        self.journal = journal
        self.journaling = journal is not None
        self.columns = Columns(kind)
        self.frames = Frames(kind.frame) if kind.frame else None
        self.answering: dict[bytes, int] = {}
        self.size = 0

    def add(self, row: R, record: bytes, size: int, *, answers: bool) -> None:
        """Add `row`, of about `size` bytes, and its `record`; `answers` says whether its key finds it."""
        if answers:
            self.answering.setdefault(row.key, len(self.columns))
        self.columns.add(row)
        if self.frames is not None:
            self.frames.add(record)
        self.size += size

    def indexed(self) -> tuple[Prefixes, Locations]:
        """Prefix and row in the part of each key that answers."""
        lost = np.array(self.columns.lost, np.uint64)
        prefix = prefixes_of(b"".join(self.answering))
        row = np.fromiter(self.answering.values(), np.uint64, len(prefix))
        kept = ~np.isin(row, lost)
        return prefix[kept], row[kept] - np.searchsorted(lost, row[kept]).astype(np.uint64)


class Writer(Generic[R]):
    """Writes rows of `kind` to the table at `place`. Use from one event loop.

    `on_part` is awaited with the name of a part, how many rows it has, and prefix and row of each key that answers.
    `failure` is the error of the last attempt to write, None if it succeeded; `set_aside` counts rows that could not be
    stored.
    """

    def __init__(self, place: Place, kind: TableKind[R], flush_seconds: float, on_part: OnPart) -> None:
        self.name = secrets.token_hex(8)
        self.failure: StoreError | None = None
        self.set_aside = 0
        self.written = 0
        self.written_bytes = 0
        self._place = place
        self._kind = kind
        self._flush_seconds = flush_seconds
        self._on_part = on_part
        # At most two: one whose writing has begun, and one that is still filled.
        self._batches: list[Batch[R]] = []
        self._sealed = False  # whether the first batch is complete
        self._begun = 0
        self._leftovers = kind.journaled
        self._journals = kind.journaled
        self._timer: asyncio.TimerHandle | None = None
        self._sync_timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._merging: asyncio.Task[None] | None = None
        self._unmerged = (
            MANY  # parts since small ones were merged; the first looks after those of earlier processes
        )

    @property
    def unwritten(self) -> int:
        """Rows that are not yet in a part."""
        return sum(len(batch.columns) for batch in self._batches)

    @property
    def answering(self) -> int:
        """Rows that answer and are not yet in a part."""
        return sum(len(batch.answering) for batch in self._batches)

    def has(self, key: bytes) -> bool:
        """Whether a row that is not yet in a part answers `key`."""
        return any(key in batch.answering for batch in self._batches)

    def find(self, key: bytes) -> R | None:
        """The first row that answers `key` and is not yet in a part, or None."""
        for batch in self._batches:
            at = batch.answering.get(key)
            if at is not None:
                return batch.columns[at]
        return None

    def put(self, rows: Iterable[tuple[R, int, bool]]) -> None:
        """Keep `rows` for the next part, each with its size in bytes, roughly, and whether its key finds it.

        A row that cannot be stored is logged and counted. Raises StoreError, and keeps nothing, if parts cannot be
        written and 32 MB wait already.
        """
        if self.failure is not None and sum(batch.size for batch in self._batches) >= FLUSH_BYTES:
            raise self.failure
        batch = self._filling()
        records = []
        for given, size, answers in rows:
            if (kept := self._kept(given)) is not None:
                row, record = kept
                batch.add(row, record, size, answers=answers)
                records.append(record)
        if records and batch.journal is not None and batch.journaling:
            self._append(batch, batch.journal, records)
        if batch.size >= FLUSH_BYTES and self.failure is None:
            self._begin_flush()
        elif self._timer is None:
            self._wait()

    def _filling(self) -> Batch[R]:
        """The batch that takes rows."""
        if len(self._batches) == self._sealed:
            name = f"{time.time_ns():020d}-{self.name}-{self._begun:06d}.parquet"
            self._begun += 1
            self._batches.append(Batch(name, self._kind, self._journal(name)))
        return self._batches[-1]

    def _journal(self, name: str) -> Journal | None:
        if not self._kind.journaled:
            return None
        try:
            journal = Journal.begun(journal_folder(self._place), name, self._kind.columns)
        except OSError as error:
            self._without_journal(error)
            return None
        self._journals = True
        return journal

    def _without_journal(self, error: OSError) -> None:
        if self._journals:
            _log.warning(
                "%s: no journal: %s; a kill now loses the rows of up to %g s",
                self._place.uri,
                error.strerror or error,
                self._flush_seconds,
            )
        self._journals = False

    def _kept(self, row: R) -> tuple[R, bytes] | None:
        """The row as it can be stored, and its record; None if no file can hold it."""
        try:
            try:
                return row, record_of(row)
            except UnicodeError:
                row = cleaned(row)
                return row, record_of(row)
        except UNSTORABLE as error:
            self.set_aside += 1
            set_aside(self._kind, row, error)
            return None

    def _append(self, batch: Batch[R], journal: Journal, records: list[bytes]) -> None:
        try:
            journal.append(records)
        except OSError as error:
            self._without_journal(error)
            batch.journaling = False  # what it has stays, and stays locked, until the part is written
            return
        if self._sync_timer is None:
            self._sync_timer = asyncio.get_running_loop().call_later(SYNC_SECONDS, self._sync_due)

    def _sync_due(self) -> None:
        self._sync_timer = None
        open_ones = [batch.journal for batch in self._batches if batch.journal is not None]
        if open_ones:
            syncing = asyncio.ensure_future(asyncio.to_thread(_sync, open_ones))
            syncing.add_done_callback(self._synced)

    def _synced(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and isinstance(error := task.exception(), OSError):
            self._without_journal(error)

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        self._begin_flush()

    def _begin_flush(self) -> "asyncio.Task[None]":
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush())
            self._flushing.add_done_callback(self._flushed)
        return self._flushing

    def _flushed(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            if self.failure is not None:
                _log.warning("%s: can be written again", self._place.uri)
            self.failure = None
            self._begin_merge()
        else:
            failure = error if isinstance(error, StoreError) else StoreError(f"{self._place.uri}: {error!r}")
            if self.failure is None:
                _log.error("%s; %d rows wait to be written", failure, self.unwritten)
            self.failure = failure
        if self._batches and self._timer is None:
            if self.failure is not None:
                self._wait()
            else:  # became due while the previous part was being written
                self._begin_flush()

    def _begin_merge(self) -> None:
        # One that wrote nothing may know but some of the columns: see `KeptCards`.
        if self.written and self._unmerged >= MANY and (self._merging is None or self._merging.done()):
            self._unmerged = 0
            self._merging = asyncio.ensure_future(asyncio.to_thread(self._merge))

    def _merge(self) -> None:
        try:
            merge_small(self._place, self._kind)
        except StoreError as error:  # they stay as they are until the next time
            _log.warning("%s; small parts stay unmerged", error)

    async def flush(self) -> None:
        """Write everything put so far. Raises StoreError; what could not be written is tried again."""
        while self._flushing is not None and not self._flushing.done():
            await asyncio.wait([self._flushing])
        await shared(self._begin_flush())  # a cancelled caller must not cancel the writing

    async def _flush(self) -> None:
        self._stop_timer()
        if not self._batches:
            return
        if self._leftovers:
            await asyncio.to_thread(self._take_in_leftovers)
        for batch in list(self._batches):
            self._sealed = True
            await self._write(batch)
            self._batches.remove(batch)
            self._sealed = False

    def _take_in_leftovers(self) -> None:
        try:
            take_in_leftovers(self._place, self._kind)
        except StoreError as error:  # they are read where they are
            _log.warning("%s; the journals of earlier processes stay", error)
        self._leftovers = False

    async def _write(self, batch: Batch[R]) -> None:
        table = await asyncio.to_thread(batch.columns.table)
        lost = len(batch.columns.lost)
        if len(table):
            frames = None if lost else batch.frames
            size = await asyncio.to_thread(write_part, self._place, batch.name, table, self._kind, frames)
            self.written_bytes += size
            self._unmerged += 1
            self.written += len(table)
        self.set_aside += lost
        await self._on_part(batch.name, len(table), *await asyncio.to_thread(batch.indexed))
        if batch.journal is not None:
            await asyncio.to_thread(_discard, batch.journal)

    async def close(self) -> None:
        """Write everything put so far. Raises StoreError; what could not be written stays in its journal."""
        try:
            await self.flush()
            if self._merging is not None:
                await asyncio.wait([self._merging])
        finally:
            self._stop_timer()
            if self._sync_timer is not None:
                self._sync_timer.cancel()
            for batch in self._batches:
                if batch.journal is not None:
                    batch.journal.close()
                    batch.journal = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _sync(journals: list[Journal]) -> None:
    for journal in journals:
        journal.sync()


def _discard(journal: Journal) -> None:
    try:
        journal.discard()
    except OSError as error:  # its part has its name, so it is passed over
        _log.warning("%s: cannot be deleted: %s", journal.path, error.strerror)
