"""The number that is shown ranks, in every output; and the documents show what the example prints."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.placement import ranks_of
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ListQuery
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.engine.viewer.pages.home import home
from tests.boards import cells, opening, tables
from tests.examples import shipped

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```\n(fact \(judge.*?)^```$", re.MULTILINE | re.DOTALL)
Shown = list[tuple[str, float, float | None]]
"""system, number shown, rank or None, in the order shown"""


def command(*arguments: object) -> str:
    made = [sys.executable, "-m", "adjudge.engine", *map(str, arguments)]
    done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("shown")
    config = shipped("quickstart") / "adjudge.yaml"
    out = command("evaluate", config, "--store", folder / "store", "--out", folder / "run")
    return folder / "run", out


def number(text: str) -> float:
    return float(text.split()[0])


def rank(text: str | None) -> float | None:
    return float(text.split()[0]) if text and text[0] != "-" else None


def in_json(run: Path) -> Shown:
    (fact,) = [
        one
        for one in json.loads((run / "leaderboard.json").read_bytes())["metrics"]
        if one["metric"] == "c_acc"
    ]
    return [(row["system"], 100 * row["value"], row["rank"]) for row in fact["standings"]]


def in_csv(run: Path) -> Shown:
    with (run / "leaderboard.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "c_acc"]
    return [(row["system"], 100 * float(row["value"]), rank(row["rank"])) for row in rows]


def in_rows(columns: list[str], rows: list[list[str]]) -> Shown:
    system, value, place = (columns.index(name) for name in ("system", "c_acc", "rank"))
    return [(row[system], number(row[value]), rank(row[place])) for row in rows]


def in_page(run: Path) -> Shown:
    columns, rows = opening((run / "leaderboard.html").read_text(encoding="utf-8"), "c_acc")
    return in_rows(columns, rows)


def in_viewer(text: str) -> Shown:
    columns, rows = next((columns, rows) for columns, rows in cells(text) if "c_acc" in columns)
    return in_rows(columns, rows)


def in_markdown(run: Path) -> Shown:
    for columns, _, *rows in tables((run / "leaderboard.md").read_text(encoding="utf-8")):
        names = [cell.replace("\\", "") for cell in columns]
        if "c_acc" in names:
            return in_rows(names, rows)
    raise AssertionError("no table has c_acc")


def in_terminal(out: str) -> Shown:
    lines = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in out[out.index("fact (judge") :].splitlines()
        if "│" in line
    ]
    return in_rows(["rank", "system", "c_acc"], lines[:4])


async def test_sorting_by_the_number_shown_gives_the_ranks(evaluated: tuple[Path, str]) -> None:
    run, out = evaluated
    opened = OpenRun(Run.open(run))
    viewer = await home(opened, Frame("run", "judge"), ListQuery())
    await opened.close()
    shown = {
        "json": in_json(run),
        "csv": in_csv(run),
        "html": in_page(run),
        "md": in_markdown(run),
        "terminal": in_terminal(out),
        "viewer": in_viewer(viewer),
    }
    for name, rows in shown.items():
        ranked = [row for row in rows if row[2] is not None]
        by_number = sorted(ranked, key=lambda row: -row[1])
        assert [row[2] for row in by_number] == [1.0, 2.0, 3.0], name
        assert rows == [*by_number, *(row for row in rows if row[2] is None)], name
        assert [(row[0], round(row[1], 2), row[2]) for row in rows] == shown["terminal"], name
    assert [row[0] for row in shown["json"] if row[2] is None] == ["cinder"]


def test_document_shows_what_the_example_prints(evaluated: tuple[Path, str]) -> None:
    _, out = evaluated
    printed = {line.rstrip() for line in out.splitlines()}
    (block,) = BLOCK.findall((ROOT / "docs/failures.md").read_text(encoding="utf-8"))
    told = [line for line in block.splitlines() if not line.startswith("page: ")]
    told = [line for line in told if not line.endswith(" s")]  # how long it took
    assert len(told) > 7 and [line for line in told if line not in printed] == []


def test_show_and_viewer_say_what_to_do(evaluated: tuple[Path, str]) -> None:
    run, out = evaluated
    shown = command("show", run, "--task", "tree-canopy", "--system", "atlas")
    assert "gold_missing (gold): add the gold to the task, then run the same command again" in shown
    assert "page_not_in_snapshot" in command("show", run, "--task", "digital-literacy", "--system", "cinder")
    assert "1 unscored, not_submitted (input): such as cinder on tree-canopy; add the reports" in out
    page = (run / "leaderboard.html").read_text(encoding="utf-8")
    for text in (page, (run / "leaderboard.md").read_text(encoding="utf-8").replace("\\", "")):
        assert "not_submitted" in text and "add the reports or leave out the tasks" in text


@pytest.mark.parametrize(
    "unlike", [[0.1 + 0.2, 0.3], [(1 / 3 + 2 / 3 + 2 / 3) / 3, (1 / 3 + 1 + 1 / 3) / 3 + 2e-16]]
)
def test_means_that_only_rounding_tells_apart_share_a_rank(unlike: list[float]) -> None:
    values = np.array([*unlike, 0.9, np.nan, 0.0])
    told = np.array([[1.0, 5.0]] * 5)
    found = ranks_of(told, values, (values, values), 0.0, ~np.isnan(values))
    assert found.rank[:3].tolist() == [2.0, 2.0, 1.0]
    assert found.midrank[:2].tolist() == [2.5, 2.5]
    free = ranks_of(
        np.full((5, 2), np.nan),
        values,
        (values, np.where(values > 0.8, np.inf, values)),
        0.0,
        ~np.isnan(values),
    )
    assert free.span[:3].tolist() == [[2.0, 3.0], [2.0, 3.0], [1.0, 1.0]]


async def test_columns_that_say_nothing_are_left_out_of_the_first_page(
    evaluated: tuple[Path, str], tmp_path: Path
) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "1", "prompt": "What colour is the kite?"}\n')
    (tmp_path / "wren.jsonl").write_text('{"task_id": "1", "system": "wren", "text": "It is red."}\n')
    (tmp_path / "c.yaml").write_text("- {criterion: It is red., points: 1}\n")
    (tmp_path / "adjudge.yaml").write_text(
        "tasks: tasks.jsonl\nreports: [wren.jsonl]\nprotocols: [{name: rubrics, file: c.yaml}]\n"
        "judge: lexical\nfetch: off\n"
    )
    command("evaluate", tmp_path / "adjudge.yaml", "--out", tmp_path / "run", "--store", tmp_path / "store")
    for folder, is_whole in ((tmp_path / "run", True), (evaluated[0], False)):
        opened = OpenRun(Run.open(folder))
        page = await home(opened, Frame("run", "judge"), ListQuery())
        await opened.close()
        assert ("unscored</th>" not in page) == is_whole
