"""Paired tests between all pairs of systems on the tasks both have scores for.

Student's t with its interval and Cohen's d (DeepResearch Bench, appendix K), Wilcoxon's signed ranks
(DR3-Eval 4.3) and a sign-flip permutation test; Holm's correction for any family of p values. The tests take
`scores[S, T]` (systems, tasks; NaN is missing) and report the P = S (S - 1) / 2 pairs in the order of
`numpy.triu_indices(S, 1)`, as first minus second. What is undefined for a pair is NaN there.
"""

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers, as_scores, as_share, spans
from adjudge.scoring.kernels.base.compiled import in_threads, laned
from adjudge.scoring.kernels.base.errors import KernelError
from adjudge.scoring.kernels.base.streams import philox, seed_key
from adjudge.scoring.kernels.comparison.sign_flips import SignBytes, count_extreme
from adjudge.scoring.kernels.comparison.signed_ranks import ZERO_METHODS, ZeroMethod, signed_ranks

__all__ = [
    "PairedT",
    "SignFlip",
    "SignedRank",
    "Student",
    "holm",
    "paired_t",
    "sign_flip",
    "student",
    "wilcoxon",
]

# Resampled sums that differ from the observed one by less than this share of sum |d| count as equal to it.
TIE_TOLERANCE = 1e-12
# Differences that are further apart than these shares of themselves and of the scores are not equal.
DIFFERENCE_ROUNDING, SCORE_ROUNDING = 1e-12, 4e-15
# The purpose of a random counter, as in streams.
SIGNS = np.uint32(0x80000001)


class Student(msgspec.Struct, frozen=True):
    """What a mean difference and its standard error say: arrays of one shape."""

    t: Floats
    p: Floats
    """two-sided"""
    low: Floats
    high: Floats
    cohens_d: Floats
    """mean difference over the standard deviation of differences, t / sqrt(n)"""


class PairedT(msgspec.Struct, frozen=True):
    """Paired t tests, one element per pair.

    Where a pair has fewer than two common tasks, or all its differences are 0, t, p and Cohen's d are NaN;
    where all are equal and not 0, t and d are infinite and p is 0. Differences that are apart by rounding alone are
    equal.
    """

    first: Integers
    second: Integers
    n_used: Integers
    """tasks scored for both"""
    mean_difference: Floats
    sd_difference: Floats
    """with n - 1 in the denominator"""
    t: Floats
    p: Floats
    low: Floats
    high: Floats
    cohens_d: Floats
    confidence: float


class SignedRank(msgspec.Struct, frozen=True):
    """Wilcoxon's signed-rank tests, one element per pair.

    Differences are ranked by magnitude; equal magnitudes (equal as float64) share their mean rank and enter
    the variance of the normal approximation through sum(g^3 - g).
    """

    first: Integers
    second: Integers
    n_used: Integers
    """tasks scored for both, differences of 0 included"""
    n_zero: Integers
    w_plus: Floats
    """rank sum of the differences above 0; `zsplit` adds half the ranks of zeros here and to `w_minus`"""
    w_minus: Floats
    z: Floats
    """normal approximation, without continuity correction"""
    p: Floats
    """two-sided"""
    exact: Flags
    """whether p comes from the exact null distribution (at most 50 differences other than 0; ties allowed)"""
    zero_method: ZeroMethod


class SignFlip(msgspec.Struct, frozen=True):
    """Sign-flip permutation tests of the mean difference, one element per pair."""

    first: Integers
    second: Integers
    n_used: Integers
    mean_difference: Floats
    p: Floats
    """(1 + resamples at least as extreme) / (1 + resamples), two-sided (Phipson and Smyth 2010)"""
    resamples: int
    seed: int


