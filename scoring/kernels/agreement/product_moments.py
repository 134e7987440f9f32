"""Pearson's r of one rater with many others, over the items both have scored."""

import numpy as np

from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers
from adjudge.scoring.kernels.base.compiled import compiled, summing

_CANCELLED = 1e-6  # a variance so small against the sum of squares is computed again, around its own mean


def centred(scores: Floats) -> Floats:
    """Each row of `scores[R, N]` minus its mean, over its largest distance from it; NaN stays."""
    n = np.maximum(np.count_nonzero(~np.isnan(scores), axis=1, keepdims=True), 1)
    values = scores - np.nansum(scores, axis=1, keepdims=True) / n
    largest = np.fmax.reduce(np.abs(values), axis=1, keepdims=True, initial=0.0)
    return np.asarray(values / np.where(largest > 0.0, largest, 1.0), dtype=np.float64)


@summing
def _sums(x: Floats, y: Floats) -> tuple[int, float, float, float, float, float]:
    """n, and the sums of x, y, xx, yy, xy over the items both have."""
    n = 0
    sum_x, sum_y, sum_xx, sum_yy, sum_xy = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(x.size):
        both = x[k] == x[k] and y[k] == y[k]
        a = x[k] if both else 0.0
        b = y[k] if both else 0.0
        n += both
        sum_x += a
        sum_y += b
        sum_xx += a * a
        sum_yy += b * b
        sum_xy += a * b
    return n, sum_x, sum_y, sum_xx, sum_yy, sum_xy


@compiled
def _careful(x: Floats, y: Floats, mean_x: float, mean_y: float) -> float:
    """Pearson's r in a second pass around the means; NaN if one side is constant."""
    moves_x, moves_y = False, False
    last_x, last_y = np.nan, np.nan
    scale_x, scale_y = 0.0, 0.0
    for k in range(x.size):
        if not np.isnan(x[k] + y[k]):
            moves_x = moves_x or last_x < x[k] or last_x > x[k]
            moves_y = moves_y or last_y < y[k] or last_y > y[k]
            last_x, last_y = x[k], y[k]
            scale_x, scale_y = max(scale_x, abs(x[k] - mean_x)), max(scale_y, abs(y[k] - mean_y))
    if not (moves_x and moves_y):
        return np.nan
    products, squares_x, squares_y = 0.0, 0.0, 0.0
    for k in range(x.size):
        if not np.isnan(x[k] + y[k]):
            a, b = (x[k] - mean_x) / scale_x, (y[k] - mean_y) / scale_y
            products += a * b
            squares_x += a * a
            squares_y += b * b
    return float(products / (np.sqrt(squares_x) * np.sqrt(squares_y)))


@compiled
def moment_row(first: int, values: Floats, few: Flags, pearson: Floats, n_used: Integers) -> None:
    """Fills row and column `first` of `pearson` and `n_used`, `[R, R]`, for later raters.

    Pairs of two `few`-valued raters are left out. `values` are `centred`. NaN for fewer than two items in
    common or if one rater's scores of them are all equal.
    """
    x = values[first]
    for second in range(first, len(values)):
        if few[first] and few[second]:
            continue
        y = values[second]
        n, sum_x, sum_y, sum_xx, sum_yy, sum_xy = _sums(x, y)
        n_used[first, second] = n_used[second, first] = n
        if n < 2:
            continue
        spread_x = sum_xx - sum_x * sum_x / n
        spread_y = sum_yy - sum_y * sum_y / n
        if spread_x < _CANCELLED * sum_xx or spread_y < _CANCELLED * sum_yy or spread_x * spread_y == 0.0:
            r = _careful(x, y, sum_x / n, sum_y / n)
        else:
            r = (sum_xy - sum_x * sum_y / n) / (np.sqrt(spread_x) * np.sqrt(spread_y))
        pearson[first, second] = pearson[second, first] = r
