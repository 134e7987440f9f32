"""Which comparisons of a tournament would tell most, given those made so far.

What a reader of a ranking wants to know is who is ahead of whom. Let z be the difference of two strengths in units of
its standard deviation: the chance that their order is wrong is about Phi(-z). Another comparison of two systems, of
which one is p likely to win, adds p (1 - p) to what is known of them, and through them something of every other pair.
It is chosen where it lowers the sum of those chances over all pairs most (to first order in the variances). So what is
far apart is left alone early, and what is close gets most of what there is. A difference that happens to be near 0 is
not taken for hopeless: z is raised to sqrt(z^2 + 1), its expected size.
"""

import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import Floats, Integers, as_scores
from adjudge.scoring.kernels.base.compiled import compiled
from adjudge.scoring.kernels.base.errors import KernelError
from adjudge.scoring.kernels.comparison.strengths import PRIOR, bradley_terry

__all__ = ["most_telling"]

_EQUAL = 1e-9  # gains that differ by less are equal, whatever the processor; the first pair goes first


def most_telling(wins: ArrayLike, left: ArrayLike, count: int, *, prior: float = PRIOR) -> Integers:
    """How many more times to compare each pair, [S, S] above the diagonal: `count` in all, or what is left.

    `wins[S, S]` are those of the comparisons made, ties as half wins; `left[S, S]` says above the diagonal how many
    more there can be of each pair. One is chosen after the other, each as if those before it had been made. Raises
    KernelError.
    """
    made, free = np.nan_to_num(as_scores(wins, 2, "wins")), np.triu(as_scores(left, 2, "left"), 1)
    if made.shape != free.shape or made.shape[0] != made.shape[1]:
        raise KernelError(f"wins: shape {made.shape}, left: {free.shape}; expected two square matrices")
    if not prior > 0.0:
        raise KernelError(
            f"prior: {prior}, expected a number above 0: nothing else bounds an unknown strength"
        )
    strength = np.nan_to_num(bradley_terry(made, prior=prior).strength)
    chosen = np.zeros(made.shape, np.int64)
    _choose(made, strength, prior, free.astype(np.int64), count, chosen)
    return chosen


@compiled
def _choose(
    wins: Floats, strength: Floats, prior: float, left: Integers, count: int, chosen: Integers
) -> None:
    systems = strength.size
    covariance = _covariance(wins, strength, prior)
    for _ in range(count):
        worth = covariance @ _urgency(covariance, strength) @ covariance
        best, told, a, b = 0.0, 0.0, -1, -1
        for i in range(systems):
            for j in range(i + 1, systems):
                if left[i, j] > 0:
                    variance = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
                    gap = strength[i] - strength[j]
                    weight = 1.0 / (2.0 + np.exp(gap) + np.exp(-gap))
                    gain = worth[i, i] + worth[j, j] - worth[i, j] - worth[j, i]
                    gain *= weight / (1.0 + weight * variance)
                    if a < 0 or gain > best * (1.0 + _EQUAL):
                        best, told, a, b = gain, weight / (1.0 + weight * variance), i, j
        if a < 0:
            return
        left[a, b] -= 1
        chosen[a, b] += 1
        _learn(covariance, told, a, b)


@compiled
def _urgency(covariance: Floats, strength: Floats) -> Floats:
    """How fast each pair's chance of a wrong order falls with its variance, as a Laplacian over systems."""
    systems = strength.size
    found = np.zeros((systems, systems))
    for i in range(systems):
        for j in range(i + 1, systems):
            variance = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
            gap = strength[i] - strength[j]
            square = gap * gap / variance + 1.0
            fall = np.exp(-0.5 * square) * np.sqrt(square) / variance
            found[i, i] += fall
            found[j, j] += fall
            found[i, j] -= fall
            found[j, i] -= fall
    return found


@compiled
def _covariance(wins: Floats, strength: Floats, prior: float) -> Floats:
    """The inverse of the information in the comparisons made and the prior's, added one after the other."""
    systems = strength.size
    covariance = np.zeros((systems, systems))
    for i in range(systems):
        covariance[i, i] = (2.0 + np.exp(strength[i]) + np.exp(-strength[i])) / prior
    for a in range(systems):
        for b in range(a + 1, systems):
            gap = strength[a] - strength[b]
            weight = (wins[a, b] + wins[b, a]) / (2.0 + np.exp(gap) + np.exp(-gap))
            if weight > 0.0:
                variance = covariance[a, a] + covariance[b, b] - 2.0 * covariance[a, b]
                _learn(covariance, weight / (1.0 + weight * variance), a, b)
    return covariance


@compiled
def _learn(covariance: Floats, told: float, a: int, b: int) -> None:
    """Take in comparisons of `a` and `b`, in place."""
    shift = covariance[:, a] - covariance[:, b]
    for i in range(shift.size):
        for j in range(shift.size):
            covariance[i, j] -= told * shift[i] * shift[j]
