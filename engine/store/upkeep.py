"""Housekeeping of a store: list it, merge small parts, drop old rows, and repair it.

Parts are rewritten as in `compaction.py`. Repair moves damaged parts aside so that the rest of the store can be used. A
lease keeps two processes from rewriting one store at once.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.errors import StoreError, UsageError
from adjudge.engine.store.compaction import Rewritten, merge_small, rewrite, winners
from adjudge.engine.store.journal import open_part, read_catalog
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.pages import PAGES
from adjudge.engine.store.part import Part, TableKind, current
from adjudge.engine.store.parts import scan
from adjudge.engine.store.place import DamagedPart, MissingFile, Place, StoredFile, housekeeping
from adjudge.engine.store.rows import whole
from adjudge.engine.store.scorecards import SCORECARDS, referred_to

__all__ = [
    "ASIDE",
    "TABLES",
    "Repaired",
    "Rewritten",
    "TableContent",
    "compact",
    "contents",
    "existing",
    "prune",
    "repair",
    "tidied",
]

_log = logging.getLogger(__name__)

TABLES: tuple[TableKind[Any], ...] = (JUDGMENTS, PAGES, SCORECARDS)


class TableContent(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a store: live parts and their rows, bytes on disk of all its files, and rows by kind.

    `kinds` counts judgments by judge, pages by source, scorecards by run; `reasons` counts rows without an answer.
    `oldest` and `newest` are when rows were written, in seconds since the epoch, UTC; None if no row has a time.
    `versions` counts parts by schema version, `tokens` sums the tokens of judgments by kind.
    """

    table: str
    parts: int
    files: int
    rows: int
    bytes: int
    kinds: dict[str, int]
    reasons: dict[str, int]
    oldest: float | None
    newest: float | None
    versions: dict[str, int]
    tokens: dict[str, int]


_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens")
_KIND = {JUDGMENTS.name: "judge", PAGES.name: "source", SCORECARDS.name: "run"}


def existing(uri: str) -> Place:
    """The store at `uri`. Raises UsageError if there is no store, and StoreError if it cannot be read."""
    place = Place.of(uri)
    if not any((place / kind.name).is_folder() for kind in TABLES):
        raise UsageError(
            f"store: no store at {uri}; pass the path or URI in `store:` of a run's configuration"
        )
    return place


def contents(place: Place) -> list[TableContent]:
    """The contents of the store at `place`. Raises StoreError."""
    return [_content(place / kind.name, kind) for kind in TABLES]


def _content(folder: Place, kind: TableKind[Any]) -> TableContent:
    live, files = read_catalog(folder).names, folder.listed()
    counted = [name for name in _TOKENS if name in kind.schema.names]
    read = [_KIND[kind.name], "reason", "written_at", *counted]
    tables, versions = [], Counter[str]()
    for name in live:
        part = open_part(folder, kind, name)
        tables.append(part.read(read))
        versions[str(part.version)] += 1
    rows = pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema=kind.schema)
    times = rows["written_at"].cast(pa.int64())
    written = pc.min_max(times.filter(pc.greater(times, whole(0)))).as_py()
    return TableContent(
        table=kind.name,
        parts=len(live),
        files=len(files),
        rows=len(rows) if tables else 0,
        bytes=sum(each.size for each in files.values()),
        kinds=_counts(rows[_KIND[kind.name]]),
        reasons=_counts(rows["reason"].drop_null()),
        oldest=None if written["min"] is None else written["min"] / 1e6,
        newest=None if written["max"] is None else written["max"] / 1e6,
        versions=dict(versions),
        tokens={name: pc.sum(rows[name]).as_py() or 0 for name in counted},
    )


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    counted = pc.value_counts(pc.cast(column, pa.string()))
    return dict(sorted((entry["values"].as_py(), entry["counts"].as_py()) for entry in counted))


