"""The detail behind a ranking: rank shares, pairwise differences, cost and noise.

The best of several samples of an agent, from score rows: pass@k as Dr.Mi-Bench defines it, and how samples scatter.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.runs.board import (
    AXES,
    BestOf,
    Detail,
    Frontier,
    LeftOut,
    Noise,
    Scatter,
)
from adjudge.engine.runs.record import Spent
from adjudge.engine.runs.scores import MetricRows, figure
from adjudge.engine.statistics.listing import listed
from adjudge.engine.statistics.placement import Claims
from adjudge.engine.statistics.selection import Filled, worst_end
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.agreement.variance import variance_components
from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.frontier import pareto_frontier, pass_at_k
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap
from adjudge.scoring.kernels.resampling.rankings import leave_one_out

__all__ = ["Samples", "detail_of", "noise_of", "samples_of"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Samples(msgspec.Struct, frozen=True):
    """What a metric shows of systems with several samples of a task, or several repeats of a sample."""

    best_of: tuple[BestOf, ...] = ()
    scatter: tuple[Scatter, ...] = ()


def samples_of(rows: MetricRows, metric: Metric, due: Mapping[str, int]) -> Samples:
    """The best of 1 to k samples of every system, and how its samples and the judge's repeats of them scatter.

    k is the number of samples that are `due` of the system, or its most for any task where that is one. A sample's
    value is the mean of its repeats, what is missing at its worst.
    """
    if np.bincount(rows.system * len(rows.tasks) + rows.task).max(initial=0) < 2:
        return Samples()  # found without sorting what may be a million rows
    end = worst_end(metric)
    bound = rows.values if end is None else rows.low if end == "low" else rows.high
    values: Floats = np.where(np.isnan(bound), rows.values, bound)
    kept = ~np.isnan(values)
    values = values[kept]
    system, task, sample = (one[kept] for one in (rows.system, rows.task, rows.sample))
    if not values.size:
        return Samples()
    reports, report = np.unique(np.stack([system, task, sample]), axis=1, return_inverse=True)
    cases, case = np.unique(reports[:2], axis=1, return_inverse=True)
    report, case = report.reshape(-1), case.reshape(-1)  # flat in every numpy 2
    means: Floats = np.bincount(report, weights=values) / np.bincount(report)
    place = np.arange(case.size) - np.searchsorted(
        case, case
    )  # reports are in order of system, task and sample
    counts = np.bincount(case)
    by_case, by_report = _spread(means, case, cases[0]), _spread(values, report, reports[0])
    best_of, scatter = list[BestOf](), list[Scatter]()
    for number in np.unique(system).tolist():
        name, own = rows.systems[number], cases[0] == number
        most = due.get(name, 1) if due.get(name, 1) > 1 else int(counts[own].max())
        scatter.append(Scatter(name, by_case.get(number), by_report.get(number)))
        if most > 1:
            whole = np.flatnonzero(own & (counts >= most))
            kept = np.isin(case, whole)
            samples = np.full((whole.size, int(counts[whole].max(initial=most))), np.nan)
            samples[np.searchsorted(whole, case[kept]), place[kept]] = means[kept]
            best_of += _best(name, samples, most, int(own.sum()), metric.lower_is_better)
    told = any(one.samples is not None or one.repeats is not None for one in scatter)
    return Samples(tuple(best_of), tuple(scatter) if told else ())


def _best(name: str, samples: Floats, most: int, n_tasks: int, lower_is_better: bool) -> list[BestOf]:
    """The best of 1 to `most` of the `samples` [T, n] of the tasks that have so many, NaN last."""
    sign = -1.0 if lower_is_better else 1.0
    found = []
    for k in range(1, most + 1):
        best = pass_at_k(sign * samples, k) if len(samples) else None
        found.append(
            BestOf(
                system=name,
                k=k,
                value=None if best is None else figure(sign * float(best.unbiased.mean())),
                first=None if best is None else figure(sign * float(best.best_of_k.mean())),
                n_scored=len(samples),
                n_tasks=n_tasks,
            )
        )
    return found


def _spread(values: Floats, group: Integers, system: Integers) -> dict[int, float]:
    """By system, the standard deviation of `values` within their groups, pooled; `system` is that of each group."""
    count = np.bincount(group)
    deviation = values - (np.bincount(group, weights=values) / count)[group]
    squares = np.bincount(system, weights=np.bincount(group, weights=deviation**2))
    free = np.bincount(system, weights=count - 1.0)
    return {int(one): float(np.sqrt(squares[one] / free[one])) for one in np.flatnonzero(free > 0)}


MOST_CELLS = 100_000
"""The most values of single tasks that a leaderboard holds for one metric."""


def detail_of(
    filled: Filled,
    claims: Claims,
    drawn: Bootstrap,
    sign: float,
    spent: Mapping[str, Spent],
    noise: Noise | None,
    samples: Samples,
) -> Detail:
    """The detail of a metric whose tasks, `filled`, were resampled into `drawn`; `claims` says who is ranked.

    Scores are multiplied by `sign` so that higher is better.
    """
    order = [int(row) for row in np.argsort(drawn.rank, kind="stable") if claims.ranked[row]]
    shown = filled.values.size <= MOST_CELLS
    return msgspec.structs.replace(
        listed(filled.systems, drawn, claims, order, sign=sign),
        frontiers=tuple(_frontiers(filled, drawn, sign, order, spent)),
        noise=noise,
        left_out=_left_out(filled, sign, order),
        best_of=samples.best_of,
        scatter=samples.scatter,
        tasks=filled.tasks if shown else (),
        by_task=_by_task(filled) if shown else {},
    )


def _by_task(filled: Filled) -> dict[str, tuple[float | None, ...]]:
    """What each system's number is on each task where something was scored."""
    below = 1.0 if filled.denominators is None else filled.denominators
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(np.isnan(filled.known), np.nan, filled.values / below)
    return {
        name: tuple(float(f"{value:.4g}") if np.isfinite(value) else None for value in row)
        for name, row in zip(filled.systems, values.tolist(), strict=True)
    }


