"""Agreement of judges with people and with each other.

Scores are `[S, T]` (systems, tasks); NaN is missing. Equal means equal as float64. A coefficient that the
data do not define (one system, constant scores) is NaN, and every result says what it was made of.
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.agreement.reliability import (
    Level,
    Weights,
    cohens_kappa,
    icc_1_1,
    icc_2_k,
    krippendorffs_alpha,
)
from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers, as_scores, spans
from adjudge.scoring.kernels.base.compiled import compiled, in_threads
from adjudge.scoring.kernels.base.errors import KernelError

__all__ = [
    "HumanConsistency",
    "JudgeAgreement",
    "Level",
    "Weights",
    "cohens_kappa",
    "human_consistency",
    "human_par",
    "icc_1_1",
    "icc_2_k",
    "judge_agreement",
    "krippendorffs_alpha",
]


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

    Args:
        human: ratings `[S, T, R]` of R raters; a report's human score is the mean of its ratings.
        judge: scores `[S, T]`.

    Raises:
        KernelError: shapes that do not fit, or an infinite score.
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

    Raises:
        KernelError: another shape, or an infinite rating.
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

    Raises:
        KernelError: shapes that do not fit, or an infinite score.
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
