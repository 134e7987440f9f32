"""The detail behind a ranking: rank shares, pairwise differences, groups of tasks, cost and noise."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.leaderboard.best_of import BestOf
from adjudge.engine.records.matrices import ScoreMatrix, figure
from adjudge.engine.records.record import TaskRecord
from adjudge.engine.records.spending import Spent
from adjudge.scoring.kernels.agreement.variance import variance_components
from adjudge.scoring.kernels.base.errors import KernelError
from adjudge.scoring.kernels.comparison.frontier import pareto_frontier
from adjudge.scoring.kernels.comparison.paired_tests import holm, paired_t, student
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap
from adjudge.scoring.kernels.resampling.rank_stability import leave_one_out

__all__ = [
    "AXES",
    "Detail",
    "Frontier",
    "Group",
    "GroupMean",
    "LeftOut",
    "Noise",
    "Pair",
    "RankShare",
    "detail_of",
    "noise_of",
]

Floats = npt.NDArray[np.float64]

AXES = ("seconds", "cost", "tokens", "tokens_written")
KINDS = ("language", "domain")


class RankShare(msgspec.Struct, frozen=True):
    """The `share` of the resamples in which a system had a `rank`."""

    system: str
    rank: float
    share: float


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """System `a` minus system `b` on the tasks scored for all ranked systems; `a` is ranked before `b`.

    `low` and `high` bound the difference (bootstrap); `p` is the paired t test's, two-sided; `holm` is `p` corrected
    for the number of pairs. A pooled metric has no differences per task to test: `p` and `holm` are None.
    """

    a: str
    b: str
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    holm: float | None
    n_used: int


class GroupMean(msgspec.Struct, frozen=True, kw_only=True):
    """A system's mean over its own scored tasks of one group, with Student's interval if there are two or more."""

    system: str
    value: float | None
    low: float | None
    high: float | None
    n_scored: int


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one `language` or `domain` (`kind`), and every system's mean over them."""

    kind: str
    name: str
    n_tasks: int
    means: tuple[GroupMean, ...]


class Frontier(msgspec.Struct, frozen=True, kw_only=True):
    """Score against resources per report. `axis` is one of AXES (`Spent`), a mean over the reports that state it."""

    axis: str
    systems: tuple[str, ...]
    spent: tuple[float, ...]
    scores: tuple[float, ...]
    on_frontier: tuple[bool, ...]


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """Where the variance of single scores comes from: each component's share (`kernels/agreement/variance.py`).

    `repeat_sd` is the standard deviation between the judge's repeats of one judgment, in units of the metric; None if
    the design cannot estimate it. A share is None if its component cannot be estimated separately.
    """

    repeat_sd: float | None
    shares: dict[str, float | None]
    n_used: int


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """The ranking without each of its `n_tasks` in turn (DeepResearch Bench, appendix K).

    Without any one of `n_kept` tasks the ranking stays the same, ties included; `least_tau` is the lowest Kendall's
    tau-b with the full ranking, None if all systems tie. `ranks` holds each system's best and worst rank.
    """

    n_tasks: int
    n_kept: int
    least_tau: float | None
    ranks: dict[str, tuple[int, int]]


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """All the detail of one metric. Pairs are in order of rank; `noise` is None unless the run had repeats.

    `best_of` is empty unless the run had several samples per task.
    """

    ranks: tuple[RankShare, ...]
    pairs: tuple[Pair, ...]
    groups: tuple[Group, ...]
    frontiers: tuple[Frontier, ...]
    noise: Noise | None
    left_out: LeftOut | None = None
    best_of: tuple[BestOf, ...] = ()


def detail_of(
    matrix: ScoreMatrix,
    common: npt.NDArray[np.bool_],
    paired: Bootstrap,
    sign: float,
    tasks: Mapping[str, TaskRecord],
    spent: Mapping[str, Spent],
    noise: Noise | None,
    best_of: tuple[BestOf, ...],
) -> Detail:
    """The detail of `matrix`, whose `common` tasks were resampled into `paired`.

    Scores are multiplied by `sign` so that higher is better.
    """
    order = [int(row) for row in np.argsort(paired.rank, kind="stable") if not np.isnan(paired.rank[row])]
    return Detail(
        ranks=tuple(_ranks(matrix, paired, order)),
        pairs=tuple(_pairs(matrix, common, paired, sign, order)),
        groups=tuple(_groups(matrix, tasks)),
        frontiers=tuple(_frontiers(matrix, sign, spent)),
        noise=noise,
        left_out=_left_out(matrix, common, sign, order),
        best_of=best_of,
    )


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


def _ranks(matrix: ScoreMatrix, paired: Bootstrap, order: Sequence[int]) -> list[RankShare]:
    found = []
    for row in order:
        counts = paired.rank_counts[row]
        for place in np.flatnonzero(counts):
            share = float(counts[place] / max(paired.ranked, 1))
            found.append(RankShare(matrix.systems[row], 1.0 + int(place) / 2.0, share))
    return found


