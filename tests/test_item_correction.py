"""Metrics corrected by labels of single verdicts: the kernel against theory and simulation, and the leaderboard."""

import json
import random
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.run import Run
from adjudge.engine.viewer.labelling import drawn
from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.corrections import LabelledItems, labelled_mean
from benchmarks.labels import Truth, covered
from tests.commands import one_line, run
from tests.labelled import example
from tests.nightly import quick_or_whole
from tests.worlds import lines, world


def made(tasks: int, per: int, share: float, seed: int = 0) -> tuple[np.ndarray, LabelledItems, np.ndarray]:
    """Tasks of equally many items, of which so many are labelled; the tasks' scores by people last."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), per)
    truth = (rng.random(task.size) < 0.6).astype(float)
    judge = np.where(rng.random(task.size) < 0.85, truth, 1.0 - truth)
    human = np.where(rng.random(task.size) < share, truth, np.nan)
    items = LabelledItems(
        task=task,
        weight=np.full(task.size, 1.0 / per),
        judge=judge,
        human=human,
        stratum=judge.astype(np.int64),
    )
    return judge.reshape(tasks, per).mean(axis=1), items, truth.reshape(tasks, per).mean(axis=1)


def test_all_labelled_gives_the_student_interval_of_people() -> None:
    scores, items, truth = made(30, 12, 1.1)
    found = labelled_mean(scores, items)
    known = stats.ttest_1samp(truth, 0.0).confidence_interval(0.95)
    assert found.estimate == pytest.approx(truth.mean())
    assert found.standard_error == pytest.approx(truth.std(ddof=1) / np.sqrt(30))
    assert found.high - found.low == pytest.approx(known.high - known.low, rel=0.03)


def test_estimate_is_that_of_double_sampling_by_hand() -> None:
    """Two tasks; each verdict counts the share of its labels that say yes."""
    judge, human = [1, 1, 1, 0, 1, 0, 0, 0], [1, 1, np.nan, 0, 0, 1, np.nan, 0]
    items = LabelledItems(
        task=np.repeat([0, 1], 4),
        weight=np.full(8, 0.25),
        judge=np.array(judge, float),
        human=np.array(human, float),
        stratum=np.array(judge),
    )
    found = labelled_mean([0.75, 0.25], items)
    assert found.estimate == pytest.approx(0.5 * 2 / 3 + 0.5 * 1 / 3)
    assert found.power == pytest.approx(2 / 3 - 1 / 3)
    assert (found.n_labelled, found.n_items) == (6, 8)


def test_estimate_does_not_depend_on_the_judges_scale_or_order() -> None:
    scores, items, _ = made(40, 10, 0.3)
    found = labelled_mean(scores, items)
    order = np.random.default_rng(1).permutation(items.task.size)
    mixed = LabelledItems(**{name: getattr(items, name)[order] for name in LabelledItems.__struct_fields__})
    again = labelled_mean(scores, mixed)
    assert (again.estimate, again.low) == (pytest.approx(found.estimate), pytest.approx(found.low))


def test_undefined_figures_are_missing_and_wrong_arrays_named() -> None:
    scores, items, _ = made(10, 4, 0.0)
    assert np.isnan(labelled_mean(scores, items).estimate)
    nothing, nowhere = np.array([]), np.array([], np.int64)
    none = LabelledItems(task=nowhere, weight=nothing, judge=nothing, human=nothing, stratum=nowhere)
    assert labelled_mean([0.5, 0.7], none).estimate == 0.6
    assert np.isnan(labelled_mean([], none).estimate)
    with pytest.raises(KernelError, match="missing"):
        labelled_mean([np.nan], none)
    with pytest.raises(KernelError, match="outside the 2 tasks"):
        labelled_mean([0.5, 0.7], items)
    short = msgspec.structs.replace(items, task=np.array([0]))
    with pytest.raises(KernelError, match="different lengths"):
        labelled_mean(scores, short)


@pytest.mark.nightly
@pytest.mark.parametrize("accuracy", [0.75, 0.85, 0.95])
def test_interval_covers_the_truth_as_often_as_stated(accuracy: float) -> None:
    found = covered(
        Truth(tasks=60, items=15, labels=60, accuracy=accuracy), data_sets=quick_or_whole(200, 600), seed=0
    )
    assert 0.92 <= found.mean <= 0.98 and 0.92 <= found.difference <= 0.98
    assert abs(found.bias) < 0.01


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    evaluate(RunConfig.load(str(world(tmp_path, systems=3, tasks=20))))
    return tmp_path / "run"


OTHER = {"met": "not met", "not met": "met", "yes": "no", "no": "yes"}


def test_whole_labels_give_peoples_own_metric(judged: Path, tmp_path: Path, capsys) -> None:
    """Every item labelled, some against the judge: the corrected mean is the metric by people's verdicts."""
    draw = random.Random(0)
    rows, truth = [], {}
    for card, items in Run.open(judged).labelled_cards():
        total = full = 0.0
        for item in items:
            label = item.labelled.label if draw.random() < 0.8 else OTHER[item.labelled.label]
            rows.append({"item": item.id, "label": label, "rater": "ann"})
            total += item.labelled.weight * item.labelled.kind.labels[label]
            full += item.labelled.full
        truth.setdefault(card.system, []).append(total / full)
    file = lines(tmp_path / "labels.jsonl", rows)
    code, out, error = run(capsys, "leaderboard", judged, "--labels", file, "--out", tmp_path)
    assert code == 0, error
    assert "corrected by people" in out and "adjudge label drew" in " ".join(out.split())
    metric = _metric(tmp_path, "score")
    for row in metric["standings"]:
        assert row["corrected"]["value"] == pytest.approx(np.mean(truth[row["system"]]))
        assert row["corrected"]["low"] < row["corrected"]["value"] < row["corrected"]["high"]
        assert row["corrected"]["people"] is None and row["corrected"]["n_unlabelled"] == 0
    first = metric["corrected_differences"][0]
    gap = np.mean(truth[first["a"]]) - np.mean(truth[first["b"]])
    assert first["corrected"]["value"] == pytest.approx(gap)
    assert all(row["corrected"] is None for row in _metric(tmp_path, "pass_rate")["standings"])


