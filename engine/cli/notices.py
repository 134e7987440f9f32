"""What commands say beside their results: lines left out, how far a run is, and its standings.

What is said on stderr beside a result: lines that were left out, and how far an unfinished run is.

Leaderboards on a terminal.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from adjudge.engine.cli.output import out
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.runs.board import Leaderboard, MetricBoard
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import provisional
from adjudge.engine.tables.cells import bracketed
from adjudge.engine.tables.standings import Ranking, Standings, by_group, rankings, standings
from adjudge.engine.tables.terminal import Column, Sheet, Terminal
from adjudge.engine.telemetry.logs import event, is_json

__all__ = ["print_leaderboard", "rejected", "standings_sheet", "unfinished"]

_log = logging.getLogger(__name__)

_SHOWN_REJECTED = 20


def rejected(lines: Sequence[Rejected]) -> None:
    """Print the lines that were left out, on stderr."""
    if is_json():
        for line in lines[:_SHOWN_REJECTED]:
            event(_log, "line left out", logging.WARNING, why=str(line))
        return
    console = Terminal(stderr=True, soft_wrap=True, highlight=False)
    for line in lines[:_SHOWN_REJECTED]:
        console.print(f"left out: {line}", style="yellow", markup=False)
    if len(lines) > _SHOWN_REJECTED:
        console.print(f"left out: {len(lines) - _SHOWN_REJECTED} more lines", style="yellow")


def unfinished(folder: str) -> None:
    """Say on stderr how far the run in `folder` is, if it has not finished. Raises UsageError, StoreError."""
    run = Run.open(folder)
    if run.record.due is None:
        return
    said = provisional(run.record, run.scores)
    if is_json():
        event(_log, "run unfinished", logging.WARNING, why=said)
    elif said:
        Terminal(stderr=True, soft_wrap=True, highlight=False).print(said, style="yellow", markup=False)


_JOINED = ("rank interval", "interval", "bounds", "corrected interval")
_SPARE = {"scored": 1, "published": 2, "beside": 3, "unscored": 4}  # what gives way, the last first
_WORDS = ("group", "system", "unscored")


def print_leaderboard(board: Leaderboard, page: Path | None) -> None:
    """Print the tables of every protocol, notes, and the path of the page where one was written."""
    console = out()
    for ranking in rankings(board.metrics):
        console.print(_standings(ranking, board).table(console.width))
        if ranking.others:
            names = ", ".join(metric.metric for metric in ranking.others)
            where = "on the page, or with adjudge leaderboard --metric NAME"
            console.print(f"{ranking.title}: more metrics {where}: {names}", markup=False, soft_wrap=True)
    for metric in board.metrics:
        if metric.corrected_differences:
            console.print(_corrected_sheet(metric).table(console.width))
        if metric.published_agreement is not None:
            name = f"{metric.protocol}.{metric.metric}"
            console.print(f"{name} and published: {metric.published_agreement.line}", markup=False)
    for note in board.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if page is not None:
        console.print(f"page: {page}", markup=False, soft_wrap=True)


def _standings(ranking: Ranking, board: Leaderboard) -> Sheet:
    """The standings over all tasks, or by the attribute that was asked for."""
    for grouping in board.groupings:
        if grouping.attribute == board.by:
            title = f"{ranking.title} by {board.by} (judge: {ranking.head.judge}; {ranking.head.basis})"
            return standings_sheet(by_group(ranking, grouping).without("tier"), title)
    title = f"{ranking.title} (judge: {ranking.head.judge}; {ranking.head.basis})"
    return standings_sheet(standings(ranking).without("tier"), title)


def standings_sheet(found: Standings, title: str) -> Sheet:
    """The standings, an interval in the column of its value."""
    columns = tuple(
        Column(column.name, column.kind in _WORDS, _SPARE.get(column.kind, 0))
        for column in found.columns
        if column.kind not in _JOINED
    )
    blocks = []
    for rows in found.blocks:
        block: list[tuple[str, ...]] = []
        for row in rows:
            cells: list[str] = []
            for column, cell in zip(found.columns, row, strict=True):
                text = cell.text if cell.short is None else cell.short
                if column.kind in _JOINED:
                    cells[-1] = f"{cells[-1]} {text}".rstrip()
                else:
                    cells.append("" if column.kind == "group" and block else text)
            block.append(tuple(cells))
        blocks.append(tuple(block))
    return Sheet(title=title, columns=columns, blocks=tuple(blocks), elsewhere="leaderboard.csv or --json")


def _corrected_sheet(metric: MetricBoard) -> Sheet:
    """The judge's differences between systems, and those corrected by people's scores."""
    rows = []
    for row in metric.corrected_differences:
        found = row.corrected
        figures = (
            (row.raw, row.raw_low, row.raw_high),
            (found.value, found.low, found.high),
            (found.people, found.people_low, found.people_high),
        )
        cells = (bracketed(value, low, high, metric) for value, low, high in figures)
        rows.append((row.a, row.b, *cells, f"{found.n_labelled:,}"))
    return Sheet(
        title=f"{metric.protocol}.{metric.metric}: differences, the judge's and corrected by people",
        columns=(
            Column("system", words=True),
            Column("minus", words=True),
            Column("judge"),
            Column("corrected"),
            Column("people alone", spare=2),
            Column("labelled", spare=1),
        ),
        blocks=(tuple(rows),),
    )
