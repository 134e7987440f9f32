"""The first pages: the run with its systems by protocol, its tasks, and the leaderboard with links to the evidence."""

import asyncio

from adjudge.engine.runs.board import MetricBoard, Provenance
from adjudge.engine.tables.page import leaderboard_page, title_of
from adjudge.engine.tables.standings import Ranking, rankings, standings
from adjudge.engine.tables.table import Cell
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ListQuery, NotThere, ReportQuery, SystemQuery, address
from adjudge.engine.viewer.pages.frame import Column, Frame, Listing, Row, natural


class _Links:
    """The addresses of the viewer's pages."""

    def system(self, system: str, protocol: str, metric: str) -> str:
        return address("system", SystemQuery(system=system, protocol=protocol, metric=metric))

    def report(self, system: str, task: str, protocol: str) -> str:
        return address("report", ReportQuery(system=system, task=task, protocol=protocol))


async def board_page(run: OpenRun) -> str:
    """The page of the run's leaderboard. Raises NotThere if it cannot be read."""
    return await asyncio.to_thread(lambda: leaderboard_page(run.leaderboard_with_people(), _Links()))


_NOT_SHOWN = ("rank interval", "interval", "tier", "bounds", "scored")  # drawn, or the other side of a column
_WHOLE = ("unscored",)  # columns that say nothing where everything is scored


async def home(run: OpenRun, frame: Frame, query: ListQuery) -> str:
    """The run, and its systems by protocol."""
    try:
        board = await asyncio.to_thread(run.leaderboard_with_people)
        found, notes, why, title = rankings(board.metrics), board.notes, "", title_of(board)
    except NotThere as error:
        found, notes, why, title = [], (), str(error), ", ".join(run.record.metrics)
    names = sorted(run.record.systems, key=natural)
    return frame.show(
        "home.html.jinja",
        title,
        here="./",
        source=Provenance.of(run.record),
        about=run.record.config.board,
        notes=notes,
        why=why,
        filter=query.filter,
        systems=[(name, address("system", system=name)) for name in names],
        tables=[
            (ranking, _standings(run, ranking, number, query, frame.rows))
            for number, ranking in enumerate(found)
        ],
        open=any(row.open for ranking in found for row in ranking.head.standings),
    )


def _standings(run: OpenRun, ranking: Ranking, number: int, query: ListQuery, at_once: int) -> Listing:
    """The standings of one table, as the leaderboard has them; every column can be sorted."""
    is_whole = not any(row.n_unscored for row in ranking.head.standings)
    table = standings(ranking).shown.without(*_NOT_SHOWN, *(_WHOLE if is_whole else ()))
    # The first column heads the rows.
    table = table.arranged([table.head, *(at for at in range(len(table.columns)) if at != table.head)])
    known = frozenset(run.record.systems)
    rows: list[Row] = []
    for cells in table.rows:
        system = cells[0].text
        keys = {
            f"{number}.{column.name}": cell.sort for column, cell in zip(table.columns, cells, strict=True)
        }
        rows.append(
            {
                **keys,
                f"{number}.system": system,
                "system": system,
                "cells": [
                    (column, cell, _leads_to(column.kind, cell, ranking.head, system, known))
                    for column, cell in zip(table.columns, cells, strict=True)
                ],
            }
        )
    heads = [
        Column(
            column.name,
            "" if column.kind in ("scored", "unscored") else f"{number}.{column.name}",
            number=not column.words,
            low_first=column.kind == "rank" or (column.kind == "value" and ranking.head.lower_is_better),
            tip=column.tip if column.kind == "value" else "",
        )
        for column in table.columns
    ]
    return Listing.of(heads, rows, "./", query, at_once=at_once, noun="system", words=_system)


def _system(row: Row) -> str:
    return str(row["system"])


def _leads_to(kind: str, cell: Cell, head: MetricBoard, system: str, known: frozenset[str]) -> str:
    """Names, values and reasons lead to the reports of a system that this run holds."""
    leads = kind == "system" or cell.metric or (kind == "unscored" and cell.text != "-")
    if system not in known or not leads:
        return ""
    query = SystemQuery(
        system=system,
        protocol=head.protocol,
        metric=cell.metric or head.metric,
        reason="any" if kind == "unscored" else "",
    )
    return address("system", query)


async def tasks_page(run: OpenRun, frame: Frame, query: ListQuery) -> str:
    """The run's tasks."""
    prompts = await run.prompts()
    rows: list[Row] = [
        {
            "id": name,
            "language": task.language,
            "domain": task.domain,
            "prompt": prompts.get(name, ""),
            "to": address("task", task=name),
        }
        for name, task in sorted(run.record.tasks.items(), key=lambda one: natural(one[0]))
    ]
    columns = [Column("task", "id"), Column("language", "language")]
    if any(row["domain"] for row in rows):
        columns.append(Column("domain", "domain"))
    listing = Listing.of(
        columns, rows, "tasks", query, at_once=frame.rows, noun="task", words=lambda row: " ".join(
            row[name] for name in ("id", "language", "domain", "prompt")
        ),
    )  # fmt: skip
    return frame.show("tasks.html.jinja", "Tasks", here="tasks", listing=listing, sort=query.sort)
