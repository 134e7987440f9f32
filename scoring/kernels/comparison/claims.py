"""What a difference of means over tasks may be said to show: the one rule of every comparison, tier, rank and gate.

Where at most FEW tasks differ, a difference is tested by all ways to flip its signs (Fisher's permutation test); where
more do, by Student's t. No p is below that of all signs agreeing, `least_p`: two tasks, or equal differences, prove
nothing that so many coin tosses would not. An interval holds the differences that the same test does not reject. Up to
FEW tasks its ends are means of subsets of the tasks (Hartigan 1969, "Using subsample values as typical values"); there
is none where even the least possible p exceeds alpha, and none of no width: equal differences say nothing of their
spread.

`told_apart` corrects the p values of all pairs of systems (Holm), so that the chance of any false claim is at most
alpha. Tiers and spans of ranks say no more than it does: a system is below those that are told above it, and above
those that are told below it (Mogstad, Romano, Shaikh and Wilhelm 2024, "Inference for ranks").
"""

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from adjudge.scoring.kernels.base.arrays import (
    Flags,
    Floats,
    Integers,
    KernelError,
    as_scores,
    as_share,
    compiled,
    in_threads,
    spans,
)
from adjudge.scoring.kernels.base.distributions import normal_cdf, normal_quantile, student_cdf
from adjudge.scoring.kernels.comparison.paired_tests import PairedT, holm, paired_t

__all__ = [
    "ALPHA",
    "FEW",
    "Differences",
    "above",
    "differences",
    "fewest_tasks",
    "least_p",
    "rank_spans",
    "resampled",
    "subset_mean",
    "tiers",
    "told_apart",
]

ALPHA = 0.05
"""The chance of a false claim that is accepted where nothing else is asked for."""
FEW = 12
"""Up to so many tasks, all sign patterns are gone through."""

ROUNDING = 1e-14  # differences that are smaller than this share of the scores are none
_MANY = 1_000_000  # steps that need not be counted any closer
TOLERANCE = 1e-12  # sums that differ by less than this share of sum |d| are equal


class Differences(msgspec.Struct, frozen=True):
    """First minus second system, one element per pair in the order of `numpy.triu_indices(S, 1)`; NaN is undefined.

    `p` is two-sided, NaN without a common task. `low` and `high` bound the difference; NaN where nothing can be said.
    """

    first: Integers
    second: Integers
    n_used: Integers
    """tasks scored for both"""
    difference: Floats
    low: Floats
    high: Floats
    p: Floats


def least_p(tasks: int) -> float:
    """The least p, two-sided, that so many differences can have: all of one sign."""
    return min(1.0, 2.0 ** (1 - tasks))


def fewest_tasks(alpha: float, *, sides: int = 2) -> int:
    """The tasks below which not even all signs agreeing is as rare as `alpha`."""
    return max(1, math.ceil(-math.log2(alpha / sides) - 1e-9))


