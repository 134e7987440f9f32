"""Intervals from resampled statistics: percentile, BCa, and percentile intervals of all pairwise differences.

Quantiles interpolate linearly between order statistics (numpy's default, Hyndman and Fan's type 7).
"""

import numpy as np

from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers, compiled, in_threads
from adjudge.scoring.kernels.base.distributions import normal_cdf, normal_quantile

_PREFIX = 512  # values from which the spread of a difference is guessed
_STEPS = 64


def sorted_rows(values: Floats, threads: int | None = None) -> tuple[Floats, Integers]:
    """Each row of `values[S, B]` upwards, NaN last, and how many are not NaN."""
    result = np.empty_like(values)

    def row(number: int) -> None:
        result[number] = np.sort(values[number])

    in_threads(row, range(len(values)), threads, steps=20 * values.shape[1])
    return result, np.count_nonzero(~np.isnan(result), axis=1).astype(np.int64)


def quantiles(ordered: Floats, shares: Floats) -> Floats:
    """The quantiles at `shares` of the sorted `ordered[n]`; NaN if n is 0 or a share is NaN."""
    if ordered.size == 0:
        return np.full(shares.shape, np.nan)
    position = np.where(np.isnan(shares), 0.0, shares) * (ordered.size - 1)
    below = np.minimum(position.astype(np.int64), ordered.size - 1)
    above = np.minimum(below + 1, ordered.size - 1)
    values = ordered[below] + (position - below) * (ordered[above] - ordered[below])
    return np.where(np.isnan(shares), np.nan, values)


def bca_shares(ordered: Floats, estimate: float, acceleration: float, level: float) -> Floats:
    """The shares at which BCa reads its two quantiles (Efron 1987): bias and skewness corrected.

    The bias is the share of resamples below the estimate, those equal to it counted half; NaN if all are
    on one side.
    """
    below = np.searchsorted(ordered, estimate, side="left") + np.searchsorted(ordered, estimate, side="right")
    share = below / (2.0 * ordered.size) if ordered.size else 0.0
    if not 0.0 < share < 1.0:
        return np.full(2, np.nan)
    bias = normal_quantile(share)
    z = bias + normal_quantile(np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0]))
    return np.asarray(normal_cdf(bias + z / (1.0 - acceleration * z)), dtype=np.float64)


def difference_intervals(values: Floats, level: float, threads: int | None = None) -> Floats:
    """Percentile intervals of `values[a] - values[b]` for all pairs of rows of `values[S, B]`: `[S, S, 2]`.

    Resamples where either is NaN are left out; NaN if none remains. Exact order statistics: two thresholds
    guessed from a prefix set aside the few differences in the tails, and are widened if they were too tight.
    """
    systems, resamples = values.shape
    intervals = np.full((systems, systems, 2), np.nan)
    holes = np.asarray(np.isnan(values).any(axis=1))
    tail = (1.0 - level) / 2.0
    wanted = tail * resamples
    guess = min(1.0, (wanted + 8.0 * np.sqrt(wanted) + 8.0) / max(resamples, 1))
    reach = float(normal_quantile(1.0 - guess)) if guess < 0.5 else -1.0

    def row(first: int) -> None:
        _difference_row(values, first, holes, tail, reach, intervals)

    in_threads(row, range(systems), threads, steps=systems * resamples)
    return intervals


@compiled
def _differences(a: Floats, b: Floats, holes: bool, out: Floats) -> int:
    """Fills `out` with `a - b`, without NaN; returns how many."""
    if not holes:
        for k in range(a.size):
            out[k] = a[k] - b[k]
        return a.size
    n = 0
    for k in range(a.size):
        difference = a[k] - b[k]
        if not np.isnan(difference):
            out[n] = difference
            n += 1
    return n


