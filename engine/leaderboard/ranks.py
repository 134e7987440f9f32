"""Ranks among the systems that have enough scores, and the span of ranks that they could have."""

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap

__all__ = ["Ranks", "ranks_of"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Ranks(msgspec.Struct, frozen=True):
    """Every system's `rank` [S] and the best and worst that it could be, `span` [S, 2]; NaN for unranked systems."""

    rank: Floats
    span: Floats


def ranks_of(
    drawn: Bootstrap, values: Floats, bounds: tuple[Floats, Floats], worst: float, ranked: Flags
) -> Ranks:
    """The ranks of the `ranked` systems [S] by `values`, higher is better, equals sharing the mean of their ranks.

    A system at the `worst` value there is stands behind or beside all systems, unranked ones too: that others lack
    scores makes nobody the first. The span holds the ranks in the resamples `drawn`, and those at the `bounds` (low,
    high) of the values: at best a system is at its high bound and all other ranked systems are at their low ones, at
    worst it is at its low bound and all others, unranked ones too, are at their high ones.
    """
    low, high = bounds
    everyone = np.ones_like(ranked)
    last = np.isclose(values, worst, rtol=1e-12, atol=1e-12)
    floored = np.where(last | np.isnan(values), worst, values)
    rank = np.where(last, _among(floored, floored, everyone), _among(values, values, ranked))
    best = np.fmin(drawn.rank_interval[:, 0], np.fmin(rank, _among(high, low, ranked)))
    least = np.fmax(drawn.rank_interval[:, 1], np.fmax(rank, _among(low, high, everyone)))
    span = np.stack([best, least], axis=1)
    return Ranks(np.where(ranked, rank, np.nan), np.where(ranked[:, None], span, np.nan))


def _among(own: Floats, others: Floats, counted: Flags) -> Floats:
    """The rank of each `own` value among the values of the other `counted` systems."""
    ahead = (others[None, :] > own[:, None]) & counted
    equal = (others[None, :] == own[:, None]) & counted
    np.fill_diagonal(ahead, False)
    np.fill_diagonal(equal, False)
    return np.asarray(1.0 + ahead.sum(axis=1) + equal.sum(axis=1) / 2.0, np.float64)