def noise_of(scores: pa.Table, protocol: str, metric: str) -> Noise | None:
    """The noise of one metric in the score rows of all repeats; None if there are too few scores to estimate it."""
    wanted = pc.and_(pc.equal(scores["protocol"], protocol), pc.equal(scores["metric"], metric))
    rows = scores.filter(wanted)
    try:
        found = variance_components(
            rows["value"].to_numpy(),
            system=rows["system"].to_numpy(),
            task=rows["task_id"].to_numpy(),
            sample=rows["sample"].to_numpy(),
        )
    except KernelError:
        return None
    variance = found.variance["repeat"]
    return Noise(
        repeat_sd=None if variance is None else float(np.sqrt(max(variance, 0.0))),
        shares={str(name): share for name, share in found.share.items()},
        n_used=found.n_used,
    )


def _left_out(filled: Filled, sign: float, order: Sequence[int]) -> LeftOut | None:
    """None if fewer than two systems are ranked, and for a pooled metric, which has no values per task."""
    if filled.denominators is not None or len(order) < 2 or len(filled.tasks) < 2:
        return None
    found = leave_one_out(sign * filled.values[list(order)])
    tau = found.tau[~np.isnan(found.tau)]
    return LeftOut(
        n_tasks=found.tau.size,
        n_kept=int(found.kept.sum()),
        least_tau=float(tau.min()) if tau.size else None,
        ranks={
            filled.systems[row]: (int(found.best_rank[at]), int(found.worst_rank[at]))
            for at, row in enumerate(order)
        },
        stays={filled.systems[row]: found.tau.size - int(found.moved[at]) for at, row in enumerate(order)},
    )


def _frontiers(
    filled: Filled, drawn: Bootstrap, sign: float, order: Sequence[int], spent: Mapping[str, Spent]
) -> list[Frontier]:
    """One frontier per axis that at least two ranked systems state."""
    found = []
    for axis in AXES:
        stated = {
            row: float(value)
            for row in sorted(order)
            if filled.systems[row] in spent
            and (value := getattr(spent[filled.systems[row]], axis)) is not None
        }
        if len(stated) < 2:
            continue
        rows, costs = [*stated], [*stated.values()]
        scores = drawn.estimate[rows]
        on = pareto_frontier(scores, costs)
        found.append(
            Frontier(
                axis=axis,
                systems=tuple(filled.systems[row] for row in rows),
                spent=tuple(costs),
                scores=tuple((sign * scores).tolist()),
                on_frontier=tuple(bool(flag) for flag in on),
            )
        )
    return found
