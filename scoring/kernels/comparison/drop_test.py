"""One-sided paired tests of a drop: whether scores fell by more than a margin, and whether they did not.

Both tests look at the differences before - after on the tasks that have both scores, by the one rule for all claims
(`claims`). The first asks whether the mean drop is above the margin, the second (non-inferiority) whether it is below;
in between, the tasks cannot decide. The power of the first follows from the noncentral t distribution.
"""

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import KernelError, as_scores, as_share
from adjudge.scoring.kernels.base.distributions import noncentral_t_shift, student_quantile
from adjudge.scoring.kernels.comparison.claims import FEW, above, subset_mean


class DropTest(msgspec.Struct, frozen=True):
    """The tests of a drop on the common tasks; NaN is undefined.

    Fewer than two tasks leave all but `n_used` and `drop` undefined. Without any spread of the differences there are no
    bounds.
    """

    n_used: int
    drop: float
    """mean of before - after"""
    sd: float
    """of the differences, with n - 1 in the denominator"""
    low: float
    high: float
    """bound the drop from each side with confidence 1 - alpha"""
    p_above: float
    """of the hypothesis that the drop is at most the margin"""
    p_below: float
    """of the hypothesis that the drop is at least the margin"""
    detectable: float
    """how far above the margin a drop must lie to be found with `power`, at the sharpest level of the family"""


def drop_test(
    before: ArrayLike,
    after: ArrayLike,
    *,
    margin: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
    family: int = 1,
) -> DropTest:
    """Test the drop from `before` to `after`, scores of the same tasks (NaN for missing; higher is better).

    before: `[T]`, the baseline.
    after: `[T]`, what is checked.
    margin: the drop that is allowed.
    alpha: the level of each one-sided bound.
    power: with which `detectable` is found.
    family: how many tests share `alpha`; Holm's first step, the hardest, is at alpha / family.
    Raises KernelError for scores of different lengths or infinite; alpha or power not between 0 and 1; no family.
    """
    first, second = as_scores(before, 1, "before"), as_scores(after, 1, "after")
    if first.shape != second.shape:
        raise KernelError(f"before and after must have the same tasks, not {first.size} and {second.size}")
    alpha, power = as_share(alpha, "alpha"), as_share(power, "power")
    if family < 1:
        raise KernelError(f"family must be at least 1, not {family}")
    differences = (first - second)[~np.isnan(first + second)]
    n = differences.size
    drop = float(differences.mean()) if n else math.nan
    if n < 2:
        return DropTest(n, drop, *[math.nan] * 6)
    p_above, p_below = above(differences, margin), above(-differences, -margin)
    sd = float(differences.std(ddof=1))
    if sd <= 1e-12 * float(np.abs(differences).max(initial=0.0)):
        return DropTest(n, drop, 0.0, math.nan, math.nan, p_above, p_below, math.nan)
    error = sd / math.sqrt(n)
    half = float(student_quantile(n - 1, 1.0 - alpha)) * error
    low, high = drop - half, drop + half
    if n <= FEW:
        low, high = subset_mean(differences, alpha), -subset_mean(-differences, alpha)
    # The noncentrality at which a one-sided test at the sharpest level of the family has this power.
    critical = float(student_quantile(n - 1, 1.0 - alpha / family))
    detectable = noncentral_t_shift(n - 1, 1.0 - power, critical) * error
    return DropTest(
        n_used=n,
        drop=drop,
        sd=sd,
        low=low,
        high=high,
        p_above=p_above,
        p_below=p_below,
        detectable=detectable,
    )
