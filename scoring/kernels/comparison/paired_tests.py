"""Paired tests between all pairs of systems on the tasks both have scores for.

Student's t with its interval and Cohen's d (DeepResearch Bench, appendix K), Wilcoxon's signed ranks (DR3-Eval 4.3) and
a sign-flip permutation test; Holm's correction for any family of p values. The tests take `scores[S, T]` (systems,
tasks; NaN is missing) and report the P = S (S - 1) / 2 pairs in the order of `numpy.triu_indices(S, 1)`, as first minus
second. What is undefined for a pair is NaN.

The sign-flip kernel sums columns under many random sign patterns. Eight tasks at a time have only 256 patterns: their
partial sums are tabulated once and looked up by every resample, which leaves one addition for eight tasks.

The Wilcoxon kernel computes signed rank sums for many pairs of rows. A difference becomes one 64-bit key, its float64
bits rotated left by one: ordered by magnitude, with the sign in the lowest bit, so that equal magnitudes are found
exactly. Keys are scattered into buckets of equal width, which leaves only neighbours out of order. Without ties and
zeros, comparing neighbours corrects the rank sum, without branches; otherwise an insertion pass finishes the order.
"""

from functools import lru_cache
from typing import Literal, NamedTuple, get_args

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
    laned,
    spans,
)
from adjudge.scoring.kernels.base.distributions import normal_cdf, student_cdf, student_quantile
from adjudge.scoring.kernels.base.streams import philox, seed_key

# 256 partial sums and 1,024 running sums of 64 columns stay in a second-level cache.
COLUMNS = 64
RESAMPLES = 1024

SignBytes = NDArray[np.uint8]


def count_extreme(
    values: Floats, first: Integers, second: Integers, signs: SignBytes, observed: Floats, tolerance: Floats
) -> Integers:
    """How many sign patterns give each pair a sum of differences at least as far from 0 as the observed one.

    values: `[S, T]`, NaN for missing.
    first: rows of the minuends, `[P]`.
    second: rows of the subtrahends, `[P]`.
    signs: `[ceil(T / 8), R]`, a set bit keeps a task's sign.
    observed: `[P]`, the sums without flips.
    tolerance: `[P]`, how much nearer to 0 still counts.
    """
    least = np.abs(observed) - tolerance
    if not first.size:
        return np.zeros(0, np.int64)
    if np.isnan(values).any():
        return _count_by_pair(values, first, second, signs, least)
    return _count_by_system(values, first, second, signs, least)


def _count_by_system(
    values: Floats, first: Integers, second: Integers, signs: SignBytes, least: Floats
) -> Integers:
    # Flipped sums of differences are differences of flipped sums, so S columns serve all pairs.
    columns = np.ascontiguousarray((values - values.mean(axis=0)).T)
    starts = range(0, signs.shape[1], RESAMPLES)
    counts = np.zeros((len(starts), first.size), np.int64)

    def count(tile: int) -> None:
        patterns = np.ascontiguousarray(signs[:, starts[tile] : starts[tile] + RESAMPLES])
        sums = np.empty((patterns.shape[1], columns.shape[1]))
        for left in range(0, columns.shape[1], COLUMNS):
            sums[:, left : left + COLUMNS] = _flipped_sums(columns[:, left : left + COLUMNS].copy(), patterns)
        _count_pairs(sums, first, second, least, counts[tile])

    in_threads(count, range(len(starts)))
    total: Integers = counts.sum(axis=0)
    return total


def _count_by_pair(
    values: Floats, first: Integers, second: Integers, signs: SignBytes, least: Floats
) -> Integers:
    counts = np.zeros(first.size, np.int64)

    def count(left: int) -> None:
        pairs = slice(left, left + COLUMNS)
        differences = np.nan_to_num(values[first[pairs]] - values[second[pairs]])
        columns = np.ascontiguousarray(differences.T)
        for start in range(0, signs.shape[1], RESAMPLES):
            sums = _flipped_sums(columns, np.ascontiguousarray(signs[:, start : start + RESAMPLES]))
            counts[pairs] += (np.abs(sums) >= least[pairs]).sum(axis=0)

    in_threads(count, range(0, first.size, COLUMNS))
    return counts


@compiled
def _count_pairs(sums: Floats, first: Integers, second: Integers, least: Floats, counts: Integers) -> None:
    for resample in range(sums.shape[0]):
        for pair in range(first.size):
            flipped = sums[resample, first[pair]] - sums[resample, second[pair]]
            counts[pair] += abs(flipped) >= least[pair]