def compact(place: Place) -> list[Rewritten]:
    """Merge small parts, and drop rows that no reader would ever get. Raises StoreError.

    Of rows with the same key, the earliest that is not a transient failure is kept, or the last if all are. Parts of
    an older schema are rewritten in the current one. Parts replaced more than a day ago are deleted.
    """
    with housekeeping(place) as renew:
        return [rewrite(place / kind.name, kind, winners, renew, small_only=True) for kind in TABLES]


@asynccontextmanager
async def tidied(place: Place) -> AsyncIterator[None]:
    """Merge small parts that earlier processes left at `place`, in the background of the block."""
    merging = asyncio.ensure_future(asyncio.to_thread(_tidy, place))
    try:
        yield
    finally:
        await asyncio.wait([merging])


def _tidy(place: Place) -> None:
    for kind in TABLES:
        try:
            merge_small(place / kind.name, kind)
        except StoreError as error:
            _log.warning("%s; small parts stay unmerged", error)


def prune(place: Place, *, days: float | None = None, judge: str | None = None) -> list[Rewritten]:
    """Drop rows written more than `days` ago; with `judge`, drop only judgments with that fingerprint.

    A row without a time (a page of a snapshot) never counts as old, nor does a scorecard that a later run refers to.
    Raises StoreError.
    """
    oldest = None if days is None else (time.time() - days * 86_400) * 1e6

    def going(table: pa.Table) -> pa.Array | pa.ChunkedArray:
        found = pa.array(np.ones(len(table), bool))
        if oldest is not None:
            written = table["written_at"].cast(pa.int64())
            found = pc.and_(pc.greater(written, 0), pc.less(written.cast(pa.float64()), oldest))
        if judge is not None:
            found = pc.and_(found, pc.equal(pc.cast(table["judge"], pa.string()), judge))
        return found

    def kept(table: pa.Table) -> pa.Table:
        return table.filter(pc.invert(going(table)))

    def kept_scorecards(table: pa.Table) -> pa.Table:
        return table.filter(pc.invert(pc.and_not(going(table), pc.is_in(table["key"], referred))))

    with housekeeping(place) as renew:
        if judge is not None:
            return [rewrite(place / JUDGMENTS.name, JUDGMENTS, kept, renew, small_only=False)]
        referred = referred_to(map(kept, scan(place, SCORECARDS, ["same_as", "written_at"])))
        rules = {SCORECARDS.name: kept_scorecards}
        return [
            rewrite(place / kind.name, kind, rules.get(kind.name, kept), renew, small_only=False)
            for kind in TABLES
        ]


ASIDE = "damaged"  # the folder inside a table's


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a repair for one table: its number of parts, and those moved aside."""

    table: str
    parts: int
    moved: list[str]


def repair(place: Place) -> list[Repaired]:
    """Read every part of the store at `place`, and move damaged ones into the folder `damaged` of their table.

    What a moved part replaced counts again, if it is still there. Raises StoreError if a part cannot be read at all, or
    is of a later version: it may be whole.
    """
    with housekeeping(place) as renew:
        found = []
        for kind in TABLES:
            folder = place / kind.name
            names, moved = folder.files(), []
            for name in names:
                try:
                    _read_whole(folder, kind, name)
                except DamagedPart:
                    renew()
                    folder.move(name, ASIDE)
                    moved.append(name)
                except MissingFile:
                    continue
            found.append(Repaired(table=kind.name, parts=len(names), moved=moved))
        return found


def _read_whole(folder: Place, kind: TableKind[Any], name: str) -> None:
    """Read the part `name` from memory, where only damage can make it fail. Raises StoreError."""
    file = folder.open(name)
    data = file.read(0, file.size)
    part = Part(StoredFile(file.where, lambda: pa.BufferReader(data)))
    for group in range(len(part.groups)):
        current(part.group(group), kind)
    for frame in range(len(part.records or ())):
        for _ in part.block(frame, 1, kind):
            pass
