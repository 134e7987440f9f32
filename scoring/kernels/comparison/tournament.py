"""How sure the strengths of a tournament are: tasks resampled with replacement, each with all comparisons made on it.

Every resample fits the strengths of Bradley and Terry (`strengths`) anew. What came of fewer comparisons is less sure
by itself; nothing else is assumed.
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import Floats, Integers, as_scores
from adjudge.scoring.kernels.base.errors import KernelError
from adjudge.scoring.kernels.comparison.strengths import PRIOR, Strengths, bradley_terry, win_shares
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap, BootstrapPart, merge
from adjudge.scoring.kernels.resampling.sampler import Sampler

__all__ = ["Tournament", "shares_against", "tournament"]

_TILE = 512  # resamples fitted at a time


class Tournament(msgspec.Struct, frozen=True):
    """The `strength` and the `share` of wins of S systems, with the resamples of each as `parts`."""

    strength: Bootstrap
    share: Bootstrap
    parts: tuple[BootstrapPart, BootstrapPart]

    def only(self, systems: ArrayLike) -> "Tournament":
        """The same strengths with ranks and tiers among these `systems` [S] alone; all else of the others is NaN."""
        kept = np.asarray(systems, np.bool_)
        parts = [
            msgspec.structs.replace(
                part,
                estimate=np.where(kept, part.estimate, np.nan),
                means=np.where(kept[:, None], part.means, np.nan),
            )
            for part in self.parts
        ]
        return _merged(parts[0], parts[1], self.strength.level)


def tournament(
    wins: ArrayLike,
    *,
    baseline: int | None = None,
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    prior: float = PRIOR,
) -> Tournament:
    """The tournament of `wins[T, S, S]`: how often, on each task, the system of the row beat that of the column.

    Ties are half a win of each; 0 or NaN in both places is a pair that was not compared. `baseline` is a system's
    index for `shares_against`. Raises KernelError for other shapes, and for counts that `bradley_terry` does not take.
    """
    values = np.nan_to_num(as_scores(wins, 3, "wins"))
    tasks, systems = values.shape[:2]
    if values.shape[2] != systems or not systems:
        raise KernelError(f"wins: shape {values.shape}, expected a square matrix for each task")
    full = bradley_terry(values.sum(axis=0), prior=prior)
    strength, share = np.full((2, systems, resamples), np.nan)
    games = (values + values.transpose(0, 2, 1)) > 0.0
    drawn_from = values[games.any(axis=(1, 2))]
    for first in range(0, resamples if len(drawn_from) else 0, _TILE):
        lanes = slice(first, min(first + _TILE, resamples))
        fitted = bradley_terry(_drawn(drawn_from, lanes, seed), prior=prior)
        strength[:, lanes] = fitted.strength.T
        share[:, lanes] = shares_against(fitted, baseline).T
    n_used = games.any(axis=2).sum(axis=0, dtype=np.int64)

    own, others = (
        BootstrapPart(seed, 0, tasks, n_used, estimate, np.zeros(systems), resampled)
        for estimate, resampled in ((full.strength, strength), (shares_against(full, baseline), share))
    )
    return _merged(own, others, level)


def _merged(strength: BootstrapPart, share: BootstrapPart, level: float) -> Tournament:
    """Intervals without BCa's acceleration, which strengths are too nearly symmetric to need."""
    return Tournament(merge([strength], level=level), merge([share], level=level), (strength, share))


def shares_against(found: Strengths, baseline: int | None) -> Floats:
    """The share of wins that each strength expects against the `baseline`, which has half; or without one, against all.

    NaN for a system without a strength, or one that comparisons do not connect with the baseline.
    """
    if baseline is None:
        return win_shares(found)
    gap = found.strength[..., baseline, None] - found.strength
    apart = found.component != found.component[..., baseline, None]
    with np.errstate(over="ignore"):
        return np.where(apart, np.nan, 1.0 / (1.0 + np.exp(gap)))


def _drawn(wins: Floats, lanes: slice, seed: int) -> Floats:
    """The summed wins of the resamples `lanes`, [resamples, S, S]."""
    tasks, systems = wins.shape[:2]
    cells = np.ascontiguousarray(wins.reshape(tasks, -1).T)
    whole: Integers = np.array([0, tasks], np.int64)
    sampler = Sampler(cells, np.ones(cells.shape, np.bool_), None, whole)
    means = sampler.resampled(lanes.start, lanes.stop - lanes.start, seed)
    return np.ascontiguousarray(means.T * tasks).reshape(-1, systems, systems)
