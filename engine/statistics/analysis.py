"""The detail behind a ranking: rank shares, pairwise differences, cost and noise.

The best of several samples of an agent, from score rows: pass@k as Dr.Mi-Bench defines it.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.runs.board import AXES, BestOf, Detail, Frontier, LeftOut, Noise, Pair, RankShare
from adjudge.engine.runs.record import Spent
from adjudge.engine.runs.scores import ScoreMatrix, codes, figure, values_of
from adjudge.engine.statistics.selection import Filled
from adjudge.scoring.kernels.agreement.variance import variance_components
from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.frontier import pareto_frontier, pass_at_k
from adjudge.scoring.kernels.comparison.paired_tests import holm, paired_t
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap
from adjudge.scoring.kernels.resampling.rankings import leave_one_out

__all__ = ["best_of_samples", "detail_of", "noise_of"]


def best_of_samples(
    scores: pa.Table, protocol: str, metric: str, lower_is_better: bool = False
) -> tuple[BestOf, ...]:
    """The best of k samples under one metric in score rows, for k = 2, 4, 8 ... and all samples.

    The judge's repeats are averaged first. Empty if no task has two samples.
    """
    rows = scores.filter(pc.and_(pc.equal(scores["protocol"], protocol), pc.equal(scores["metric"], metric)))
    if not rows.num_rows:
        return ()
    systems, system = codes(rows["system"])
    _, task = codes(rows["task_id"])
    sample = rows["sample"].to_numpy().astype(np.int64)
    reports, report = np.unique(np.stack([system, task, sample]), axis=1, return_inverse=True)
    cases, first, case = np.unique(reports[:2], axis=1, return_index=True, return_inverse=True)
    report, case, values = (
        report.reshape(-1),
        case.reshape(-1),
        rows["value"].to_numpy(),
    )  # flat in every numpy 2
    scored = ~np.isnan(values)
    total = np.bincount(report[scored], weights=values[scored], minlength=reports.shape[1])
    with np.errstate(invalid="ignore"):
        means = total / np.bincount(report[scored], minlength=reports.shape[1])
    place = np.arange(case.size) - first[case]
    samples = np.full((cases.shape[1], int(place.max()) + 1), np.nan)
    samples[case, place] = -means if lower_is_better else means
    most = samples.shape[1]
    found = []
    for k in sorted({*(2**power for power in range(1, most.bit_length())), most} - {1}):
        best = pass_at_k(samples, k).unbiased
        for row, name in enumerate(systems):
            own = best[cases[0] == row]
            known = own[~np.isnan(own)]
            mean = float(known.mean()) if known.size else float("nan")
            found.append(
                BestOf(
                    system=name,
                    k=k,
                    value=figure(-mean if lower_is_better else mean),
                    n_scored=known.size,
                    n_tasks=own.size,
                )
            )
    return tuple(found)


Floats = npt.NDArray[np.float64]

MOST_CELLS = 100_000
"""The most values of single tasks that a leaderboard holds for one metric."""


def detail_of(
    filled: Filled,
    matrix: ScoreMatrix | None,
    ranked: npt.NDArray[np.bool_],
    drawn: Bootstrap,
    sign: float,
    spent: Mapping[str, Spent],
    noise: Noise | None,
    best_of: tuple[BestOf, ...],
) -> Detail:
    """The detail of a metric whose tasks, `filled`, were resampled into `drawn`; `ranked` [S] are in the ranking.

    `matrix` holds what was scored, None for a pooled metric. Scores are multiplied by `sign` so that higher is better.
    """
    order = [int(row) for row in np.argsort(drawn.rank, kind="stable") if ranked[row]]
    shown = filled.values.size <= MOST_CELLS
    return Detail(
        ranks=tuple(_ranks(filled, drawn, order)),
        pairs=tuple(_pairs(filled, matrix, drawn, sign, order)),
        frontiers=tuple(_frontiers(filled, drawn, sign, order, spent)),
        noise=noise,
        left_out=_left_out(filled, sign, order),
        best_of=best_of,
        tasks=filled.tasks if shown else (),
        by_task=_by_task(filled) if shown else {},
    )


def _by_task(filled: Filled) -> dict[str, tuple[float | None, ...]]:
    """What each system scored on each task."""
    below = 1.0 if filled.denominators is None else filled.denominators
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(filled.scored, filled.values / below, np.nan)
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


def _ranks(filled: Filled, drawn: Bootstrap, order: Sequence[int]) -> list[RankShare]:
    found = []
    for row in order:
        counts = drawn.rank_counts[row]
        for place in np.flatnonzero(counts):
            share = float(counts[place] / max(drawn.ranked, 1))
            found.append(RankShare(filled.systems[row], 1.0 + int(place) / 2.0, share))
    return found


def _pairs(
    filled: Filled, matrix: ScoreMatrix | None, drawn: Bootstrap, sign: float, order: Sequence[int]
) -> list[Pair]:
    """Every pair of ranked systems, with the signs that are displayed."""
    if len(order) < 2:
        return []
    return _pooled_pairs(filled, drawn, sign, order) if matrix is None else _tested(filled, matrix, order)


def _tested(filled: Filled, matrix: ScoreMatrix, order: Sequence[int]) -> list[Pair]:
    names = [filled.systems[row] for row in order]
    tests = paired_t(values_of(matrix, names, filled.tasks))
    corrected = holm(tests.p)
    return [
        Pair(
            a=names[first],
            b=names[second],
            difference=figure(tests.mean_difference[at]),
            low=figure(tests.low[at]),
            high=figure(tests.high[at]),
            p=figure(tests.p[at]),
            holm=figure(corrected[at]),
            n_used=int(tests.n_used[at]),
        )
        for at, (first, second) in enumerate(zip(tests.first, tests.second, strict=True))
    ]


def _pooled_pairs(filled: Filled, drawn: Bootstrap, sign: float, order: Sequence[int]) -> list[Pair]:
    found = []
    for a, b in combinations(order, 2):
        bounds = sorted((sign * drawn.difference_interval[a, b]).tolist())
        found.append(
            Pair(
                a=filled.systems[a],
                b=filled.systems[b],
                difference=figure(sign * drawn.difference[a, b]),
                low=figure(bounds[0]),
                high=figure(bounds[1]),
                p=None,
                holm=None,
                n_used=len(filled.tasks),
            )
        )
    return found


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
