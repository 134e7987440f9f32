"""Tasks and systems are chosen in one way by every command, and what is left out by choice is not missing."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.commands.plan import plan
from adjudge.engine.config.run import RunConfig, Select
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.statistics.build import build_leaderboard
from tests.commands import run
from tests.layouts import LAYOUTS, lines
from tests.made_runs import made_run

TASKS = [
    {"id": str(number), "prompt": f"Why {number}?", "language": ("en", "zh")[number % 2], "domain": domain}
    for number, domain in enumerate(["Health", "Health", "Law", "Law", "History", "History"], 1)
]


def config(folder: Path, select: dict[str, Any]) -> RunConfig:
    lines(folder / "tasks.jsonl", TASKS)
    lines(
        folder / "reports.jsonl",
        [
            {"task_id": task["id"], "system": system, "text": "A report."}
            for system in ("Atlas", "Borealis")
            for task in TASKS
            if (system, task["id"]) != ("Borealis", "2")
        ],
    )
    return RunConfig.of(
        {
            "tasks": str(folder / "tasks.jsonl"),
            "reports": [str(folder / "reports.jsonl")],
            "protocols": ["fact"],
            "fetch": {"mode": "off"},
            "store": str(folder / "store"),
            "out": str(folder / "run"),
            "select": select,
        }
    )


@pytest.mark.parametrize(
    ("select", "tasks", "systems"),
    [
        ({}, "123456", "Atlas Borealis"),
        ({"limit": 2}, "12", "Atlas Borealis"),
        ({"languages": ["en"], "limit": 2}, "24", "Atlas Borealis"),
        ({"domains": ["Law", "History"], "languages": ["zh"]}, "35", "Atlas Borealis"),
        ({"tasks": [6, "2"], "systems": ["Borealis"]}, "26", "Borealis"),
        ({"limit": 99}, "123456", "Atlas Borealis"),
    ],
)
def test_select_keeps_tasks_in_file_order(
    tmp_path: Path, select: dict[str, Any], tasks: str, systems: str
) -> None:
    found = chosen_dataset(config(tmp_path, select))
    assert ["".join(found.tasks), " ".join(found.systems)] == [tasks, systems]
    assert {report.task_id for report in found.reports} <= {*tasks}


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ({"systems": ["borealis"]}, "select.systems: unknown system 'borealis'; use 'Borealis'"),
        ({"tasks": ["7"]}, "select.tasks: unknown task '7'; use '1' or '2' or '3'"),
        ({"languages": ["de"]}, "select.languages: unknown language 'de'; use 'zh' or 'en'"),
        ({"domains": ["Helth"]}, "select.domains: unknown domain 'Helth'; use 'Health'"),
        ({"domains": ["Law"], "tasks": ["1"]}, "select: no task is left (tasks 1; domains Law)"),
        ({"tasks": ["2"], "systems": ["Borealis"]}, "select: no reports are left"),
        ({"limit": 0}, "select.limit: must be a whole number of at least 1, not 0"),
        ({"system": ["Atlas"]}, "select.system: unknown key; use 'systems'"),
    ],
)
def test_select_names_what_is_unknown(tmp_path: Path, select: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        chosen_dataset(config(tmp_path, select))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_select_works_in_every_layout(tmp_path: Path, layout: str) -> None:
    make, row = LAYOUTS[layout]
    lines(tmp_path / "s.jsonl", [row])
    settings: dict[str, Any] = {
        "tasks": str(make(tmp_path / "data")),
        "reports": [str(tmp_path / "s.jsonl")],
        "format": layout,
        "select": {"tasks": ["1"], "limit": 1, "languages": ["en"]},
    }
    found = chosen_dataset(RunConfig.of(settings))
    assert (list(found.tasks), [report.task_id for report in found.reports]) == (["1"], ["1"])


def test_choice_is_no_gap_in_coverage(tmp_path: Path) -> None:
    """The run and its leaderboard hold the chosen tasks alone, and say what was chosen."""
    chosen = config(tmp_path, {"limit": 3, "systems": ["Atlas"]})
    assert plan(chosen).cases == 3
    result = evaluate(chosen)
    assert result.scorecards == 3
    board = result.leaderboard
    assert {(row.n_total, row.coverage) for metric in board.metrics for row in metric.standings} == {(3, 1.0)}
    assert [row.system for row in board.metrics[0].standings] == ["Atlas"]
    assert "chosen by this run: systems Atlas; the first 3 tasks" in board.notes
    record = RunRecord.read(tmp_path / "run")
    assert record.config.select == chosen.select
    assert [list(record.tasks), record.systems] == [["1", "2", "3"], ["Atlas"]]


def test_invalid_lines_of_other_systems_do_not_count(tmp_path: Path) -> None:
    settings = config(tmp_path, {"systems": ["Atlas"]})
    rows = [
        {"task_id": "1", "system": "Cirrus", "text": "x"},
        {"task_id": "none", "system": "Cirrus", "text": "x"},
    ]
    lines(tmp_path / "more.jsonl", rows)
    reports = [*settings.reports, str(tmp_path / "more.jsonl")]
    both = msgspec.structs.replace(settings, reports=reports)
    assert chosen_dataset(both).rejected == []
    everything = msgspec.structs.replace(both, select=Select())
    assert [line.line for line in chosen_dataset(everything).rejected] == [2]


def test_gap_within_the_choice_is_still_counted(tmp_path: Path) -> None:
    board = evaluate(config(tmp_path, {"tasks": ["2", "4"]})).leaderboard
    assert {row.system: row.n_unscored for row in board.metrics[0].standings} == {"Atlas": 0, "Borealis": 1}


def test_leaderboard_chooses_of_finished_runs(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", ["alpha", "beta", "gamma"], 12, missing=0.0)
    select = Select(limit=4, systems=["alpha", "gamma"], languages=["zh"])
    board = build_leaderboard([run], select=select)
    head = board.metrics[0]
    assert head.n_tasks == 4
    assert {row.system: row.coverage for row in head.standings} == {"alpha": 1.0, "gamma": 1.0}
    assert board.notes[0] == f"chosen for this leaderboard: {select.words}"
    assert {*board.spent} == {"alpha", "gamma"}
    with pytest.raises(UsageError, match="unknown system 'gama'; use 'gamma'"):
        build_leaderboard([run], select=Select(systems=["gama"]))


def test_runs_with_different_choices_are_noted(tmp_path: Path) -> None:
    evaluate(config(tmp_path, {"systems": ["Atlas"]}))
    one = (tmp_path / "run").rename(tmp_path / "one")
    evaluate(config(tmp_path, {"systems": ["Borealis"], "limit": 2}))
    notes = build_leaderboard([one, tmp_path / "run"]).notes
    assert sum("evaluated only systems" in note for note in notes) == 2


def test_command_line_chooses_over_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = config(tmp_path, {"languages": ["en"], "limit": 1})
    file = tmp_path / "adjudge.yaml"
    file.write_text(
        json.dumps({name: getattr(settings, name) for name in ("tasks", "reports", "protocols", "store", "out")}
        | {"fetch": {"mode": "off"}, "select": {"languages": ["en"], "limit": 1}})
    )  # fmt: skip
    chosen = ("--limit", "2", "--system", "Atlas", "--json")
    code, out, error = run(capsys, "plan", file, *chosen)
    assert (code, json.loads(out)["cases"]) == (0, 2), error
    code, out, error = run(capsys, "evaluate", file, *chosen)
    assert (code, json.loads(out)["scorecards"]) == (0, 2), error
    board = run(capsys, "leaderboard", tmp_path / "run", "--task", "2", "--domain", "Health", "--json")
    assert json.loads(board[1])["metrics"][0]["n_tasks"] == 1, board
    code, _, error = run(capsys, "leaderboard", tmp_path / "run", "--task", "3")
    assert code == 2 and "select.tasks: unknown task '3'; use '2' or '4'" in error
    assert run(capsys, "evaluate", file, "--limit", "0")[0] == 2