def paired_t(scores: ArrayLike, *, confidence: float = 0.95) -> PairedT:
    """Paired t tests of all pairs of systems.

    Args:
        scores: `[S, T]`, NaN for missing.
        confidence: of the interval of the mean difference.

    Raises:
        KernelError: scores of another shape or infinite; confidence not between 0 and 1.
    """
    values, first, second = _validated(scores)
    confidence = as_share(confidence, "confidence")
    n_used, mean, sd = _measured(values, first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = student(mean, sd / np.sqrt(n_used), n_used, confidence=confidence)
    return PairedT(
        first=first,
        second=second,
        n_used=n_used,
        mean_difference=mean,
        sd_difference=sd,
        t=result.t,
        p=result.p,
        low=result.low,
        high=result.high,
        cohens_d=result.cohens_d,
        confidence=confidence,
    )


def student(
    mean_difference: ArrayLike, standard_error: ArrayLike, n: ArrayLike, *, confidence: float = 0.95
) -> Student:
    """t, p, interval and Cohen's d from a mean difference, its standard error and the number of tasks.

    A published difference d and its t give the standard error d / t, and so everything else.
    """
    mean = np.asarray(mean_difference, dtype=np.float64)
    error = np.asarray(standard_error, dtype=np.float64)
    count = np.asarray(n, dtype=np.float64)
    degrees = np.where(count > 1, count - 1, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / error
        cohens_d = t / np.sqrt(count)
    half = special.stdtrit(degrees, 0.5 + confidence / 2) * error
    # Not 1 - cdf(|t|): that would lose the small p values.
    p = 2 * special.stdtr(degrees, -np.abs(t))
    return Student(t=t, p=p, low=mean - half, high=mean + half, cohens_d=cohens_d)


def wilcoxon(
    scores: ArrayLike,
    *,
    zero_method: ZeroMethod = "wilcox",
    method: Literal["auto", "asymptotic"] = "auto",
) -> SignedRank:
    """Wilcoxon's signed-rank tests of all pairs of systems.

    Args:
        scores: `[S, T]`, NaN for missing.
        zero_method: differences of 0 are dropped (`wilcox`), ranked and then dropped (`pratt`), or ranked and
            split between both sides (`zsplit`); as in `scipy.stats.wilcoxon`.
        method: `auto` takes the exact distribution, ties included, where at most 50 differences are not 0.

    Raises:
        KernelError: scores of another shape or infinite; an unknown zero method or method.
    """
    values, first, second = _validated(scores)
    if zero_method not in ZERO_METHODS:
        raise KernelError(f"zero_method must be one of {', '.join(ZERO_METHODS)}, not {zero_method!r}")
    if method not in ("auto", "asymptotic"):
        raise KernelError(f"method must be auto or asymptotic, not {method!r}")
    ranks = signed_ranks(values, first, second, zero_method, exact=method == "auto")
    p = np.where(ranks.exact, ranks.exact_p, 2 * special.ndtr(-np.abs(ranks.z)))
    return SignedRank(
        first=first,
        second=second,
        n_used=ranks.n_used,
        n_zero=ranks.n_zero,
        w_plus=ranks.w_plus,
        w_minus=ranks.w_minus,
        z=ranks.z,
        p=p,
        exact=ranks.exact,
        zero_method=zero_method,
    )


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down adjustment of a family of p values, in their own order; NaN is not a member of it.

    Raises:
        KernelError: p values outside 0 to 1.
    """
    values = as_scores(p, 1, "p")
    tested = np.flatnonzero(~np.isnan(values))
    family = values[tested]
    if ((family < 0) | (family > 1)).any():
        raise KernelError("p: a value outside 0 to 1")
    order = np.argsort(family, kind="stable")
    scaled = family[order] * np.arange(family.size, 0, -1)
    adjusted = np.full(values.shape, np.nan)
    adjusted[tested[order]] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def sign_flip(scores: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> SignFlip:
    """Permutation tests of all pairs: the sign of each task's difference is flipped at random.

    All pairs share a resample's signs, which depend on `seed`, the resample's number and the task's alone, so
    the result is the same for any number of threads.

    Args:
        scores: `[S, T]`, NaN for missing.
        resamples: random sign patterns.
        seed: any 64-bit integer.

    Raises:
        KernelError: scores of another shape or infinite; no resamples.
    """
    values, first, second = _validated(scores)
    if resamples < 1:
        raise KernelError(f"resamples must be at least 1, not {resamples}")
    signs = _sign_bytes(resamples, values.shape[1], seed)
    n_used, mean, sd = _measured(values, first, second)
    total = np.where(n_used > 0, n_used * mean, 0.0)
    # n root mean squares: at least the sum of |d|, which is what sums are rounded in proportion to.
    magnitude = np.hypot(total, n_used * np.where(n_used > 1, sd, 0.0))
    extreme = count_extreme(values, first, second, signs, total, TIE_TOLERANCE * magnitude)
    p = np.where(n_used > 0, (1.0 + extreme) / (1.0 + resamples), np.nan)
    return SignFlip(
        first=first, second=second, n_used=n_used, mean_difference=mean, p=p, resamples=resamples, seed=seed
    )


def _validated(scores: ArrayLike) -> tuple[Floats, Integers, Integers]:
    values = as_scores(scores, 2)
    first, second = np.triu_indices(values.shape[0], 1)
    return values, first.astype(np.int64), second.astype(np.int64)


def _measured(values: Floats, first: Integers, second: Integers) -> tuple[Integers, Floats, Floats]:
    """Number, mean and standard deviation of each pair's differences; NaN where there is none."""
    n_used = np.zeros(first.size, np.int64)
    mean, sd = np.full(first.size, np.nan), np.full(first.size, np.nan)

    def measure(span: tuple[int, int]) -> None:
        pairs = slice(*span)
        _moments(values, first[pairs], second[pairs], n_used[pairs], mean[pairs], sd[pairs])

    in_threads(measure, spans(first.size, 2 * values.shape[1]))
    return n_used, mean, sd


@laned
def _moments(
    values: Floats, first: Integers, second: Integers, n_used: Integers, means: Floats, deviations: Floats
) -> None:
    """Fills in the number, mean and standard deviation of each pair's differences, where defined."""
    for pair in range(first.size):
        x, y = values[first[pair]], values[second[pair]]
        n, total = 0, 0.0
        for task in range(x.size):
            difference = x[task] - y[task]
            present = difference == difference
            n += present
            total += difference if present else 0.0
        n_used[pair] = n
        if n == 0:
            continue
        mean = total / n
        at = 0
        while np.isnan(x[at] - y[at]):
            at += 1
        some = x[at] - y[at]
        # The mean of the residuals corrects the rounding of the first mean.
        residual, square, others, rounding = 0.0, 0.0, 0.0, 0.0
        for task in range(x.size):
            difference = x[task] - y[task]
            present = difference == difference
            deviation = difference - mean if present else 0.0
            residual += deviation
            square += deviation * deviation
            others = max(others, abs(difference - some) if present else 0.0)
            size = DIFFERENCE_ROUNDING * abs(difference) + SCORE_ROUNDING * (abs(x[task]) + abs(y[task]))
            rounding = max(rounding, size if present else 0.0)
        if others <= rounding:
            # Equal differences have no spread, whatever the mean was rounded to.
            mean, residual, square = some if abs(some) > rounding else 0.0, 0.0, 0.0
        means[pair] = mean + residual / n
        if n > 1:
            deviations[pair] = np.sqrt((square - residual * residual / n) / (n - 1))


def _sign_bytes(resamples: int, tasks: int, seed: int) -> SignBytes:
    """Random bits `[ceil(tasks / 8), resamples]`, drawn by (seed, resample, block of 128 tasks)."""
    blocks = (tasks + 127) // 128
    words = np.empty((4, resamples * blocks), np.uint32)
    words[0] = np.tile(np.arange(blocks, dtype=np.uint32), resamples)
    words[1] = 0
    words[2] = np.repeat(np.arange(resamples, dtype=np.uint32), blocks)
    words[3] = SIGNS
    philox(words, *seed_key(seed))
    rows = np.ascontiguousarray(words.T, dtype="<u4").reshape(resamples, 4 * blocks)
    return np.ascontiguousarray(rows.view(np.uint8)[:, : (tasks + 7) // 8].T)
