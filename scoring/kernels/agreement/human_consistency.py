"""Agreement of judges with people and with each other, and coefficients of reliability.

Scores are `[S, T]` (systems, tasks); NaN is missing. Equal means are equal as float64. A coefficient that the data do
not define (one system, constant scores) is NaN, and every result says what it was computed from. The coefficients of
reliability are ICC(1,1), ICC(2,k), Cohen's kappa and Krippendorff's alpha.
"""

from math import sqrt
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import (
    Flags,
    Floats,
    Integers,
    KernelError,
    as_scores,
    compiled,
    in_threads,
    spans,
)

Level = Literal["nominal", "ordinal", "interval"]
Weights = Literal["none", "linear", "quadratic"]


def icc_1_1(ratings: ArrayLike) -> Floats:
    """ICC(1,1), one-way random: (MSB - MSW) / (MSB + (k - 1) MSW) of ratings `[..., n, k]`.

    Reports may have different numbers of ratings; k is then (N - sum k_i^2 / N) / (n - 1), as in the
    unbalanced analysis of variance. NaN with fewer than two rated reports, without a second rating of any, or
    where nothing varies.
    """
    values = as_scores(ratings, max(np.ndim(ratings), 2), "ratings")
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    k = present.sum(axis=-1).astype(np.float64)
    total = k.sum(axis=-1)
    reports = (k > 0).sum(axis=-1)
    highest = np.max(values, axis=(-2, -1), where=present, initial=-np.inf)
    lowest = np.min(values, axis=(-2, -1), where=present, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        grand = filled.sum(axis=(-2, -1)) / total
        # Centred first: the sums of squares of large, close scores would cancel.
        centred = np.where(present, values - grand[..., None, None], 0.0)
        means = np.where(k > 0, centred.sum(axis=-1) / k, 0.0)
        within = np.where(present, centred - means[..., None], 0.0)
        msb = (k * means**2).sum(axis=-1) / (reports - 1)
        msw = (within**2).sum(axis=(-2, -1)) / (total - reports)
        mean_k = (total - (k**2).sum(axis=-1) / total) / (reports - 1)
        icc = (msb - msw) / (msb + (mean_k - 1) * msw)
    return np.where((highest > lowest) & (reports > 1) & (total > reports), icc, np.nan)


def icc_2_k(ratings: ArrayLike) -> Floats:
    """ICC(2,k), two-way random, absolute agreement of the mean of k raters, of ratings `[n, k]`.

    Reports that lack a rating are left out. NaN with fewer than two whole reports or raters, or where nothing
    varies.
    """
    values = as_scores(ratings, 2, "ratings")
    whole = values[~np.isnan(values).any(axis=1)]
    n, k = whole.shape
    if n < 2 or k < 2 or whole.min() == whole.max():
        return np.array(np.nan)
    centred = whole - whole.mean()
    rows, columns = centred.mean(axis=1), centred.mean(axis=0)
    msr = k * np.sum(rows**2) / (n - 1)
    msc = n * np.sum(columns**2) / (k - 1)
    mse = np.sum((centred - rows[:, None] - columns) ** 2) / ((n - 1) * (k - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((msr - mse) / (msr + (msc - mse) / n))


def cohens_kappa(first: ArrayLike, second: ArrayLike, *, weights: Weights = "none") -> float:
    """Cohen's kappa of two raters' values `[n]`: categories, in numerical order where weighted.

    Raises KernelError for shapes that do not fit, infinite values, unknown weights.
    """
    one, other = as_scores(first, 1, "first"), as_scores(second, 1, "second")
    if one.shape != other.shape:
        raise KernelError(f"raters of {one.size} and {other.size} items")
    if weights not in get_args(Weights):
        raise KernelError(f"weights must be one of {', '.join(get_args(Weights))}, not {weights!r}")
    both = ~np.isnan(one) & ~np.isnan(other)
    values, codes = np.unique(np.concatenate([one[both], other[both]]), return_inverse=True)
    a, b = codes[: codes.size // 2], codes[codes.size // 2 :]
    if not a.size:
        return float("nan")
    count_a, count_b = np.bincount(a, minlength=values.size), np.bincount(b, minlength=values.size)
    if weights == "none":
        observed = float(np.mean(a != b))
        expected = 1 - float(count_a @ count_b) / a.size**2
    elif weights == "linear":
        observed = float(np.abs(a - b).mean())
        # The mean |i - j| of independent draws, from the two cumulative distributions.
        below_a, below_b = np.cumsum(count_a) / a.size, np.cumsum(count_b) / a.size
        expected = float(np.sum(below_a * (1 - below_b) + below_b * (1 - below_a)))
    else:
        observed = float(np.mean((a - b) ** 2.0))
        expected = float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)
    return 1 - observed / expected if expected > 0 else float("nan")


def krippendorffs_alpha(ratings: ArrayLike, *, level: Level) -> float:
    """Krippendorff's alpha of ratings `[raters, units]`; NaN where nothing varies or nothing is rated twice.

    The ordinal distance of two values is the squared difference of their mid-ranks among all pairable values,
    which is Krippendorff's sum over the values between them.

    Raises KernelError for another shape, infinite values, an unknown level.
    """
    values = as_scores(ratings, 2, "ratings")
    if level not in get_args(Level):
        raise KernelError(f"level must be one of {', '.join(get_args(Level))}, not {level!r}")
    present = ~np.isnan(values)
    pairable = present & (present.sum(axis=0) > 1)
    unit = np.broadcast_to(np.arange(values.shape[1]), values.shape)[pairable]
    rated = values[pairable]
    if not rated.size:
        return float("nan")
    raters = np.bincount(unit, minlength=values.shape[1]).astype(np.float64)
    used, n = raters > 1, float(rated.size)
    if level == "nominal":
        distinct, codes = np.unique(rated, return_inverse=True)
        cells, counts = np.unique(unit * distinct.size + codes, return_counts=True)
        equal = np.bincount(cells // distinct.size, weights=counts.astype(float) ** 2, minlength=raters.size)
        observed = float(np.sum((raters[used] ** 2 - equal[used]) / (raters[used] - 1))) / n
        expected = (n**2 - float(np.sum(np.bincount(codes).astype(float) ** 2))) / (n * (n - 1))
    else:
        points = mid_ranks(rated) if level == "ordinal" else rated
        centred = points - points.mean()
        means = np.bincount(unit, weights=centred, minlength=raters.size)
        means[used] = means[used] / raters[used]
        squares = np.bincount(unit, weights=(centred - means[unit]) ** 2, minlength=raters.size)
        observed = 2 * float(np.sum(raters[used] / (raters[used] - 1) * squares[used])) / n
        expected = 2 * float(np.sum(centred**2)) / (n - 1) if points.min() < points.max() else 0.0
    return 1 - observed / expected if expected > 0 else float("nan")


def mid_ranks(values: Floats) -> Floats:
    """Ranks from 1 of `values[n]`, equal values sharing the mean of theirs."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts).astype(np.float64)
    ranks: Floats = (last - (counts - 1) / 2)[codes]
    return ranks


class HumanConsistency(msgspec.Struct, frozen=True):
    """How far a judge orders reports as people do, DeepResearch Bench's measures."""

    par: float
    """share of (task, pair of systems) where both differences have one sign; a tie equals only a tie"""
    par_dr3: float
    """share of pairs of cases, over all tasks, ordered alike; a tie on either side is disagreement"""
    opc: float
    """Pearson correlation of the systems' means"""
    fap: float
    """mean Pearson correlation within a task, over the kept tasks"""
    fas: float
    """mean Spearman correlation within a task, over the kept tasks"""
    icc: Floats
    """ICC(1,1) of the human ratings, `[T]`"""
    kept: Flags
    """tasks with ICC(1,1) >= 0, `[T]`"""
    n_pairs: int
    n_cases: int
    n_systems: int
    n_kept: int
    n_filtered: int
    """kept tasks on which both correlations are defined: those `fap` and `fas` are means of"""


class JudgeAgreement(msgspec.Struct, frozen=True):
    """How far two judges agree on the same reports."""

    par: float
    par_dr3: float
    opc: float
    pearson: float
    """mean within a task, over the tasks where it is defined"""
    spearman: float
    icc_1_1: float
    icc_2_k: float
    kappa: float
    """Cohen's, of scores that are equal or not"""
    kappa_quadratic: float
    alpha: float
    """Krippendorff's, interval"""
    mean_difference: float
    """first minus second"""
    n_pairs: int
    n_cases: int
    n_systems: int
    n_tasks: int
    """tasks on which the correlations are defined"""


def human_consistency(human: ArrayLike, judge: ArrayLike) -> HumanConsistency:
    """PAR, OPC, FAP and FAS of a judge against people.

    human: ratings `[S, T, R]` of R raters; a report's human score is the mean of its ratings.
    judge: scores `[S, T]`.
    Raises KernelError for shapes that do not fit, or an infinite score.
    """
    ratings = as_scores(human, 3, "human")
    people = _mean_rating(ratings)
    people, scores = _validated(people, judge)
    equal, pairs = _same_signs(people, scores)
    agreeing, cases = _ordered_alike(people, scores)
    opc, systems = _system_correlation(people, scores)
    pearson, spearman = _task_correlations(people, scores)
    icc = icc_1_1(np.moveaxis(ratings, 1, 0))
    kept = icc >= 0
    defined = kept & ~np.isnan(pearson) & ~np.isnan(spearman)
    return HumanConsistency(
        par=_share(equal, pairs),
        par_dr3=_share(agreeing, cases * (cases - 1) // 2),
        opc=opc,
        fap=_mean(pearson[defined]),
        fas=_mean(spearman[defined]),
        icc=icc,
        kept=kept,
        n_pairs=pairs,
        n_cases=cases,
        n_systems=systems,
        n_kept=int(kept.sum()),
        n_filtered=int(defined.sum()),
    )


def human_par(human: ArrayLike) -> float:
    """PAR between one person and the mean of the others, over all R raters of `human[S, T, R]` and all their pairs.

    Ignores tasks and reports that only one person rated. NaN without a pair.

    Raises KernelError for another shape, or an infinite rating.
    """
    ratings = as_scores(human, 3, "human")
    equal = pairs = 0
    for rater in range(ratings.shape[2]):
        others = _mean_rating(np.delete(ratings, rater, axis=2))
        one, rest = _validated(ratings[:, :, rater], others)
        counts = _same_signs(one, rest)
        equal, pairs = equal + counts[0], pairs + counts[1]
    return _share(equal, pairs)


def judge_agreement(first: ArrayLike, second: ArrayLike) -> JudgeAgreement:
    """Agreement of two judges' scores `[S, T]` of the same reports.

    Raises KernelError for shapes that do not fit, or an infinite score.
    """
    one, other = _validated(as_scores(first, 2, "first"), second)
    equal, pairs = _same_signs(one, other)
    agreeing, cases = _ordered_alike(one, other)
    opc, systems = _system_correlation(one, other)
    pearson, spearman = _task_correlations(one, other)
    defined = ~np.isnan(pearson) & ~np.isnan(spearman)
    reports = np.stack([one.ravel(), other.ravel()])
    return JudgeAgreement(
        par=_share(equal, pairs),
        par_dr3=_share(agreeing, cases * (cases - 1) // 2),
        opc=opc,
        pearson=_mean(pearson[defined]),
        spearman=_mean(spearman[defined]),
        icc_1_1=float(icc_1_1(reports.T)),
        icc_2_k=float(icc_2_k(reports.T)),
        kappa=cohens_kappa(*reports),
        kappa_quadratic=cohens_kappa(*reports, weights="quadratic"),
        alpha=krippendorffs_alpha(reports, level="interval"),
        mean_difference=_mean(_present(one - other)),
        n_pairs=pairs,
        n_cases=cases,
        n_systems=systems,
        n_tasks=int(defined.sum()),
    )


def _validated(first: Floats, second: ArrayLike) -> tuple[Floats, Floats]:
    other = as_scores(second, 2)
    if first.shape != other.shape:
        raise KernelError(f"scores of {first.shape} and {other.shape} systems and tasks")
    both = ~np.isnan(first) & ~np.isnan(other)
    return np.where(both, first, np.nan), np.where(both, other, np.nan)


def _mean_rating(ratings: Floats) -> Floats:
    present = ~np.isnan(ratings)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(present, ratings, 0.0).sum(axis=2) / present.sum(axis=2))


def _present(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else float("nan")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _system_correlation(first: Floats, second: Floats) -> tuple[float, int]:
    scored = ~np.isnan(first).all(axis=1)
    means = [np.nanmean(scores[scored], axis=1) for scores in (first, second)]
    return float(_pearson(means[0], means[1])), int(scored.sum())


def _same_signs(first: Floats, second: Floats) -> tuple[int, int]:
    one, other = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T)
    tasks, systems = one.shape
    equal, pairs = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)

    def count(span: tuple[int, int]) -> None:
        rows = slice(*span)
        _count_signs(one[rows], other[rows], equal[rows], pairs[rows])

    in_threads(count, spans(tasks, systems * systems))
    return int(equal.sum()), int(pairs.sum())


@compiled
def _count_signs(first: Floats, second: Floats, equal: Integers, pairs: Integers) -> None:
    """For each task (row): pairs of systems (columns) with equal signs of their differences, and pairs."""
    for task in range(first.shape[0]):
        for i in range(first.shape[1]):
            for j in range(i + 1, first.shape[1]):
                a, b = first[task, i] - first[task, j], second[task, i] - second[task, j]
                pairs[task] += a == a
                equal[task] += a == a and (a > 0) == (b > 0) and (a < 0) == (b < 0)


def _ordered_alike(first: Floats, second: Floats) -> tuple[int, int]:
    one, other = _present(first), _present(second)
    order = np.lexsort((other, one))
    codes = np.unique(other, return_inverse=True)[1]
    return int(_count_concordant(one[order], codes[order].astype(np.int64))), one.size


@compiled
def _count_concordant(sorted_values: Floats, codes: Integers) -> int:
    """Pairs in which the code rises strictly with the value; a Fenwick tree counts the smaller codes."""
    n = sorted_values.size
    tree = np.zeros(n + 1, np.int64)
    concordant, start = 0, 0
    for k in range(n):
        while sorted_values[start] < sorted_values[k]:
            node = codes[start] + 1
            while node <= n:
                tree[node] += 1
                node += node & -node
            start += 1
        node = codes[k]
        while node > 0:
            concordant += tree[node]
            node -= node & -node
    return concordant


def _task_correlations(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    one, other = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T)
    tasks, systems = one.shape
    pearson, spearman = np.empty(tasks), np.empty(tasks)

    def correlate(span: tuple[int, int]) -> None:
        rows = slice(*span)
        _correlate_rows(one[rows], other[rows], pearson[rows], spearman[rows])

    in_threads(correlate, spans(tasks, 50 * systems))
    return pearson, spearman


@compiled
def _correlate_rows(first: Floats, second: Floats, pearson: Floats, spearman: Floats) -> None:
    for task in range(first.shape[0]):
        present = ~np.isnan(first[task])
        a, b = first[task][present], second[task][present]
        pearson[task] = _pearson(a, b)
        spearman[task] = _pearson(_mid_ranks(a), _mid_ranks(b))


@compiled
def _mid_ranks(values: Floats) -> Floats:
    order = np.argsort(values)
    ranks = np.empty(values.size)
    start = 0
    while start < values.size:
        end = start + 1
        while end < values.size and values[order[end]] == values[order[start]]:
            end += 1
        for k in range(start, end):
            ranks[order[k]] = (start + 1 + end) / 2
        start = end
    return ranks


@compiled
def _pearson(a: Floats, b: Floats) -> float:
    if a.size < 2 or a.min() == a.max() or b.min() == b.max():
        return np.nan
    x, y = a - a.mean(), b - b.mean()
    return float(np.sum(x * y) / np.sqrt(np.sum(x * x) * np.sum(y * y)))


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion (Wilson 1927)."""
    z = 1.959963984540054
    share = successes / trials
    middle = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
