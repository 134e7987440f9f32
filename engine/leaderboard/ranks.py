"""The span of ranks that a system could have: over resampled tasks, and over what missing scores could still be."""

import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap

__all__ = ["rank_spans"]

Floats = npt.NDArray[np.float64]


def rank_spans(drawn: Bootstrap, low: Floats, high: Floats) -> Floats:
    """The best and worst rank of every system, [S, 2]; means lie between `low` and `high` [S], higher is better.

    At best a system is at its high bound and all others are at their low ones, at worst the other way round. Equals
    share the mean of their ranks. NaN where a system has no rank.
    """
    best = _ranks(high, low)
    worst = _ranks(low, high)
    return np.stack(
        [np.fmin(drawn.rank_interval[:, 0], best), np.fmax(drawn.rank_interval[:, 1], worst)], axis=1
    )


def _ranks(own: Floats, others: Floats) -> Floats:
    """The rank of each `own` value among the values of all `others`."""
    ahead = others[None, :] > own[:, None]
    equal = others[None, :] == own[:, None]
    np.fill_diagonal(ahead, False)
    np.fill_diagonal(equal, False)
    return np.asarray(1.0 + ahead.sum(axis=1) + equal.sum(axis=1) / 2.0, np.float64)