@compiled
def _flipped_sums(columns: Floats, signs: SignBytes) -> Floats:
    """Column sums of `columns[T, C]` under each of the patterns `signs[ceil(T / 8), R]`: `[R, C]`."""
    tasks, width = columns.shape
    sums = np.zeros((signs.shape[1], width))
    table = np.empty((256, width))
    for block in range(signs.shape[0]):
        start = 8 * block
        size = min(8, tasks - start)
        table[0] = 0.0
        # Plain loops: whole-array expressions would allocate their results.
        for task in range(start, start + size):
            for column in range(width):
                table[0, column] -= columns[task, column]
        for bit in range(size):
            for pattern in range(1 << bit):
                for column in range(width):
                    added = 2 * columns[start + bit, column]
                    table[(1 << bit) + pattern, column] = table[pattern, column] + added
        mask = (1 << size) - 1
        for resample in range(signs.shape[1]):
            partial, total = table[signs[block, resample] & mask], sums[resample]
            for column in range(width):
                total[column] += partial[column]
    return sums


ZeroMethod = Literal["wilcox", "pratt", "zsplit"]
ZERO_METHODS: tuple[ZeroMethod, ...] = get_args(ZeroMethod)

# At most this many differences other than 0: the exact distribution, as in scipy.
EXACT_LIMIT = 50
# Buckets larger than this are sorted rather than compared at every distance.
MOST_NEIGHBOURS = 24

Keys = NDArray[np.uint64]
Buckets = NDArray[np.int32]
ONE = np.uint64(1)
TOP = np.uint64(63)


class SignedRanks(NamedTuple):
    """One element per pair; `exact_p` is NaN where `exact` is false."""

    n_used: Integers
    n_zero: Integers
    w_plus: Floats
    w_minus: Floats
    z: Floats
    exact: Flags
    exact_p: Floats


def signed_ranks(
    values: Floats, first: Integers, second: Integers, zero_method: ZeroMethod, *, exact: bool
) -> SignedRanks:
    """Signed rank sums of `values[first] - values[second]`, rows `[S, T]`, NaN for missing."""
    limit = EXACT_LIMIT if exact else 0
    drops_zeros = zero_method == "wilcox"
    pairs = first.size
    whole: Flags = np.asarray(~np.isnan(values).any(axis=1))
    n_used, n_zero = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
    plus, minus, ties, exact_p = (np.zeros(pairs) for _ in range(4))

    def rank(span: tuple[int, int]) -> None:
        out = (n_used[slice(*span)], n_zero[slice(*span)], plus[slice(*span)], minus[slice(*span)])
        more = (ties[slice(*span)], exact_p[slice(*span)])
        _rank_pairs(values, whole, first[slice(*span)], second[slice(*span)], drops_zeros, limit, *out, *more)

    in_threads(rank, spans(pairs, 20 * values.shape[1]))
    count = (n_used - n_zero if drops_zeros else n_used).astype(np.float64)
    zeros = n_zero.astype(np.float64)
    mean = count * (count + 1) / 4
    spread = count * (count + 1) * (2 * count + 1)
    if zero_method == "pratt":
        mean -= zeros * (zeros + 1) / 4
        spread -= zeros * (zeros + 1) * (2 * zeros + 1)
    if zero_method == "zsplit":
        half = zeros * (zeros + 1) / 4
        plus, minus = plus + half, minus + half
        ties = ties + zeros**3 - zeros
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (plus - mean) / np.sqrt((spread - ties / 2) / 24)
    z[n_used == n_zero] = np.nan
    used_exact = ~np.isnan(exact_p)
    return SignedRanks(n_used, n_zero, plus, minus, z, used_exact, exact_p)


