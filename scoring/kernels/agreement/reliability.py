"""Coefficients of reliability: ICC(1,1), ICC(2,k), Cohen's kappa and Krippendorff's alpha.

Missing ratings are NaN. A coefficient that the data do not define is NaN.
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import Floats, Integers, as_scores
from adjudge.scoring.kernels.base.errors import KernelError

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

    Raises:
        KernelError: shapes that do not fit, infinite values, unknown weights.
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

    Raises:
        KernelError: another shape, infinite values, an unknown level.
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
    if level == "nominal":
        observed, expected = _nominal_disagreement(rated, unit, raters)
    else:
        points = mid_ranks(rated) if level == "ordinal" else rated
        observed, expected = _squared_disagreement(points, unit, raters)
    return 1 - observed / expected if expected > 0 else float("nan")


def _nominal_disagreement(rated: Floats, unit: Integers, raters: Floats) -> tuple[float, float]:
    values, codes = np.unique(rated, return_inverse=True)
    cells, counts = np.unique(unit * values.size + codes, return_counts=True)
    equal = np.bincount(cells // values.size, weights=counts.astype(float) ** 2, minlength=raters.size)
    used = raters > 1
    n = float(rated.size)
    observed = float(np.sum((raters[used] ** 2 - equal[used]) / (raters[used] - 1))) / n
    expected = (n**2 - float(np.sum(np.bincount(codes).astype(float) ** 2))) / (n * (n - 1))
    return observed, expected


def _squared_disagreement(points: Floats, unit: Integers, raters: Floats) -> tuple[float, float]:
    used = raters > 1
    centred = points - points.mean()
    means = np.bincount(unit, weights=centred, minlength=raters.size)
    means[used] = means[used] / raters[used]
    squares = np.bincount(unit, weights=(centred - means[unit]) ** 2, minlength=raters.size)
    observed = 2 * float(np.sum(raters[used] / (raters[used] - 1) * squares[used])) / points.size
    expected = 2 * float(np.sum(centred**2)) / (points.size - 1) if points.min() < points.max() else 0.0
    return observed, expected


def mid_ranks(values: Floats) -> Floats:
    """Ranks from 1 of `values[n]`, equal values sharing the mean of theirs."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts).astype(np.float64)
    ranks: Floats = (last - (counts - 1) / 2)[codes]
    return ranks
