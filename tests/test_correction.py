"""Leaderboards corrected by people's scores, and agreement with intervals, through the command line."""

import csv
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.statistics import agreement
from adjudge.scoring.kernels.comparison.corrections import powered_differences, powered_means
from tests.boards import unequal
from tests.commands import one_line, run
from tests.worlds import lines


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of three systems, to be copied."""
    folder = tmp_path_factory.mktemp("judged")
    evaluate(RunConfig.load(unequal(folder, {"high": 0.8, "middle": 0.6, "low": 0.3})))
    return folder


@pytest.fixture
def rated(made: Path, tmp_path: Path) -> Path:
    """A copy of that run in `tmp_path`, and two people's ratings of 12 of its 60 tasks."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    draw, judged = random.Random(1), scores(tmp_path / "run")
    chosen = draw.sample(sorted({task for _, task in judged}), 12)
    rows = [
        {"task_id": task, "system": system, "rater": rater, "metric": "score", "value": value}
        for system in ("high", "middle", "low")
        for task in chosen
        for rater in ("first", "second")
        for value in [10 * judged[system, task] + draw.gauss(-1, 1)]
    ]
    return lines(tmp_path / "human.jsonl", rows)


def scores(folder: Path) -> dict[tuple[str, str], float]:
    rows = pq.read_table(folder / "scores.parquet").to_pylist()
    return {(row["system"], row["task_id"]): row["value"] for row in rows if row["metric"] == "score"}


def test_corrected_figures_appear_beside_raw_ones_everywhere(rated, tmp_path, capsys):
    looked_at = ("leaderboard", tmp_path / "run", "--human", rated, "--out", tmp_path / "board")
    code, out, error = run(capsys, *looked_at)
    assert code == 0, error
    assert "corrected by people" in out and "people alone" in out and "drawn at random" in out
    board = json.loads((tmp_path / "board" / "leaderboard.json").read_bytes())
    metric = next(one for one in board["metrics"] if one["metric"] == "score")
    judged = scores(tmp_path / "run")
    ratings = [json.loads(line) for line in rated.read_text().splitlines()]
    systems, tasks = ["high", "low", "middle"], sorted({task for _, task in judged})
    judge = np.array([[judged[system, task] for task in tasks] for system in systems])
    people = np.full(judge.shape, np.nan)
    for at, system in enumerate(systems):
        for place, task in enumerate(tasks):
            own = [row["value"] for row in ratings if (row["system"], row["task_id"]) == (system, task)]
            people[at, place] = np.mean(own) if own else np.nan
    means, differences = powered_means(judge, people), powered_differences(judge, people)
    rows = {row["system"]: row for row in metric["standings"]}
    for at, system in enumerate(systems):
        corrected = rows[system]["corrected"]
        assert rows[system]["value"] == pytest.approx(judge[at].mean())
        assert corrected["value"] == pytest.approx(means.estimate[at])
        assert (corrected["n_labelled"], corrected["n_unlabelled"]) == (12, 48)
        assert corrected["high"] - corrected["low"] < corrected["people_high"] - corrected["people_low"]
    for at, pair in enumerate(metric["corrected_differences"]):
        assert pair["corrected"]["low"] == pytest.approx(differences.low[at])
    assert [(pair["a"], pair["b"]) for pair in metric["corrected_differences"]] == [
        ("high", "low"),
        ("high", "middle"),
        ("low", "middle"),
    ]
    with (tmp_path / "board" / "leaderboard.csv").open() as file:
        table = {row["system"]: row for row in csv.DictReader(file) if row["metric"] == "score"}
    assert float(table["low"]["corrected_value"]) == rows["low"]["corrected"]["value"]
    assert json.loads((tmp_path / "run" / "leaderboard.json").read_bytes())["metrics"] == [
        {
            **one,
            "corrected_differences": [],
            "standings": [{**row, "corrected": None} for row in one["standings"]],
        }
        for one in board["metrics"]
    ]


def test_agreement_intervals_contain_its_figures_and_repeat(rated, tmp_path, capsys):
    code, out, error = run(capsys, "agreement", tmp_path / "run", "--human", rated, "--json")
    assert code == 0, error
    found = json.loads(out)[0]
    low, high = found["intervals"]["par"]
    assert 0 <= low <= found["par"] <= high <= 1 and low < high
    assert {"par", "opc", "icc_1_1", "icc_2_k", "alpha"} <= found["intervals"].keys()
    assert run(capsys, "agreement", tmp_path / "run", "--human", rated, "--json")[1] == out
    code, out, _ = run(capsys, "agreement", tmp_path / "run", "--human", rated)
    assert code == 0 and f"{low:.3f} to {high:.3f}" in out


def test_judge_agrees_with_itself_exactly(rated, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(agreement, "RESAMPLES", 20)
    code, out, error = run(capsys, "agreement", tmp_path / "run", "--other", tmp_path / "run", "--json")
    assert code == 0, error
    found = next(one for one in json.loads(out) if one["metric"] == "score")
    assert found["intervals"]["par"] == [1.0, 1.0] == [found["par"]] * 2


def test_ratings_of_one_task_give_no_interval(rated, tmp_path, capsys):
    first = json.loads(rated.read_text().splitlines()[0])
    lines(rated, [first, {**first, "system": "low"}])
    code, out, error = run(capsys, "agreement", tmp_path / "run", "--human", rated, "--json")
    assert code == 0 and json.loads(out)[0]["intervals"] == {}, error
    looked_at = ("leaderboard", tmp_path / "run", "--human", rated, "--out", tmp_path / "board")
    code, _, error = run(capsys, *looked_at)
    assert code == 0, error
    board = json.loads((tmp_path / "board" / "leaderboard.json").read_bytes())
    metric = next(one for one in board["metrics"] if one["metric"] == "score")
    rows = {row["system"]: row["corrected"] for row in metric["standings"]}
    assert rows["high"]["value"] == first["value"] and rows["high"]["low"] is None
    assert rows["middle"]["value"] is None and rows["middle"]["n_labelled"] == 0
    assert len(metric["corrected_differences"]) == 1


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("{", ":1: not JSON"),
        ("", "no ratings"),
        ('{"task_id": "task1"}', ":1: lacks system"),
        (
            '{"task_id": "task1", "system": "low", "rater": "a", "metric": "beauty", "value": 1}',
            "beauty",
        ),
        (
            '{"task_id": "task1", "system": "nobody", "rater": "a", "metric": "score", "value": 1}',
            "no rating of",
        ),
    ],
)
def test_invalid_ratings_file_gives_one_line(rated, tmp_path, capsys, content, named):
    rated.write_text(content)
    code, out, error = run(capsys, "leaderboard", tmp_path / "run", "--human", rated)
    assert (code, out) == (2, "") and named in one_line(error)


def test_ratings_of_missing_reports_are_named(rated, tmp_path, capsys):
    stray = {"task_id": "task1", "system": "Middle", "rater": "first", "metric": "score", "value": 1}
    rated.write_text(f"{rated.read_text()}{json.dumps(stray)}\n")
    code, out, error = run(capsys, "leaderboard", tmp_path / "run", "--human", rated)
    assert code == 0 and "people rated reports that are not in these runs: 'Middle' on task 'task1'" in out, (
        error
    )
    code, out, error = run(capsys, "agreement", tmp_path / "run", "--human", rated)
    assert code == 0 and "'Middle' on task 'task1'" in " ".join(out.split()), error
