"""`adjudge ls`: the runs in a folder."""

import argparse
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.output import out, print_as_table
from adjudge.engine.runs.listed import ListedRun, runs_in
from adjudge.engine.tables.cells import leaders, number
from adjudge.engine.tables.table import Column, Table
from adjudge.judges.plural import plural


def run(options: argparse.Namespace) -> int:
    """List the runs in a folder."""
    found = runs_in(options.folder)
    if not found and not options.json:
        out().print(f"no runs in {options.folder}", markup=False, soft_wrap=True)
    else:
        print_as_table(options, found, _table, lambda found: _said(found, options.folder))
    return DONE


def _said(found: list[ListedRun], folder: str) -> str:
    unreadable = [f"{one.folder}: {one.why}" for one in found if one.state == "unreadable"]
    return "\n".join([f"{plural(len(found), 'run')} in {folder}", *unreadable])


def _table(found: Iterable[ListedRun]) -> Table:
    """A block of lines for each run: the first has what it is, and each line one of its headlines."""
    return Table.of(
        columns=(
            Column("date", words=True),
            Column("run", words=True),
            Column("judge", words=True, spare=1),
            Column("commit", words=True, spare=2),
            Column("headline", words=True),
            Column("best"),
            Column("system", words=True),
            Column("cost", spare=3),
            Column("state", words=True),
        ),
        blocks=[list(_lines(one)) for one in found],
    )


def _lines(one: ListedRun) -> Iterator[tuple[str, ...]]:
    when = "-" if one.started is None else f"{datetime.fromtimestamp(one.started, UTC):%Y-%m-%d %H:%M}"
    first = (when, one.folder, one.judge or "-", one.commit or "-")
    state = f"{one.state}: {one.why}" if one.state == "stopped" else one.state
    shown = leaders(one) or [(", ".join(one.protocols) or "-", "-", "-")]
    for at, cells in enumerate(shown):
        yield (
            *(("",) * len(first) if at else first),
            *cells,
            *(("", "") if at else (number(one.cost), state)),
        )
