"""How the items of a test separate those who are tested: the share that meets each, and its correlation with the rest.

Missing values are NaN.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from adjudge.scoring.kernels.base.arrays import Floats, Integers, as_scores

__all__ = ["ItemFigures", "item_figures"]


class ItemFigures(NamedTuple):
    """By item: the mean of its `n` values, its `correlation` with the mean of the other items, and a test of that.

    `p_negative` is one-sided: how likely a correlation as negative is by chance. It and `correlation` are NaN with
    fewer than three values, or where one of the two does not vary.
    """

    mean: Floats
    correlation: Floats
    p_negative: Floats
    n: Integers


def item_figures(values: ArrayLike) -> ItemFigures:
    """Figures of the items of `values` [items, tested]."""
    scores = as_scores(values, 2, "values")
    present = ~np.isnan(scores)
    filled = np.where(present, scores, 0.0)
    others = present.sum(axis=0) - present
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = (filled.sum(axis=0) - filled) / others
        used = present & (others > 0)
        n = used.sum(axis=1)
        x, y = (_centred(one, used, n) for one in (filled, rest))
        xx, yy, xy = (x * x).sum(axis=1), (y * y).sum(axis=1), (x * y).sum(axis=1)
        varies = (n > 2) & (xx > 1e-18) & (yy > 1e-18)
        r = np.where(varies, np.clip(xy / np.sqrt(xx * yy), -1.0, 1.0), np.nan)
        t = r * np.sqrt((n - 2) / (1 - r * r))
        mean = filled.sum(axis=1) / present.sum(axis=1)
    p = np.where(np.isnan(r), np.nan, stdtr(np.maximum(n - 2, 1), t))
    return ItemFigures(mean, r, p, present.sum(axis=1))


def _centred(values: Floats, used: np.ndarray, n: Integers) -> Floats:
    shown = np.where(used, values, 0.0)
    return np.where(used, shown - (shown.sum(axis=1) / n)[:, None], 0.0)