@compiled
def _spread(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the first values."""
    n = min(_PREFIX, values.size)
    mean = 0.0
    for k in range(n):
        mean += values[k]
    mean /= n
    square = 0.0
    for k in range(n):
        square += (values[k] - mean) ** 2
    return mean, np.sqrt(square / n)


@compiled
def _set_aside(values: Floats, centre: float, reach: float, low: Floats, high: Floats) -> tuple[int, int]:
    """Copies the values further than `reach` from `centre` into `low` and `high`; returns how many of each.

    Both have one place more than there are values: every value is written, and kept only if it is far.
    """
    n_far = 0
    for k in range(values.size):
        high[n_far] = values[k]
        n_far += abs(values[k] - centre) > reach
    n_low, n_high = 0, 0
    for k in range(n_far):
        value = high[k]
        low[n_low] = value
        high[n_high] = value
        n_low += value < centre
        n_high += value >= centre
    return n_low, n_high


@compiled
def _select(values: Floats, k: int) -> float:
    """The k-th smallest, moved to its place with the smaller ones before it (Hoare's quickselect)."""
    left, right = 0, values.size - 1
    while left < right:
        pivot = values[(left + right) >> 1]
        i, j = left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    return float(values[k])


@compiled
def _next_above(values: Floats, k: int) -> float:
    """The smallest after place `k`."""
    above = np.inf
    for i in range(k + 1, values.size):
        above = min(above, values[i])
    return above


@compiled
def _interpolated(values: Floats, position: float, bucket: Floats) -> float:
    """The order statistic at a fractional position of `values`, which are reordered. `bucket` is scratch.

    Counts the values in equal steps from the smallest to the largest, and looks closer at one step only.
    """
    k = int(position)
    smallest, largest = values[0], values[0]
    for value in values:
        smallest = min(smallest, value)
        largest = max(largest, value)
    scale = _STEPS / (largest - smallest)
    if not 0.0 < scale < 1e300:
        below = _select(values, k)
        above = _next_above(values, k) if k + 1 < values.size else below
        return below + (position - k) * (above - below)
    counts = np.zeros(_STEPS + 1, dtype=np.int64)
    for value in values:
        counts[int((value - smallest) * scale)] += 1
    step, before = 0, 0
    while before + counts[step] <= k:
        before += counts[step]
        step += 1
    n = 0
    above = largest
    for value in values:
        at = int((value - smallest) * scale)
        bucket[n] = value
        n += at == step
        above = min(above, value if at > step else largest)
    below = _select(bucket[:n], k - before)
    if k - before + 1 < n:
        above = _next_above(bucket[:n], k - before)
    return below + (position - k) * (above - below)


@compiled
def _difference_row(
    values: Floats, first: int, holes: Flags, tail: float, reach: float, intervals: Floats
) -> None:
    """`difference_intervals` of row `first` with every later row; also the mirrored pairs."""
    systems, resamples = values.shape
    differences, low, high = np.empty(resamples), np.empty(resamples + 1), np.empty(resamples + 1)
    intervals[first, first] = 0.0 if not np.isnan(values[first]).all() else np.nan
    for second in range(first + 1, systems):
        n = _differences(values[first], values[second], holes[first] or holes[second], differences)
        if n == 0:
            continue
        position = tail * (n - 1)
        needed = min(int(position) + 2, n)
        centre, deviation = _spread(differences[:n])
        far = reach * deviation
        n_low, n_high = _set_aside(differences[:n], centre, far, low, high)
        while far >= 0.0 and (n_low < needed or n_high < needed):
            far = 0.75 * far - 1e-3 * deviation if deviation > 0.0 else -1.0
            n_low, n_high = _set_aside(differences[:n], centre, far, low, high)
        if n_low < needed or n_high < needed:
            # Not by slices: numba would compile the words of an error about their shapes, for a second and more.
            for k in range(n):
                low[k] = high[k] = differences[k]
            n_low, n_high = n, n
        lower = _interpolated(low[:n_low], position, differences)
        for k in range(n_high):
            high[k] = -high[k]
        upper = -_interpolated(high[:n_high], position, differences)
        intervals[first, second, 0], intervals[first, second, 1] = lower, upper
        intervals[second, first, 0], intervals[second, first, 1] = -upper, -lower
