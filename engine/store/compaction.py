"""Rewriting parts: several small ones become one, under the lease of the store.

A rewritten part names the parts it replaces. They are ignored from then on and deleted a day later, so that processes
still reading them can finish; a reader that finds one gone looks for what replaced it. A kill at any moment leaves the
rows as they were: until the new part is there, whole, the old ones count, and from then on they do not.

Writers merge their table's small parts as they go, so that a table has at most MANY parts of each of four sizes, and
each row is rewritten about four times in its life. Parts of 32 MB and more stay as they are.
"""

import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.store.journal import Catalog, open_part, read_catalog, take_in_leftovers, writer_of
from adjudge.engine.store.part import SCHEMA_VERSION, TableKind, current, stamped, write_part
from adjudge.engine.store.place import Place, Renew, if_free
from adjudge.scoring.contract.reasons import TRANSIENT

__all__ = ["KEPT_SECONDS", "MANY", "Kept", "Rewritten", "merge_small", "rewrite", "winners"]

KEPT_SECONDS = 86_400
REWRITTEN, MERGED = "-rewritten.parquet", "-merged.parquet"
MANY = 32
_MERGED_BYTES = 32 << 20
_BATCH_BYTES = 256 << 20
_SMALL_BYTES = 64 << 20

Kept = Callable[[pa.Table], pa.Table]


class Rewritten(msgspec.Struct, frozen=True, kw_only=True):
    """The result of housekeeping for one table."""

    table: str
    parts_before: int
    parts_after: int
    rows_before: int
    rows_after: int
    deleted: int


def rewrite(folder: Place, kind: TableKind[Any], kept: Kept, renew: Renew, *, small_only: bool) -> Rewritten:
    """Rewrite the rows that `kept` keeps of every part of a table, or of its small ones and those of older versions.

    `renew` is of the store's lease. Raises StoreError.
    """
    if kind.journaled:
        take_in_leftovers(folder, kind)
    catalog = read_catalog(folder)
    deleted = _delete_replaced(folder, catalog, renew)
    sizes = {name: each.size for name, each in folder.listed().items()}
    old = {name for name, version in catalog.versions.items() if version < SCHEMA_VERSION}
    candidates = [
        name for name in catalog.live if not small_only or name in old or sizes[name] < _SMALL_BYTES
    ]
    parts_after, before, after = len(catalog.live), 0, 0
    for names in _batches(sizes, candidates, _BATCH_BYTES):
        found, rows = _read(folder, kind, names, renew)
        rest = kept(rows)
        before, after = before + len(rows), after + len(rest)
        if len(rest) < len(rows) or len(names) > 1 or names[0] in old:
            _replace(folder, kind, catalog, names, found, rest, renew, REWRITTEN)
            parts_after += 1 - len(names)
    return Rewritten(
        table=kind.name,
        parts_before=len(catalog.live),
        parts_after=parts_after,
        rows_before=before,
        rows_after=after,
        deleted=deleted,
    )


def merge_small(folder: Place, kind: TableKind[Any]) -> int:
    """Merge the small parts of a table where there are many; how many were merged. Raises StoreError.

    Nothing is done while another process holds the store's lease.
    """
    small = [name for name, each in folder.listed().items() if each.size < _MERGED_BYTES]
    if len(small) < MANY:
        return 0
    merged = 0
    with if_free(folder.parent) as renew:
        if renew is None:
            return 0
        while True:
            catalog = read_catalog(folder)
            _delete_replaced(folder, catalog, renew)
            sizes = {name: each.size for name, each in folder.listed().items()}
            many = _many([name for name in catalog.live if sizes[name] < _MERGED_BYTES], sizes)
            if not many:
                return merged
            for names in _batches(sizes, many, _MERGED_BYTES):
                if len(names) > 1:
                    found, rows = _read(folder, kind, names, renew)
                    _replace(folder, kind, catalog, names, found, winners(rows), renew, MERGED)
                    merged += len(names)


def _many(names: list[str], sizes: Mapping[str, int]) -> list[str]:
    """Those `names` that are to be merged: the parts of the smallest size of which there are many, and smaller ones."""
    by_class: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        by_class[(sizes[name] >> 14).bit_length() // 3].append(name)  # to 64 kB, 512 kB, 4 MB, 32 MB
    smaller: list[str] = []
    for _, some in sorted(by_class.items()):
        smaller += some
        if len(some) >= MANY:
            return sorted(smaller)
    return []


def _read(
    folder: Place, kind: TableKind[Any], names: list[str], renew: Renew
) -> tuple[dict[str, int], pa.Table]:
    """The rows of the parts `names`, and of each writer the number of the last part among them or in them."""
    tables = []
    segments: dict[str, int] = {}
    for name in names:
        renew()
        part = open_part(folder, kind, name)
        tables.append(current(part.read(), kind))
        for writer, number in [*part.segments.items(), writer_of(name)]:
            if writer:
                segments[writer] = max(number, segments.get(writer, -1))
    return segments, pa.concat_tables(tables).unify_dictionaries()


def _replace(
    folder: Place,
    kind: TableKind[Any],
    catalog: Catalog,
    names: list[str],
    segments: dict[str, int],
    rows: pa.Table,
    renew: Renew,
    ending: str,
) -> None:
    """Write `rows` as the part that replaces `names`."""
    if "group" in rows.column_names:
        rows = rows.sort_by([("group", "ascending"), ("key", "ascending")])
    schema = stamped(kind.schema, _replaced(names, catalog), segments)
    renew()
    name = f"{time.time_ns():020d}-{secrets.token_hex(8)}{ending}"
    write_part(folder, name, rows.replace_schema_metadata(schema.metadata), kind)


def _replaced(names: list[str], catalog: Catalog) -> list[str]:
    """`names`, and what these replace as long as it is there: it must not come back when they are deleted."""
    found = set(names)
    while more := {old for old, new in catalog.replaced_by.items() if new in found and old not in found}:
        found |= more
    return sorted(found)


def _batches(sizes: Mapping[str, int], names: list[str], most: int) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for name in names:
        batch.append(name)
        size += sizes[name]
        if size >= most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _delete_replaced(folder: Place, catalog: Catalog, renew: Renew) -> int:
    """Delete parts that were replaced long ago, by the name of the part that replaces them.

    Void parts go first: without the parts that they replace, they would count again.
    """
    replaced = [old for old, new in catalog.replaced_by.items() if _is_past(new)]
    void = [name for name in catalog.void if _is_past(name)]
    gone = void + replaced if len(void) == len(catalog.void) else void
    for name in gone:
        renew()
        folder.delete(name)
    return len(gone)


def _is_past(name: str) -> bool:
    """Whether nobody should still read what the part `name` replaced."""
    written = name.partition("-")[0]
    return written.isdecimal() and time.time() - int(written) / 1e9 > KEPT_SECONDS


def winners(table: pa.Table) -> pa.Table:
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