def differences(scores: ArrayLike, *, alpha: float = ALPHA, bounded: bool = True) -> Differences:
    """The differences of all pairs of systems with the p of the rule, and intervals at 1 - `alpha` if `bounded`.

    Args:
        scores: `[S, T]`, NaN for missing.
        alpha: the level of the intervals.
        bounded: whether intervals are wanted.

    Raises:
        KernelError: scores of another shape or infinite; alpha not between 0 and 1.
    """
    values, alpha = as_scores(scores, 2), as_share(alpha, "alpha")
    student = paired_t(values, confidence=1.0 - alpha)
    pairs = student.first.size
    p, low, high = np.full(pairs, np.nan), student.low.copy(), student.high.copy()
    student_p = np.nan_to_num(student.p, nan=1.0)

    def test(span: tuple[int, int]) -> None:
        at = slice(*span)
        first, second = student.first[at], student.second[at]
        _test_pairs(values, first, second, student_p[at], alpha, bounded, p[at], low[at], high[at])

    tasks = values.shape[1]
    parts = spans(pairs, 64 * max(tasks, 1))
    in_threads(test, parts, steps=_steps(values, student) // max(1, len(parts)), sparing=True)
    return Differences(
        first=student.first,
        second=student.second,
        n_used=student.n_used,
        difference=student.mean_difference,
        low=low,
        high=high,
        p=p,
    )


def resampled(difference: Floats, interval: Floats, tasks: int, *, alpha: float = ALPHA) -> Differences:
    """The rule for differences that have no value per task, only resamples of `tasks`, such as strengths.

    p is that of a normal distribution as wide as the interval, and never below `least_p`.

    Args:
        difference: `[S, S]`, the row's system minus the column's.
        interval: `[S, S, 2]`, its ends at 1 - `alpha`.
        tasks: how many were resampled.
        alpha: the level of the intervals.
    """
    first, second = np.triu_indices(len(difference), 1)
    found, low, high = difference[first, second], interval[first, second, 0], interval[first, second, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (high - low) / (2.0 * normal_quantile(1.0 - alpha / 2.0))
        p = 2.0 * normal_cdf(-np.abs(found) / spread)
    p = np.where(np.isnan(low), np.nan, np.where(found == 0.0, 1.0, np.maximum(p, least_p(tasks))))
    unbounded = (least_p(tasks) > alpha) | ~(high > low)
    return Differences(
        first=first.astype(np.int64),
        second=second.astype(np.int64),
        n_used=np.full(first.size, tasks, np.int64),
        difference=found,
        low=np.where(unbounded, np.nan, low),
        high=np.where(unbounded, np.nan, high),
        p=p,
    )


def above(differences: ArrayLike, limit: float = 0.0) -> float:
    """The one-sided p of the hypothesis that the mean of `differences[T]` is at most `limit`; NaN without any."""
    found = as_scores(differences, 1, "differences")
    found = found[~np.isnan(found)]
    if not found.size:
        return math.nan
    rest, size = found - limit, float(np.abs(found).max(initial=abs(limit)))
    rest = rest[np.abs(rest) > ROUNDING * size]
    if rest.size <= FEW:
        return _share_as_high(rest)
    every = np.concatenate([rest, np.zeros(found.size - rest.size)])
    error = float(every.std(ddof=1)) / math.sqrt(every.size)
    mean = float(every.mean())
    p = (
        float(mean <= 0.0)
        if error <= TOLERANCE * abs(mean)
        else float(student_cdf(every.size - 1, -mean / error))
    )
    return max(p, 0.5**rest.size)


def subset_mean(differences: ArrayLike, alpha: float) -> float:
    """The least mean that `differences[T]`, at most FEW, do not reject one-sided at `alpha`; NaN if there is none."""
    found = as_scores(differences, 1, "differences")
    if not 0 < found.size <= FEW:
        raise KernelError(f"differences: {found.size}, but 1 to {FEW} are needed")
    return float(_nth_subset_mean(found, int(alpha * 2.0**found.size + 1e-9)))


def told_apart(found: Differences, systems: int, alpha: float = ALPHA) -> tuple[Floats, Flags]:
    """Each pair's p after Holm's correction; `[S, S]`, whether the row's system is told to be above the column's."""
    corrected = holm(found.p)
    above_it = np.zeros((systems, systems), np.bool_)
    told = np.nan_to_num(corrected, nan=1.0) <= alpha
    first, second, up = found.first[told], found.second[told], found.difference[told] > 0.0
    above_it[np.where(up, first, second), np.where(up, second, first)] = True
    return corrected, above_it


def tiers(estimate: ArrayLike, above_it: Flags) -> Integers:
    """Tiers from 1, the best; 0 without an estimate.

    A tier is led by its highest estimate. Going down, the first system that its leader is told to be above leads the
    next.

    Args:
        estimate: `[S]`, higher is better; NaN for systems that are left out.
        above_it: `[S, S]`, as of `told_apart`.
    """
    values = as_scores(estimate, 1, "estimate")
    tier = np.zeros(values.size, np.int64)
    leader, current = -1, 0
    for system in np.argsort(-values, kind="stable").tolist():
        if np.isnan(values[system]):
            continue
        if current == 0 or above_it[leader, system]:
            leader, current = system, current + 1
        tier[system] = current
    return tier


def rank_spans(above_it: Flags, counted: Flags) -> Floats:
    """`[S, 2]`: the best and worst rank that is not ruled out among the `counted` systems `[S]`; NaN for the others."""
    among = above_it & counted[:, None] & counted
    best, worst = 1.0 + among.sum(axis=0), counted.sum() - among.sum(axis=1)
    return np.where(counted[:, None], np.stack([best, worst], axis=1), np.nan)


def _steps(values: Floats, student: PairedT) -> int:
    """How many `_test_pairs` takes, roughly: three per task of a pair, and one per pattern that it goes through."""
    steps = 3 * int(student.first.size) * int(values.shape[1])
    if steps > _MANY:
        return steps
    differ = np.abs(values[student.first] - values[student.second]) > 0.0
    counts: list[int] = [*differ.sum(axis=1).tolist(), *2 * student.n_used.tolist()]
    return steps + sum(1 << count for count in counts if count <= FEW)


@compiled
def _test_pairs(
    values: NDArray[np.float64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    student_p: NDArray[np.float64],
    alpha: float,
    bounded: bool,
    p: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> None:
    tasks = values.shape[1]
    every, nonzero = np.empty(tasks), np.empty(tasks)
    for pair in range(first.size):
        x, y = values[first[pair]], values[second[pair]]
        n, m = 0, 0
        least, most = np.inf, -np.inf
        for task in range(tasks):
            difference = x[task] - y[task]
            if np.isnan(difference):
                continue
            if abs(difference) <= ROUNDING * (abs(x[task]) + abs(y[task])):
                difference = 0.0
            else:
                nonzero[m] = difference
                m += 1
            every[n] = difference
            n += 1
            least, most = min(least, difference), max(most, difference)
        if n == 0:
            continue
        if m <= FEW:
            p[pair] = _two_sided(nonzero[:m])
        else:
            p[pair] = max(student_p[pair] if most > least else 0.0, 2.0 ** (1 - m))
        if not bounded:
            continue
        if n <= FEW:
            rank = int(alpha / 2 * 2.0**n + 1e-9)
            low[pair] = _nth_subset_mean(every[:n], rank)
            _turn(every[:n])
            high[pair] = -_nth_subset_mean(every[:n], rank)
        if most - least <= ROUNDING * max(abs(most), abs(least)):
            low[pair] = high[pair] = np.nan
        elif p[pair] > alpha:  # no claim by its interval either
            low[pair], high[pair] = min(low[pair], 0.0), max(high[pair], 0.0)


@compiled
def _two_sided(found: NDArray[np.float64]) -> float:
    """The two-sided p of `found`, of which it may turn the signs."""
    total = 0.0
    for one in found:
        total += one
    if not total > 0.0:
        _turn(found)
    return min(1.0, 2.0 * _share_as_high(found))


@compiled
def _turn(values: NDArray[np.float64]) -> None:
    """Changes the sign of all `values`, in place: the expression `-values` takes longer to compile."""
    for at in range(values.size):
        values[at] = -values[at]


@compiled
def _share_as_high(found: NDArray[np.float64]) -> float:
    """The share of all sign patterns that give at least the sum of `found`."""
    n = found.size
    # Flipping a subset takes twice its sum away: at least as high means a sum of at most 0.
    size = 0.0
    for one in found:
        size += abs(one)
    room = TOLERANCE * size
    total, count, flipped = 0.0, 1, np.zeros(n, np.bool_)
    for pattern in range(1, 1 << n):
        place = 0
        while (pattern >> place) & 1 == 0:
            place += 1
        total += -found[place] if flipped[place] else found[place]
        flipped[place] = not flipped[place]
        count += total <= room
    return count / 2.0**n


@compiled
def _nth_subset_mean(found: NDArray[np.float64], rank: int) -> float:
    """The `rank`-th smallest (from 1) mean of a subset of `found`; NaN for rank 0."""
    n = found.size
    if rank < 1:
        return np.nan
    means, flipped = np.empty((1 << n) - 1), np.zeros(n, np.bool_)
    total, size = 0.0, 0
    for pattern in range(1, 1 << n):
        place = 0
        while (pattern >> place) & 1 == 0:
            place += 1
        total += -found[place] if flipped[place] else found[place]
        size += -1 if flipped[place] else 1
        flipped[place] = not flipped[place]
        means[pattern - 1] = total / size
    return _nth_smallest(means, min(rank, means.size) - 1)


@compiled
def _nth_smallest(values: NDArray[np.float64], at: int) -> float:
    """The value at `at` of `values` in rising order; changes their order. `np.partition` takes 3 s to compile."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if at <= right:
            high = right
        elif at >= left:
            low = left
        else:
            break
    return float(values[at])
