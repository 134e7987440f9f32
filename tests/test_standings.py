"""The standings: one layout, drawn by the terminal, the page, Markdown and the viewer."""

import re
import shutil
from pathlib import Path

import pytest

from adjudge.engine.runs.board import Leaderboard, MetricBoard
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.statistics.published import Published
from adjudge.engine.tables.page import leaderboard_page
from adjudge.engine.tables.standings import Ranking, rankings, standings
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ListQuery
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.engine.viewer.pages.home import home
from tests.boards import Rows, cells, opening, tables
from tests.commands import run as command

OLD = Path(__file__).parent / "old_run" / "run"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of four systems, one of them without a missing score."""
    return Path(shutil.copytree(OLD, tmp_path / "run"))


def c_acc(board: Leaderboard) -> MetricBoard:
    return next(one for one in board.metrics if one.metric == "c_acc")


def chosen(columns: list[str], rows: Rows, names: list[str]) -> Rows:
    places = [columns.index(name) for name in names]
    return [[row[place] for place in places] for row in rows]


def without(row: list[str]) -> list[str]:
    """`row` without the words for low coverage, which the page has as a badge, and those of an interval's bar."""
    return [cell.partition("\n")[0].removesuffix(" (under 95%)") for cell in row]


async def test_page_markdown_viewer_and_terminal_show_the_same(folder, capsys):
    ranking = rankings((board := build_leaderboard([folder])).metrics)[0]
    names = [
        "system",
        "rank",
        *(one.metric for one in ranking.shown),
        "scored",
        "unscored",
    ]
    page = chosen(*opening(leaderboard_page(board), ranking.head.metric), names)
    assert len(page) == 4
    assert page[0] == ["borealis", "1", "56.52", "55.82", "56.65", "56.71", "57.54", "2.91", "5/5", "-"]

    columns, _, *rows = tables(command(capsys, "leaderboard", folder, "--markdown")[1])[0]
    columns, *rows = ([cell.replace("\\", "") for cell in row] for row in (columns, *rows))
    assert [without(row) for row in chosen(columns, rows, names)] == page

    opened = OpenRun(Run.open(folder))
    html = await home(opened, Frame("run", "judge"), ListQuery())
    await opened.close()
    # Everything is scored: the viewer leaves the last two out.
    assert [without(row) for row in chosen(*next(cells(html)), names[:-2])] == [row[:-2] for row in page]

    out = command(capsys, "leaderboard", folder)[1]
    lines = [
        [cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if "│" in line
    ]
    for line, row in zip(lines[:4], page, strict=True):
        rank, system, value, *rest, scored, unscored = line
        assert [system, rank.split()[0], value.split()[0], *rest] == row[:-2]
        assert scored.removesuffix(" *") == row[-2] and (unscored or "-") == row[-1]
    assert re.search(r"│ +1 │ borealis │ +95\.07 \[90\.63, 98\.81\] │", out)  # of the second table


def test_columns_appear_only_where_they_hold_something(folder, tmp_path):
    plain = standings(Ranking.alone(c_acc(build_leaderboard([folder]))))
    kinds = [column.kind for column in plain.columns]
    assert kinds == [
        "rank",
        "rank interval",
        "system",
        "value",
        "interval",
        "bounds",
        "as published",
        "tier",
        "scored",
        "unscored",
    ]
    rated = tmp_path / "human.csv"
    ratings = [f"{task},atlas,r,c_acc,0.{n}" for n, task in enumerate(RunRecord.read(folder).tasks)]
    rated.write_text("task_id,system,rater,metric,value\n" + "\n".join(ratings))
    board = build_leaderboard([folder], published=[Published("atlas", "c_acc", 60.0)], human=rated)
    found = standings(Ranking.alone(c_acc(board)))
    assert [column.kind for column in found.columns if column.kind not in kinds] == [
        "corrected", "corrected interval", "published",
    ]  # fmt: skip
    shown = {row[2].text: [cell.text for cell in row[7:9]] for row in found.rows}
    assert shown.pop("atlas") != ["-", "-"] and set(map(tuple, shown.values())) == {("-", "-")}