@compiled
def _rank_pairs(
    values: Floats,
    whole: Flags,
    first: Integers,
    second: Integers,
    drops_zeros: bool,
    limit: int,
    n_used: Integers,
    n_zero: Integers,
    plus: Floats,
    minus: Floats,
    ties: Floats,
    exact_p: Floats,
) -> None:
    tasks = values.shape[1]
    differences = np.empty(tasks)
    buckets = np.empty(tasks, np.int32)
    all_keys = np.empty(tasks, np.uint64)
    ends = np.empty(tasks + 1, np.int32)
    for pair in range(first.size):
        i, j = first[pair], second[pair]
        n = _present_differences(values[i], values[j], whole[i] and whole[j], differences)
        largest_bucket, has_zero = _scatter_keys(differences[:n], buckets, all_keys, ends[: n + 1])
        keys = all_keys[:n]
        n_used[pair] = n
        zeros, offset, equal = 0, 0, 0
        if not has_zero and largest_bucket <= MOST_NEIGHBOURS:
            negative, equal = _compare_neighbours(keys, largest_bucket)
            minus[pair], plus[pair], ties[pair] = negative, n * (n + 1) / 2 - negative, 0.0
        if has_zero or largest_bucket > MOST_NEIGHBOURS or equal or n <= limit:
            _finish_order(keys)
            while zeros < n and keys[zeros] >> ONE == 0:
                zeros += 1
            offset = 0 if drops_zeros else zeros
            doubled, total, ties[pair] = _rank_sums(keys[zeros:], offset)
            plus[pair], minus[pair] = doubled / 2, (total - doubled) / 2
        n_zero[pair] = zeros
        # Keys are in order wherever the exact distribution is asked for.
        exact_p[pair] = _exact_p(keys[zeros:], offset) if 0 < n - zeros <= limit else np.nan


@compiled
def _present_differences(x: Floats, y: Floats, whole: bool, differences: Floats) -> int:
    if whole:
        for task in range(x.size):
            differences[task] = x[task] - y[task]
        return x.size
    n = 0
    for task in range(x.size):
        difference = x[task] - y[task]
        differences[n] = difference
        # Without a branch: a missing difference is overwritten by the next one.
        n += difference == difference
    return n


@compiled
def _scatter_keys(differences: Floats, buckets: Buckets, keys: Keys, ends: Buckets) -> tuple[int, bool]:
    """Orders the keys up to the order within buckets; the size of the largest, and whether a difference is 0."""
    n = differences.size
    if n == 0:
        return 0, False
    bits = differences.view(np.uint64)
    largest, smallest = np.uint64(0), ~np.uint64(0)
    for k in range(n):
        largest = max(largest, bits[k] << ONE)
        smallest = min(smallest, bits[k] << ONE)
    size = np.array([largest >> ONE], np.uint64).view(np.float64)[0]
    scale = (ends.size - 2) / size if size > 0 else 0.0
    if not scale < np.inf:
        # Only subnormal differences: one bucket, to be sorted.
        scale = 0.0
    for k in range(n):
        buckets[k] = np.int32(abs(differences[k]) * scale)
    ends[:] = 0
    for k in range(n):
        ends[buckets[k]] += 1
    total, largest_bucket = np.int32(0), np.int32(0)
    for bucket in range(ends.size):
        count = ends[bucket]
        ends[bucket] = total
        total += count
        largest_bucket = max(largest_bucket, count)
    for k in range(n):
        bucket = buckets[k]
        place = ends[bucket]
        keys[place] = (bits[k] << ONE) | (bits[k] >> TOP)
        ends[bucket] = place + 1
    return int(largest_bucket), bool(smallest == 0)


@compiled
def _compare_neighbours(keys: Keys, largest_bucket: int) -> tuple[int, int]:
    """Rank sum of the negatives, and how many magnitudes are equal; right only if none are.

    Only keys of one bucket, closer together than its size, are out of order. Each such pair takes a rank from the one
    key and gives it to the other.
    """
    negative, equal = 0, 0
    for k in range(keys.size):
        negative += int(keys[k] & ONE) * (k + 1)
    for distance in range(1, largest_bucket):
        for k in range(keys.size - distance):
            before, after = keys[k], keys[k + distance]
            negative += int(before > after) * (int(before & ONE) - int(after & ONE))
            equal += (before ^ after) <= ONE
    return negative, equal


@compiled
def _finish_order(keys: Keys) -> None:
    """Insertion sort by magnitude; a general sort if the keys prove to be far from sorted."""
    budget = 8 * keys.size
    for k in range(1, keys.size):
        key = keys[k]
        magnitude = key >> ONE
        if keys[k - 1] >> ONE <= magnitude:
            continue
        j = k - 1
        while j >= 0 and keys[j] >> ONE > magnitude:
            keys[j + 1] = keys[j]
            j -= 1
        keys[j + 1] = key
        budget -= k - j
        if budget < 0:
            keys.sort()
            return


