"""How a system's totals differ from run to run: over its own samples, else over the judge's repeats.

A total is the mean over tasks of one sample of each, or of one repeat of all: the deviation that papers print beside a
figure of several runs (DR3-Eval, Dr.Mi-Bench). It says nothing of how tasks differ, which intervals do.
"""

from collections.abc import Sequence

import numpy as np

from adjudge.engine.runs.scores import Floats, Integers, MetricRows
from adjudge.engine.statistics.selection import Filled, worst_end
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["deviations"]


def deviations(rows: Sequence[MetricRows], metrics: Sequence[Metric], filled: Filled) -> dict[str, float]:
    """The standard deviation of the totals of each system that has several, over the tasks of `filled`.

    A pooled metric has the `rows` of its two `metrics`, else there is one of each. Tasks count that have all runs of
    the system; what is missing is at its worst.
    """
    if not any(np.ptp(one.sample) or np.ptp(one.repeat) for one in rows if one.sample.size):
        return {}  # found without sorting what may be a million rows
    pooled = len(rows) > 1
    if pooled and filled.weights is not None:
        return {}  # a mean of ratios, which are none of single runs
    totals = [_totals(one, metric, filled) for one, metric in zip(rows, metrics, strict=True)]
    found = {}
    for name in totals[0]:
        if any(name not in one or one[name].size != totals[0][name].size for one in totals):
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            each = totals[0][name] / totals[1][name] if pooled else totals[0][name]
        if np.isfinite(each).all():
            found[name] = float(each.std(ddof=1))
    return found


def _totals(rows: MetricRows, metric: Metric, filled: Filled) -> dict[str, Floats]:
    """The totals of each system that has several samples, else several repeats."""
    end = worst_end(metric)
    bound = rows.values if end is None else rows.low if end == "low" else rows.high
    values: Floats = np.where(np.isnan(bound), rows.values, bound)
    shares = np.ones(len(filled.tasks)) if filled.weights is None else filled.weights
    weights = dict(zip(filled.tasks, shares.tolist(), strict=True))
    weight: Floats = np.array([weights.get(name, 0.0) for name in rows.tasks])
    kept = ~np.isnan(values) & (weight[rows.task] > 0)
    if not kept.any():
        return {}
    system, task, values = rows.system[kept], rows.task[kept], values[kept]
    repeats, samples = (
        _by_run(system, task, run[kept], values, weight) for run in (rows.repeat, rows.sample)
    )
    return {rows.systems[number]: found for number, found in (repeats | samples).items()}


def _by_run(
    system: Integers, task: Integers, run: Integers, values: Floats, weight: Floats
) -> dict[int, Floats]:
    """The totals of the runs of each system that has several, in their order on each task."""
    each, at = np.unique(np.stack([system, task, run]), axis=1, return_inverse=True)
    means: Floats = np.bincount(at.reshape(-1), weights=values) / np.bincount(at.reshape(-1))
    cases, case = np.unique(each[:2], axis=1, return_inverse=True)
    case = case.reshape(-1)  # flat in every numpy 2
    place = np.arange(case.size) - np.searchsorted(case, case)
    counts = np.bincount(case)
    most = np.zeros(int(system.max()) + 1, np.int64)
    np.maximum.at(most, cases[0], counts)
    whole = (counts == most[cases[0]])[case]
    found = {}
    for number in np.flatnonzero(most > 1).tolist():
        own = slice(*np.searchsorted(each[0], [number, number + 1]))
        at_place, share = place[own][whole[own]], weight[each[1][own][whole[own]]]
        summed = np.bincount(at_place, weights=share * means[own][whole[own]])
        found[number] = summed / np.bincount(at_place, weights=share)
    return found
