"""The bootstrap of `kernels.resampling.bootstrap` in its fastest numpy form, which the kernels are compared with.

Counts of the drawn tasks by `bincount`, sums and numbers scored by one float32 matrix product, order statistics by
`partition`, ranks by `argsort`. Unlike the kernels, it ignores ties between resampled means.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]
CHUNK = 500  # resamples drawn and multiplied at a time


class Summary(NamedTuple):
    """means' intervals [S, 2], differences' intervals [S, S, 2], ranks [S, S] counted, tau and rho of each resample."""

    percentile: Singles
    difference: Singles
    ranks: NDArray[np.int64]
    tau: NDArray[np.float64]
    rho: NDArray[np.float64]


def numpy_bootstrap(scores: NDArray[np.float64], resamples: int, seed: int) -> Summary:
    means = resampled_means(scores, resamples, seed)
    full = np.argsort(-np.nanmean(scores, axis=1))
    return Summary(_tails(means), _differences(means), *_rankings(means[full], full))


def resampled_means(scores: NDArray[np.float64], resamples: int, seed: int) -> Singles:
    """Means of the drawn tasks, float32[S, B]."""
    systems, tasks = scores.shape
    generator = np.random.default_rng(seed)
    scored = ~np.isnan(scores)
    sides = np.concatenate([np.where(scored, scores, 0.0), scored]).astype(np.float32).T.copy()
    small = np.uint16 if tasks < 2**16 else np.uint32
    rows = np.arange(CHUNK)[:, None] * tasks
    means = np.empty((systems, resamples), dtype=np.float32)
    for first in range(0, resamples, CHUNK):
        drawn = generator.integers(0, tasks, (CHUNK, tasks), dtype=small) + rows
        counts = np.bincount(drawn.ravel(), minlength=CHUNK * tasks).reshape(CHUNK, tasks)
        sums = counts.astype(np.float32) @ sides
        count = min(CHUNK, resamples - first)
        means[:, first : first + count] = (sums[:count, :systems] / sums[:count, systems:]).T
    return means


def _tails(values: Singles) -> Singles:
    """Quantiles at 2.5% and 97.5% along the last axis, interpolated."""
    n = values.shape[-1]
    positions = np.array([0.025, 0.975]) * (n - 1)
    below = positions.astype(np.int64)
    parted = np.partition(values, [*below, *(below + 1)], axis=-1)
    share = (positions - below).astype(np.float32)
    result: Singles = parted[..., below] * (1 - share) + parted[..., below + 1] * share
    return result


def _differences(means: Singles) -> Singles:
    systems = len(means)
    result = np.zeros((systems, systems, 2), dtype=np.float32)
    for first in range(systems - 1):
        tails = _tails(means[first] - means[first + 1 :])
        result[first, first + 1 :] = tails
        result[first + 1 :, first] = -tails[:, ::-1]
    return result


def _rankings(
    means: Singles, full: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Of `means[S, B]` in the full ranking's order."""
    systems, resamples = means.shape
    order = np.argsort(-means.T, axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.broadcast_to(np.arange(systems), order.shape), axis=1)
    cells = places + np.arange(systems) * systems
    counts = np.bincount(cells.ravel(), minlength=systems**2).reshape(systems, systems)
    by_system = np.empty_like(counts)
    by_system[full] = counts
    ranks = places.T.astype(np.int16)
    discordant = np.zeros(resamples, dtype=np.int64)
    for first in range(systems - 1):
        discordant += np.count_nonzero(ranks[first] > ranks[first + 1 :], axis=0)
    moved = places - np.arange(systems)
    rho = 1.0 - 6.0 * np.einsum("bs,bs->b", moved, moved) / (systems * (systems**2 - 1))
    return by_system, 1.0 - 4.0 * discordant / (systems * (systems - 1)), rho
