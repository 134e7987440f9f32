"""Housekeeping of a store: list it, merge small parts, drop old rows, and repair it.

A rewritten part names the parts it replaces. They are ignored from then on and deleted a day later, so that processes
still reading them can finish. Nothing else is ever deleted, and nothing is edited in place. Repair moves damaged parts
aside so that the rest of the store can be used. A lease keeps two processes from rewriting one store at once.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.errors import UsageError
from adjudge.engine.store.journal import Catalog, open_part, read_catalog, take_in_leftovers, writer_of
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.pages import PAGES
from adjudge.engine.store.part import SCHEMA_VERSION, Part, TableKind, current, stamped, write_part
from adjudge.engine.store.place import DamagedPart, MissingFile, Place, Renew, StoredFile, housekeeping
from adjudge.engine.store.rows import whole
from adjudge.engine.store.scorecards import SCORECARDS
from adjudge.scoring.contract.reasons import TRANSIENT

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
]

TABLES: tuple[TableKind[Any], ...] = (JUDGMENTS, PAGES, SCORECARDS)
KEPT_SECONDS = 86_400
_BATCH_BYTES = 256 << 20
_SMALL_BYTES = 64 << 20

Kept = Callable[[pa.Table], pa.Table]


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


class Rewritten(msgspec.Struct, frozen=True, kw_only=True):
    """The result of housekeeping for one table."""

    table: str
    parts_before: int
    parts_after: int
    rows_before: int
    rows_after: int
    deleted: int


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
    parts = [open_part(folder, kind, name) for name in live]
    tables = [part.read(read) for part in parts]
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
        versions=dict(Counter(str(part.version) for part in parts)),
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
        return [_rewrite(place / kind.name, kind, _winners, renew, small_only=True) for kind in TABLES]


def prune(place: Place, *, days: float | None = None, judge: str | None = None) -> list[Rewritten]:
    """Drop rows written more than `days` ago; with `judge`, drop only judgments with that fingerprint.

    A row without a time (a page of a snapshot) never counts as old. Raises StoreError.
    """
    oldest = None if days is None else (time.time() - days * 86_400) * 1e6

    def kept(table: pa.Table) -> pa.Table:
        going = pa.array(np.ones(len(table), bool))
        if oldest is not None:
            written = table["written_at"].cast(pa.int64())
            going = pc.and_(pc.greater(written, 0), pc.less(written.cast(pa.float64()), oldest))
        if judge is not None:
            going = pc.and_(going, pc.equal(pc.cast(table["judge"], pa.string()), judge))
        return table.filter(pc.invert(going))

    tables = TABLES if judge is None else (JUDGMENTS,)
    with housekeeping(place) as renew:
        return [_rewrite(place / kind.name, kind, kept, renew, small_only=False) for kind in tables]


def _rewrite(folder: Place, kind: TableKind[Any], kept: Kept, renew: Renew, *, small_only: bool) -> Rewritten:
    if kind.journaled:
        take_in_leftovers(folder, kind)
    catalog = read_catalog(folder)
    deleted = _delete_replaced(folder, catalog, renew)
    live = catalog.live
    sizes = {name: each.size for name, each in folder.listed().items()}
    old = {name for name in live if catalog.versions[name] < SCHEMA_VERSION}
    candidates = [name for name in live if not small_only or name in old or sizes[name] < _SMALL_BYTES]
    parts_after, before, after = len(live), 0, 0
    for names in _batches(sizes, candidates):
        parts, tables = [], []
        for each in names:
            renew()
            parts.append(open_part(folder, kind, each))
            tables.append(current(parts[-1].read(), kind))
        table = pa.concat_tables(tables).unify_dictionaries()
        rest = kept(table)
        before, after = before + len(table), after + len(rest)
        if len(rest) == len(table) and len(names) == 1 and names[0] not in old:
            continue
        if "group" in rest.column_names:
            rest = rest.sort_by([("group", "ascending"), ("key", "ascending")])
        name = f"{time.time_ns():020d}-{secrets.token_hex(8)}-rewritten.parquet"
        schema = stamped(kind.schema, _replaced(names, catalog), _contained(names, parts))
        renew()
        write_part(folder, name, rest.replace_schema_metadata(schema.metadata), kind)
        parts_after += 1 - len(names)
    return Rewritten(
        table=kind.name,
        parts_before=len(live),
        parts_after=parts_after,
        rows_before=before,
        rows_after=after,
        deleted=deleted,
    )


def _replaced(names: list[str], catalog: Catalog) -> list[str]:
    """`names`, and what these replace as long as it is there: it must not come back when they are deleted."""
    found = set(names)
    while more := {old for old, new in catalog.replaced_by.items() if new in found and old not in found}:
        found |= more
    return sorted(found)


def _contained(names: list[str], parts: list[Part]) -> dict[str, int]:
    """Of each writer, the number of the last part among `names` or among those that their `parts` replaced."""
    known = [each for part in parts for each in part.segments.items()]
    found: dict[str, int] = {}
    for writer, number in [*known, *map(writer_of, names)]:
        if writer:
            found[writer] = max(number, found.get(writer, -1))
    return found


def _batches(sizes: dict[str, int], names: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for name in names:
        batch.append(name)
        size += sizes[name]
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _delete_replaced(folder: Place, catalog: Catalog, renew: Renew) -> int:
    """Delete parts that were replaced more than a day ago, by the name of the part that replaces them.

    Void parts go first: without the parts that they replace, they would count again.
    """
    replaced = [old for old, new in catalog.replaced_by.items() if _age(new) > KEPT_SECONDS]
    void = [name for name in catalog.void if _age(name) > KEPT_SECONDS]
    gone = void + replaced if len(void) == len(catalog.void) else void
    for name in gone:
        renew()
        folder.delete(name)
    return len(gone)


def _age(name: str) -> float:
    """The seconds since the part `name` was written; 0 if its name does not say."""
    written = name.partition("-")[0]
    return time.time() - int(written) / 1e9 if written.isdecimal() else 0.0


def _winners(table: pa.Table) -> pa.Table:
    """The rows of `table` that a look-up can return; every row of a table without keys."""
    if "run" in table.column_names or len(table) == 0:
        return table
    reasons = pc.cast(table["reason"], pa.string())
    transient = pc.is_in(reasons, value_set=pa.array(sorted(TRANSIENT), pa.string()))
    keys = table["key"].combine_chunks()
    written = table["written_at"].cast(pa.int64())
    later = pc.if_else(transient, pc.subtract(0, written), written)
    ordered = pa.table({"key": keys, "failed": transient, "at": later, "row": np.arange(len(table))}).sort_by(
        [("key", "ascending"), ("failed", "ascending"), ("at", "ascending"), ("row", "ascending")]
    )
    sorted_keys = ordered["key"].combine_chunks()
    different = pc.not_equal(sorted_keys[1:], sorted_keys[:-1]).to_numpy(zero_copy_only=False)
    first = np.concatenate([[True], different])
    return table.take(pa.array(np.sort(ordered["row"].to_numpy()[first])))


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
    part = Part(StoredFile(file.where, pa.BufferReader(data)))
    for group in range(len(part.groups)):
        current(part.group(group), kind)
    for frame in range(len(part.records or ())):
        for _ in part.block(frame, 1, kind):
            pass
