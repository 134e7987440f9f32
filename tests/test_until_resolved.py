"""Runs that stop when their comparisons are resolved, through the command line with the lexical judge."""

import hashlib
import json
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.boards import unequal
from tests.commands import changed, one_line, run
from tests.worlds import lines, world


def judged(out: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in pq.read_table(out / "scores.parquet").to_pylist():
        found.setdefault(row["system"], set()).add(row["task_id"])
    return found


def test_run_stops_early_with_the_scores_of_a_full_run(tmp_path, capsys):
    config = unequal(tmp_path, {"high": 0.9, "middle": 0.6, "low": 0.3})
    code, out, error = run(capsys, "evaluate", config, "--until-resolved", "score", "--json")
    assert code == 0, error
    result = json.loads(out)
    stopped = result["stopped"]
    assert stopped["planned_tasks"] == 60 and 10 <= stopped["judged_tasks"] < 36
    assert result["scorecards"] == 3 * stopped["judged_tasks"]
    assert result["scorecards"] + stopped["saved_scorecards"] == 180
    assert stopped["asked_questions"] + stopped["saved_questions"] == 1800
    assert {(pair["a"], pair["b"]): pair["ahead"] for pair in stopped["pairs"]} == {
        ("high", "low"): "high",
        ("high", "middle"): "high",
        ("low", "middle"): "middle",
    }
    tasks = judged(tmp_path / "run")
    assert tasks["high"] == tasks["middle"] == tasks["low"] and len(tasks["high"]) == stopped["judged_tasks"]
    assert run(capsys, "evaluate", config, "--out", tmp_path / "full", "--store", tmp_path / "other")[0] == 0
    full = pq.read_table(tmp_path / "full" / "scores.parquet").to_pylist()
    some = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    assert some == [row for row in full if row["task_id"] in tasks["high"]]


def test_record_and_leaderboard_show_the_early_stop(tmp_path, capsys):
    config = unequal(tmp_path, {"high": 0.9, "low": 0.3})
    _, out, _ = run(capsys, "evaluate", config, "--until-resolved", "score")
    record = msgspec.json.decode((tmp_path / "run" / "run.json").read_bytes())
    board = msgspec.json.decode((tmp_path / "run" / "leaderboard.json").read_bytes())
    assert record["stopped"] == board["stopped"][0]
    said = f"stopped early, after {record['stopped']['judged_tasks']} of 60 tasks"
    assert said in out and any(said in note for note in board["notes"])
    _, again, _ = run(capsys, "leaderboard", tmp_path / "run")
    assert said in again


def test_second_run_asks_nothing_and_a_full_run_continues(tmp_path, capsys):
    config = unequal(tmp_path, {"high": 0.9, "low": 0.3}, until_resolved="rubrics.score:low,high")
    first = json.loads(run(capsys, "evaluate", config, "--json")[1])
    second = json.loads(run(capsys, "evaluate", config, "--json", "--serial")[1])
    assert second["from_judge"] == 0 and second["stopped"] == first["stopped"]
    assert first["stopped"]["pairs"][0]["ahead"] == "high" and first["stopped"]["pairs"][0]["high"] < 0
    whole = json.loads(run(capsys, "evaluate", changed(config, until_resolved=None), "--json")[1])
    assert whole["from_store"] == first["from_judge"] and whole["scorecards"] == 120
    assert whole["stopped"] is None


def test_equal_systems_run_to_the_end_unless_pairs_are_named(tmp_path, capsys):
    config = unequal(tmp_path, {"one": 0.5, "other": 0.5, "low": 0.1}, tasks=40)
    (tmp_path / "reports" / "other.jsonl").write_text(
        (tmp_path / "reports" / "one.jsonl").read_text().replace('"one"', '"other"')
    )
    everything = json.loads(run(capsys, "evaluate", config, "--until-resolved", "score", "--json")[1])
    assert everything["stopped"]["judged_tasks"] == 40 and everything["scorecards"] == 120
    assert [pair["ahead"] for pair in everything["stopped"]["pairs"]] == ["one", "other", None]
    named = {"metric": "score", "pairs": [["one", "low"], ["other", "low"]], "error_rate": 0.01}
    few = json.loads(run(capsys, "evaluate", changed(config, until_resolved=named), "--json")[1])
    assert few["stopped"]["judged_tasks"] < 40 and few["stopped"]["error_rate"] == 0.01


def test_unscored_task_does_not_count_for_a_pair(tmp_path, capsys):
    config = unequal(tmp_path, {"high": 0.9, "low": 0.2})
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    order = sorted(tasks, key=lambda task: hashlib.blake2b(f"0\n{task['id']}".encode()).digest())
    for task in order[:5]:
        del task["gold"]
    lines(tmp_path / "tasks.jsonl", tasks)
    code, out, _ = run(capsys, "evaluate", config, "--until-resolved", "score", "--json")
    stopped = json.loads(out)["stopped"]
    assert code == 3 and stopped["pairs"][0]["n_used"] == stopped["judged_tasks"] - 5


def test_seed_sets_the_order_of_tasks(tmp_path, capsys):
    config = unequal(tmp_path, {"high": 0.9, "low": 0.3}, until_resolved="score")
    tasks = []
    for seed in (1, 2):
        run(capsys, "evaluate", changed(config, seed=seed), "--out", tmp_path / str(seed))
        tasks.append(judged(tmp_path / str(seed))["high"])
    assert tasks[0] != tasks[1]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("quality", "unknown metric 'quality'; use 'score' or"),
        ("score:one", "METRIC:A,B"),
        ("score:", "METRIC:A,B"),
        ("score:system0,nobody", "nobody"),
        ("score:system0,system0", "itself"),
        ({"metric": "score", "error_rate": 2}, "until_resolved.error_rate"),
        ({"metric": "score", "pairs": [["system0"]]}, "until_resolved.pairs"),
    ],
)
def test_impossible_comparison_gives_one_line(tmp_path, capsys, spec, named):
    code, out, error = run(capsys, "evaluate", changed(world(tmp_path), until_resolved=spec))
    assert (code, out) == (2, "") and named in one_line(error)


def test_one_system_cannot_be_compared(tmp_path, capsys):
    code, _, error = run(capsys, "evaluate", world(tmp_path, systems=1), "--until-resolved", "score")
    assert code == 2 and "two systems" in one_line(error)