@compiled
def _rank_sums(keys: Keys, offset: int) -> tuple[int, int, float]:
    """Twice the rank sum of positives, twice that of all, and sum(g^3 - g); the first rank is offset + 1."""
    doubled, ties, start = 0, 0.0, 0
    while start < keys.size:
        end = _tie_end(keys, start)
        positives = end - start
        for k in range(start, end):
            positives -= int(keys[k] & ONE)
        doubled += positives * (start + 1 + end + 2 * offset)
        group = float(end - start)
        ties += group * (group * group - 1)
        start = end
    return doubled, keys.size * (keys.size + 1 + 2 * offset), ties


@compiled
def _tie_end(keys: Keys, start: int) -> int:
    end = start + 1
    while end < keys.size and keys[end] >> ONE == keys[start] >> ONE:
        end += 1
    return end


@compiled
def _exact_p(keys: Keys, offset: int) -> float:
    """Two-sided p of the rank sum under all 2^n sign patterns; mean ranks are doubled to be whole numbers."""
    n = keys.size
    doubled = _rank_sums(keys, offset)[0]
    patterns = np.zeros(n * (n + 1) + 2 * offset * n + 1)
    patterns[0] = 1.0
    reached = 0
    start = 0
    while start < n:
        end = _tie_end(keys, start)
        rank = start + 1 + end + 2 * offset
        for _ in range(start, end):
            for total in range(reached, -1, -1):
                patterns[total + rank] += patterns[total]
            reached += rank
        start = end
    below = patterns[: doubled + 1].sum()
    above = patterns[doubled:].sum()
    return min(1.0, 2 * float(min(below, above)) / 2.0**n)


# Resampled sums that differ from the observed one by less than this share of sum |d| count as equal to it.
TIE_TOLERANCE = 1e-12
# Differences that are further apart than these shares of themselves and of the scores are not equal.
DIFFERENCE_ROUNDING, SCORE_ROUNDING = 1e-12, 4e-15
# The purpose of a random counter, as in streams.
SIGNS = np.uint32(0x80000001)


class Student(msgspec.Struct, frozen=True):
    """The test of a mean difference by its standard error: arrays of one shape."""

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

    scores: `[S, T]`, NaN for missing.
    confidence: of the interval of the mean difference.
    Raises KernelError for scores of another shape or infinite; confidence not between 0 and 1.
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
        **msgspec.structs.asdict(result),
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
    known, of = np.unique(degrees, return_inverse=True)  # few pairs differ in their tasks
    half = _quantiles(known.tobytes(), 0.5 + confidence / 2)[of].reshape(degrees.shape) * error
    # Not 1 - cdf(|t|): that would lose the small p values.
    p = 2 * student_cdf(degrees, -np.abs(t))
    return Student(t=t, p=p, low=mean - half, high=mean + half, cohens_d=cohens_d)


@lru_cache(maxsize=64)  # they are dear, and the metrics of a run have them in common
def _quantiles(degrees: bytes, share: float) -> Floats:
    return student_quantile(np.frombuffer(degrees), share)


def wilcoxon(
    scores: ArrayLike, *, zero_method: ZeroMethod = "wilcox", method: Literal["auto", "asymptotic"] = "auto"
) -> SignedRank:
    """Wilcoxon's signed-rank tests of all pairs of systems.

    scores: `[S, T]`, NaN for missing.
    zero_method: differences of 0 are dropped (`wilcox`), ranked and then dropped (`pratt`), or ranked and
        split between both sides (`zsplit`); as in `scipy.stats.wilcoxon`.
    method: `auto` takes the exact distribution, ties included, where at most 50 differences are not 0.
    Raises KernelError for scores of another shape or infinite; an unknown zero method or method.
    """
    values, first, second = _validated(scores)
    if zero_method not in ZERO_METHODS:
        raise KernelError(f"zero_method must be one of {', '.join(ZERO_METHODS)}, not {zero_method!r}")
    if method not in ("auto", "asymptotic"):
        raise KernelError(f"method must be auto or asymptotic, not {method!r}")
    ranks = signed_ranks(values, first, second, zero_method, exact=method == "auto")
    p = np.where(ranks.exact, ranks.exact_p, 2 * normal_cdf(-np.abs(ranks.z)))
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

    Raises KernelError for p values outside 0 to 1.
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

    scores: `[S, T]`, NaN for missing.
    resamples: random sign patterns.
    seed: any 64-bit integer.
    Raises KernelError for scores of another shape or infinite; no resamples.
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
