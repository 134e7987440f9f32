"""`adjudge store`: lists what a store holds, and housekeeping."""

import argparse
from collections.abc import Iterable
from datetime import UTC, datetime

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.output import out, print_result, print_table
from adjudge.engine.errors import UsageError
from adjudge.engine.store import upkeep
from adjudge.engine.tables.table import Column, Table
from adjudge.judges.plural import plural


def run(options: argparse.Namespace) -> int:
    """List, compact, prune or repair a store."""
    place = upkeep.existing(options.uri)
    if options.action == "ls":
        print_result(options, upkeep.contents(place), lambda found: print_table(_contents_table(found)))
    elif options.action == "compact":
        print_result(options, upkeep.compact(place), _print_rewritten)
    elif options.action == "repair":
        print_result(options, upkeep.repair(place), _print_repaired)
    elif options.days is None and options.of is None:
        raise UsageError("store prune: nothing chosen; pass --days N, --of JUDGE, or both")
    else:
        print_result(options, upkeep.prune(place, days=options.days, judge=options.of), _print_rewritten)
    return DONE


def _contents_table(found: Iterable[upkeep.TableContent]) -> Table:
    """One line per table of a store, and one per kind of row in it."""
    rows: list[tuple[str, ...]] = []
    for row in found:
        size = f"{row.bytes / 1e6:,.1f}"
        rows.append(
            (row.table, f"{row.rows:,}", f"{row.parts:,}", size, _when(row.oldest), _when(row.newest))
        )
        counted = [
            *row.kinds.items(),
            *((f"unscored: {reason}", count) for reason, count in row.reasons.items()),
            *((kind.replace("_", " "), count) for kind, count in row.tokens.items()),
        ]
        rows += [(f"  {kind}", f"{count:,}", "", "", "", "") for kind, count in counted]
        rows += [
            (f"  schema version {one}", "", f"{count:,}", "", "", "") for one, count in row.versions.items()
        ]
    figures = (Column(name) for name in ("rows", "parts", "MB", "oldest", "newest"))
    return Table.of(columns=(Column("table", words=True), *figures), blocks=[rows])


def _when(seconds: float | None) -> str:
    return "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def _print_rewritten(found: Iterable[upkeep.Rewritten]) -> None:
    """Print what compacting or pruning a store did."""
    for row in found:
        out().print(
            f"{row.table}: {plural(row.parts_before, 'part')} -> {row.parts_after}, "
            f"{plural(row.rows_before, 'row')} read, {row.rows_before - row.rows_after:,} left out, "
            f"{plural(row.deleted, 'old file')} deleted",
            markup=False,
            soft_wrap=True,
        )


def _print_repaired(found: Iterable[upkeep.Repaired]) -> None:
    """Print what repairing a store found."""
    for row in found:
        out().print(f"{row.table}: {plural(row.parts, 'part')}, {len(row.moved)} moved aside", markup=False)
        for name in row.moved:
            out().print(f"  damaged, now {row.table}/{upkeep.ASIDE}/{name}", markup=False, soft_wrap=True)