def test_drawn_labels_correct_the_leaderboard(judged: Path, tmp_path: Path, capsys) -> None:
    every = list(Run.open(judged).items)
    rows = [{"item": one.id, "label": one.labelled.label} for one in drawn(every, 120, seed=0)]
    file = lines(tmp_path / "l.jsonl", rows)
    assert run(capsys, "leaderboard", judged, "--labels", file, "--out", tmp_path)[0] == 0
    for row in _metric(tmp_path, "score")["standings"]:
        assert row["corrected"]["value"] == pytest.approx(row["value"])  # people say what the judge said
        assert row["corrected"]["n_labelled"] == 40
    few = lines(tmp_path / "few.jsonl", rows[:1])
    code, out, _ = run(capsys, "leaderboard", judged, "--labels", few)
    assert code == 0 and "is not corrected: verdicts of the judge without any label" in " ".join(out.split())
    code, _, error = run(capsys, "leaderboard", judged, "--labels", few, "--human", few)
    assert code == 2 and one_line(error)


def test_metric_that_is_no_share_is_left_as_it_is(tmp_path: Path, capsys) -> None:
    judged = example("draco", tmp_path)
    rows = [{"item": one.id, "label": one.labelled.label} for one in judged.items]
    code, out, error = run(
        capsys, "leaderboard", tmp_path / "run", "--labels", lines(tmp_path / "l.jsonl", rows)
    )
    assert code == 0, error
    assert "draco score is not corrected by labels" in " ".join(out.split())


def _metric(folder: Path, name: str) -> dict:
    board = json.loads((folder / "leaderboard.json").read_bytes())
    return next(one for one in board["metrics"] if one["metric"] == name)
