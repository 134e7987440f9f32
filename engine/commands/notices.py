"""What commands say beside their results: lines left out, how far an unfinished run is, and a leaderboard."""

import logging
from collections.abc import Sequence
from pathlib import Path

from adjudge.engine.commands.output import out, print_table
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.runs.board import Leaderboard, MetricBoard
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import provisional
from adjudge.engine.tables.cells import bracketed
from adjudge.engine.tables.sections import answers_table, overrides_table, unread_table
from adjudge.engine.tables.standings import of_board, rankings
from adjudge.engine.tables.table import Column, Table
from adjudge.engine.tables.terminal import Terminal
from adjudge.engine.telemetry.logs import event, is_json
from adjudge.judges.plural import plural

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
        console.print(f"left out: {plural(len(lines) - _SHOWN_REJECTED, 'more line')}", style="yellow")


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


def print_leaderboard(board: Leaderboard, page: Path | None) -> None:
    """Print the tables of every protocol, notes, and the path of the page where one was written."""
    console = out()
    if (unread := unread_table(board)) is not None:
        print_table(unread, unread.note)
    for ranking in rankings(board.metrics):
        print_table(of_board(ranking, board))
        if ranking.others:
            names = ", ".join(metric.metric for metric in ranking.others)
            where = "on the page, or with adjudge leaderboard --metric NAME"
            console.print(f"{ranking.title}: more metrics {where}: {names}", markup=False, soft_wrap=True)
    for metric in board.metrics:
        if metric.corrected_differences:
            print_table(_corrected(metric))
        if metric.published_agreement is not None:
            name = f"{metric.protocol}.{metric.metric}"
            console.print(f"{name} and published: {metric.published_agreement.line}", markup=False)
    if (answers := answers_table(board)) is not None:
        print_table(answers)
    if (overrides := overrides_table(board)) is not None:
        print_table(overrides, overrides.note)
    for note in board.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if page is not None:
        console.print(f"page: {page}", markup=False, soft_wrap=True)


def _corrected(metric: MetricBoard) -> Table:
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
    return Table.of(
        title=f"{metric.protocol}.{metric.metric}: differences, the judge's and corrected by people",
        columns=(
            Column("system", words=True),
            Column("minus", words=True),
            Column("judge"),
            Column("corrected"),
            Column("people alone", spare=2),
            Column("labelled", spare=1),
        ),
        blocks=[rows],
    )
