"""A metric of which only the mean is held: mean, interval, bounds, ranks and groups all know it."""

import numpy as np
import pytest

from adjudge.engine.runs.scores import MetricRows
from adjudge.engine.statistics.placement import Statistics
from adjudge.engine.statistics.selection import Selection, fill
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.resampling.bootstrap import bootstrap, bootstrap_part, merge

HELD = Metric(name="score", worst=-2.0, clip=(0.0, 1.0))
SCORES = np.array([[-2.0, -1.0, 0.5, 0.9], [0.4, 0.2, 0.1, 0.7], [1.0, np.nan, 0.2, -0.4]])


def rows(values: np.ndarray) -> MetricRows:
    systems, tasks = values.shape
    flat = values.ravel()
    return MetricRows(
        protocol="p",
        metric="score",
        systems=[f"s{n}" for n in range(systems)],
        tasks=[f"t{n}" for n in range(tasks)],
        reasons=["", "judge_timeout"],
        system=np.repeat(np.arange(systems), tasks),
        task=np.tile(np.arange(tasks), systems),
        reason=np.isnan(flat).astype(np.int64),
        sample=np.zeros(flat.size, np.int64),
        repeat=np.zeros(flat.size, np.int64),
        values=flat,
        low=np.where(np.isnan(flat), np.nan, flat),
        high=np.where(np.isnan(flat), np.nan, flat),
        answered=(~np.isnan(flat)).astype(np.int64),
        parts=np.ones(flat.size, np.int64),
    )


def selection(values: np.ndarray) -> Selection:
    made = rows(values)
    return Selection(
        systems=tuple(made.systems),
        tasks=tuple(made.tasks),
        without_gold=0,
        worst={},
        submitting=frozenset(made.systems),
        reported=frozenset(made.tasks),
    )


def test_single_values_stay_and_the_mean_is_held() -> None:
    filled = fill(rows(SCORES), HELD, selection(SCORES), bad_is_high=False)
    assert filled.values.min() == -2.0
    drawn = Statistics().resample(filled.values, None, 0, filled.signed_clip(1.0))
    assert drawn.estimate.tolist() == pytest.approx([0.0, 0.35, 0.0])
    assert filled.low.tolist() == pytest.approx([0.0, 0.35, 0.0])
    assert filled.high.tolist() == pytest.approx([0.0, 0.35, 0.45])
    assert filled.worst == 0.0


def test_interval_is_that_of_held_resamples() -> None:
    free, held = (bootstrap(SCORES[:2], resamples=500, clip=clip, seed=3) for clip in (None, (0.0, 1.0)))
    assert free.percentile[0, 0] < 0.0
    assert held.estimate.tolist() == pytest.approx([0.0, 0.35])
    assert held.percentile.min() >= 0.0 and held.percentile.max() <= 1.0
    means = np.clip(bootstrap_part(SCORES[:2], first=0, count=500, seed=3).means, 0.0, 1.0)
    assert held.standard_error == pytest.approx(means.std(axis=1, ddof=1))


def test_parts_merge_to_the_same_held_result() -> None:
    parts = [bootstrap_part(SCORES[:2], first=first, count=250, seed=3) for first in (250, 0)]
    whole = bootstrap(SCORES[:2], resamples=500, clip=(0.0, 1.0), seed=3)
    merged = merge(parts, clip=(0.0, 1.0))
    assert (merged.percentile == whole.percentile).all() and (merged.rank_counts == whole.rank_counts).all()


def test_ends_turn_with_a_metric_of_which_less_is_better() -> None:
    filled = fill(rows(SCORES), HELD, selection(SCORES), bad_is_high=False)
    assert filled.signed_clip(-1.0) == (-1.0, -0.0)
    drawn = Statistics().resample(-filled.values, None, 0, filled.signed_clip(-1.0))
    assert drawn.estimate.max() <= 0.0