def _pairs(
    matrix: ScoreMatrix, common: npt.NDArray[np.bool_], paired: Bootstrap, sign: float, order: Sequence[int]
) -> list[Pair]:
    """Every pair of ranked systems, with the signs that are displayed."""
    if len(order) < 2:
        return []
    tests = paired_t(matrix.values[:, common])
    p = np.full(tests.p.shape, np.nan) if matrix.denominators is not None else tests.p
    both = np.isin(tests.first, order) & np.isin(tests.second, order)
    corrected = holm(np.where(both, p, np.nan))
    place = {
        (int(first), int(second)): at
        for at, (first, second) in enumerate(zip(tests.first, tests.second, strict=True))
    }
    found = []
    for at, a in enumerate(order):
        for b in order[at + 1 :]:
            test = place[min(a, b), max(a, b)]
            bounds = sorted((sign * paired.difference_interval[a, b]).tolist())
            found.append(
                Pair(
                    a=matrix.systems[a],
                    b=matrix.systems[b],
                    difference=figure(sign * paired.difference[a, b]),
                    low=figure(bounds[0]),
                    high=figure(bounds[1]),
                    p=figure(p[test]),
                    holm=figure(corrected[test]),
                    n_used=int(tests.n_used[test]),
                )
            )
    return found


def _left_out(
    matrix: ScoreMatrix, common: npt.NDArray[np.bool_], sign: float, order: Sequence[int]
) -> LeftOut | None:
    """None if fewer than two systems are ranked, and for a pooled metric, which has no values per task."""
    if matrix.denominators is not None or len(order) < 2 or common.sum() < 2:
        return None
    found = leave_one_out(sign * matrix.values[list(order)][:, common])
    tau = found.tau[~np.isnan(found.tau)]
    return LeftOut(
        n_tasks=found.tau.size,
        n_kept=int(found.kept.sum()),
        least_tau=float(tau.min()) if tau.size else None,
        ranks={
            matrix.systems[row]: (int(found.best_rank[at]), int(found.worst_rank[at]))
            for at, row in enumerate(order)
        },
    )


def _groups(matrix: ScoreMatrix, tasks: Mapping[str, TaskRecord]) -> list[Group]:
    """Means by group, for the kinds that have at least two groups."""
    found = []
    for kind in KINDS:
        names = np.array([getattr(tasks[task], kind) if task in tasks else "" for task in matrix.tasks])
        distinct = sorted(set(names.tolist()))
        if len(distinct) < 2:
            continue
        for name in distinct:
            chosen = names == name
            found.append(
                Group(
                    kind=kind,
                    name=name,
                    n_tasks=int(chosen.sum()),
                    means=tuple(_group_means(matrix, chosen)),
                )
            )
    return found


def _group_means(matrix: ScoreMatrix, chosen: npt.NDArray[np.bool_]) -> list[GroupMean]:
    """Means, or ratios of sums without an interval where the metric is pooled."""
    found = []
    for row, system in enumerate(matrix.systems):
        values = matrix.values[row, chosen]
        scored = ~np.isnan(values)
        n = int(scored.sum())
        mean = low = high = float("nan")
        if n and matrix.denominators is not None:
            below = float(matrix.denominators[row, chosen][scored].sum())
            mean = float(values[scored].sum()) / below if below else float("nan")
        elif n:
            mean = float(values[scored].mean())
        if n > 1 and matrix.denominators is None:
            error = float(values[scored].std(ddof=1)) / np.sqrt(n)
            interval = student(mean, error, n)
            low, high = float(interval.low), float(interval.high)
        found.append(
            GroupMean(system=system, value=figure(mean), low=figure(low), high=figure(high), n_scored=n)
        )
    return found


def _frontiers(matrix: ScoreMatrix, sign: float, spent: Mapping[str, Spent]) -> list[Frontier]:
    """One frontier per axis that at least two scored systems state."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if matrix.denominators is None:
            sums, counts = np.nansum(matrix.values, axis=1), (~np.isnan(matrix.values)).sum(axis=1)
        else:
            sums, counts = np.nansum(matrix.values, axis=1), np.nansum(matrix.denominators, axis=1)
        scores = sums / counts
    found = []
    for axis in AXES:
        stated = {
            row: float(value)
            for row, system in enumerate(matrix.systems)
            if system in spent and (value := getattr(spent[system], axis)) is not None
        }
        rows = [row for row in stated if not np.isnan(scores[row])]
        if len(rows) < 2:
            continue
        costs = [stated[row] for row in rows]
        on = pareto_frontier(sign * scores[rows], costs)
        found.append(
            Frontier(
                axis=axis,
                systems=tuple(matrix.systems[row] for row in rows),
                spent=tuple(costs),
                scores=tuple(float(scores[row]) for row in rows),
                on_frontier=tuple(bool(flag) for flag in on),
            )
        )
    return found
