"""The kernel of Wilcoxon's test: signed rank sums of the differences of many pairs of rows.

A difference becomes one 64-bit key, its float64 bits rotated left by one: ordered by magnitude, with the sign
in the lowest bit, so that equal magnitudes are found exactly. Keys are scattered into buckets of equal width, which
leaves only neighbours out of order. Without ties and zeros, comparing neighbours corrects the rank sum, without
branches; otherwise an insertion pass finishes the order.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers, spans
from adjudge.scoring.kernels.base.compiled import compiled, in_threads

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
