"""Scores against their cost, and the best score of several samples (Dr.Mi-Bench)."""

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers, KernelError, as_scores


class PassAtK(msgspec.Struct, frozen=True):
    """Scores of the best of k samples, for each row of samples; NaN where fewer than k are scored."""

    best_of_k: Floats
    """best of the first k scored samples"""
    unbiased: Floats
    """mean over all ways to choose k of the scored samples"""
    n_used: Integers
    """scored samples"""


def pareto_frontier(scores: ArrayLike, costs: ArrayLike) -> Flags:
    """Which points no other point beats: none scores as much at a lower cost, or more at the same cost.

    scores: `[N]`, higher is better; NaN for missing.
    costs: `[N]`, seconds, tokens or money; NaN for missing. Equal points are on the frontier together.

    Returns:
        `[N]`; a point without score or cost is not on the frontier.

    Raises KernelError for shapes that differ, or an infinite value.
    """
    score, cost = as_scores(scores, 1), as_scores(costs, 1, "costs")
    if score.shape != cost.shape:
        raise KernelError(f"{score.size} scores with {cost.size} costs")
    known = np.flatnonzero(~np.isnan(score) & ~np.isnan(cost))
    order = known[np.lexsort((-score[known], cost[known]))]
    sorted_scores, sorted_costs = score[order], cost[order]
    dearer = np.diff(sorted_costs, prepend=-np.inf) > 0
    # The first of each run of equal costs is its best; it must beat everything cheaper.
    run = np.cumsum(dearer) - 1
    best = sorted_scores[dearer]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(best)[:-1]])
    on = np.zeros(score.size, np.bool_)
    on[order] = (sorted_scores == best[run]) & (sorted_scores > before[run])
    return on


def pass_at_k(samples: ArrayLike, k: int) -> PassAtK:
    """Scores of the best of k samples, as drawn and without bias.

    Of n samples, x(1) <= ... <= x(n), the unbiased estimate is sum C(i - 1, k - 1) / C(n, k) x(i); for scores of 0
    and 1, c of them 1, that is 1 - C(n - c, k) / C(n, k).

    samples: `[..., n]`, the samples of a task last, in the order drawn; NaN for missing.
    k: at least 1.
    Raises KernelError for no axis of samples, an infinite score, or k below 1.
    """
    values = as_scores(samples, max(np.ndim(samples), 1), "samples")
    if k < 1:
        raise KernelError(f"k must be at least 1, not {k}")
    present = ~np.isnan(values)
    n_used = present.sum(axis=-1)
    enough = n_used >= k
    drawn = present & (np.cumsum(present, axis=-1) <= k)
    best = np.max(values, axis=-1, where=drawn, initial=-np.inf)
    # Missing samples sort last, where the weights are 0.
    ordered = np.nan_to_num(np.sort(values, axis=-1))
    counts, rows = np.unique(n_used, return_inverse=True)
    weights = np.stack(
        [_best_weights(int(n), k, values.shape[-1]) for n in counts] or [np.zeros(values.shape[-1])]
    )
    unbiased = np.sum(ordered * weights[rows.reshape(n_used.shape)], axis=-1)
    return PassAtK(np.where(enough, best, np.nan), np.where(enough, unbiased, np.nan), n_used)


def _best_weights(n: int, k: int, width: int) -> Floats:
    """The chance of each of n sorted samples to be the best of k: C(i - 1, k - 1) / C(n, k), by its recurrence."""
    weights = np.zeros(width)
    if n >= k:
        i = np.arange(n, k, -1)
        weights[k - 1 : n] = (k / n * np.cumprod(np.concatenate([[1.0], (i - k) / (i - 1)])))[::-1]
    return weights
