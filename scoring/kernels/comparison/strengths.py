"""How strong each system is, given who beat whom: the model of Bradley and Terry.

Rank Analysis of Incomplete Block Designs I, Biometrika 39, 1952: system i beats j with probability

    1 / (1 + exp(-(strength_i - strength_j)))

A tie counts as half a win for each. A system that won or lost everything has no finite strength of maximum likelihood,
nor have two groups of systems of which one won everything against the other; in a bootstrap of a small tournament that
happens in some of the resamples. So each system also has `prior` tied comparisons with an opponent of strength 0: the
strengths then are always finite and unique, no system is favoured, and comparisons outweigh the prior as they grow in
number. With `prior=0` they are those of maximum likelihood, NaN where these do not exist.

Systems that no chain of comparisons connects cannot be ranked against each other: strengths have mean 0 in each
connected component, and differences mean something only inside one.

**The most informative next comparisons.** A ranking's reader wants to know who is ahead of whom. Let z be the
difference of two strengths in units of its standard deviation: the chance that their order is wrong is about Phi(-z).
Another comparison of two systems, of which one is p likely to win, adds p (1 - p) to what is known of them, and through
them some information about every other pair. The comparison chosen lowers the sum of those chances over all pairs most
(to first order in the variances). So distant systems are left alone early, and close ones get most comparisons. A
difference that happens to be near 0 is not treated as hopeless: z is raised to sqrt(z^2 + 1), its expected size.

**Uncertainty.** Tasks are resampled with replacement, each with all comparisons made on it, and every resample fits the
strengths anew. Fewer comparisons make a strength less certain without any further assumption.
"""

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import (
    Flags,
    Floats,
    Integers,
    KernelError,
    as_scores,
    compiled,
    in_threads,
    spans,
)
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap, BootstrapPart, Sampler, merge

PRIOR = 1.0  # tied comparisons: half a win and half a loss
_MOST_STEPS = 1000  # of Newton's; ten are many, but each nears a very large strength by about 1
_LONGEST = 4.0  # step: where the likelihood is almost flat, Newton's may lead anywhere
_CLOSE = 1e-11  # the largest change of a strength in the last step
_LEAST_COUNT, _LARGEST_COUNT = 1e-6, 1e9  # other than 0; beyond them, a tie would be lost in rounding


class Strengths(msgspec.Struct, frozen=True):
    """Strengths of S systems in each of any number of tournaments, `[..., S]`."""

    strength: Floats
    """natural logarithm of odds; mean 0 in each component; NaN for a system that was compared with none"""
    component: Integers
    """which systems are connected by comparisons: the lowest index among them"""
    n_used: Floats
    """comparisons of each system, without the prior's"""
    prior: float


def bradley_terry(wins: ArrayLike, *, prior: float = PRIOR) -> Strengths:
    """The strengths at the maximum of the posterior, by Newton's method, to about 1e-10.

    wins: `[..., S, S]`, how often the system of the row beat that of the column, ties as half a win of each;
        weights are 0, or from 1e-6 to 1e9. NaN for pairs that were not compared, as is 0 in both places. The
        diagonal is not used. Leading axes are separate tournaments, as the resamples of a bootstrap.
    prior: tied comparisons of each system with an opponent of strength 0; the same range.
    Raises KernelError for matrices that are not square, or a count or prior outside its range.
    """
    values = as_scores(wins, max(np.ndim(wins), 2), "wins")
    if values.shape[-1] != values.shape[-2]:
        raise KernelError(f"wins: shape {values.shape}, expected as many rows as columns")
    tournaments = math.prod(values.shape[:-2])
    counts = np.nan_to_num(values).reshape(tournaments, *values.shape[-2:])
    counts = counts * ~np.eye(counts.shape[-1], dtype=np.bool_)
    for name, given in (("wins", counts), ("prior", np.asarray(prior))):
        wrong = given[(given != 0.0) & ~((given >= _LEAST_COUNT) & (given <= _LARGEST_COUNT))]
        if wrong.size:
            raise KernelError(f"{name}: {wrong[0]:g}, expected 0 or a count from 1e-6 to 1e9")
    shape, systems = values.shape[:-1], counts.shape[1]
    strength = np.full((tournaments, systems), np.nan)
    component = np.zeros((tournaments, systems), np.int64)

    def fit(span: tuple[int, int]) -> None:
        for at in range(*span):
            _fit(counts[at], prior, component[at], strength[at])

    in_threads(fit, spans(tournaments, 8 * (systems + 1) ** 3))
    n_used = counts.sum(axis=1) + counts.sum(axis=2)
    return Strengths(strength.reshape(shape), component.reshape(shape), n_used.reshape(shape), float(prior))


def win_shares(found: Strengths) -> Floats:
    """The share of wins that each system's strength expects against all others of its component, `[..., S]`.

    Without a prior, and with equally many comparisons of every pair, this equals the share of its games that the system
    won. NaN for a system without a strength.
    """
    strength, component = found.strength, found.component
    systems = strength.shape[-1]
    others = component[..., :, None] == component[..., None, :]
    others &= ~np.eye(systems, dtype=np.bool_)
    with np.errstate(over="ignore", invalid="ignore"):
        chance = 1.0 / (1.0 + np.exp(strength[..., None, :] - strength[..., :, None]))
        shares: Floats = np.where(others, chance, 0.0).sum(axis=-1) / others.sum(axis=-1)
    return shares


@compiled
def _fit(wins: Floats, prior: float, component: Integers, strength: Floats) -> None:
    """The strengths of one tournament, in place."""
    systems = wins.shape[0]
    usable = np.zeros(systems, np.bool_)
    component[:] = -1
    for first in range(systems):
        if component[first] >= 0:
            continue
        members = _reached(wins, first, True, True)
        for i in range(systems):
            if members[i]:
                component[i] = first
        fits = bool(members.sum() > 1)
        if prior == 0.0:
            # Maximum likelihood exists where every system can be reached from every other along wins (Ford 1957).
            fits &= bool(np.all(_reached(wins, first, True, False) == members))
            fits &= bool(np.all(_reached(wins, first, False, True) == members))
        if fits:
            usable |= members
    theta = np.zeros(systems)
    now = _log_posterior(wins, prior, usable, theta)
    for _ in range(_MOST_STEPS):
        step = _newton_step(wins, prior, usable, theta)
        largest = np.abs(step).max() if systems else 0.0
        if largest > _LONGEST:
            step *= _LONGEST / largest
            largest = _LONGEST
        after = _log_posterior(wins, prior, usable, theta + step)
        # Far from the maximum a whole step may overshoot; close to it, rounding hides that it rises.
        while after < now and largest > 1e-6:
            step *= 0.5
            largest *= 0.5
            after = _log_posterior(wins, prior, usable, theta + step)
        theta += step
        now = after
        if largest <= _CLOSE:
            break
    for i in range(systems):
        total, size = 0.0, 0
        for j in range(systems):
            if component[j] == component[i]:
                total += theta[j]
                size += 1
        strength[i] = theta[i] - total / size if usable[i] else np.nan


@compiled
def _reached(wins: Floats, first: int, beaten: bool, beating: bool) -> Flags:
    """The systems that a chain of wins leads to from `first`: down to the beaten, up to those that beat, or both."""
    systems = wins.shape[0]
    found = np.zeros(systems, np.bool_)
    found[first] = True
    waiting = np.zeros(systems, np.int64)
    waiting[0] = first
    start, end = 0, 1
    while start < end:
        i = waiting[start]
        start += 1
        for j in range(systems):
            if not found[j] and ((beaten and wins[i, j] > 0.0) or (beating and wins[j, i] > 0.0)):
                found[j] = True
                waiting[end] = j
                end += 1
    return found


@compiled
def _log_posterior(wins: Floats, prior: float, usable: Flags, theta: Floats) -> float:
    total = 0.0
    for i in range(theta.size):
        if usable[i]:
            # A tie against strength 0: half of log p and half of log (1 - p).
            total -= prior * (0.5 * abs(theta[i]) + np.log1p(np.exp(-abs(theta[i]))))
            for j in range(theta.size):
                if wins[i, j] > 0.0 and usable[j]:
                    gap = theta[i] - theta[j]
                    total -= wins[i, j] * (max(-gap, 0.0) + np.log1p(np.exp(-abs(gap))))
    return total


@compiled
def _newton_step(wins: Floats, prior: float, usable: Flags, theta: Floats) -> Floats:
    """The solution of information x step = gradient.

    The information is a Laplacian: systems are nodes, curvatures the conductances between them, the prior's curvature
    a leak to the ground. Nodes are taken out one after the other; that only adds and never subtracts, so that no
    mixture of large and small counts loses precision.
    """
    systems = theta.size
    step = np.zeros(systems)  # first the gradient, then the currents
    leak = np.zeros(systems)
    joins = np.zeros((systems, systems))
    for i in range(systems):
        if usable[i]:
            up, down = 1.0 / (1.0 + np.exp(-theta[i])), 1.0 / (1.0 + np.exp(theta[i]))
            step[i] = 0.5 * prior * (down - up)
            leak[i] = prior * up * down
            for j in range(systems):
                if j != i and usable[j] and wins[i, j] + wins[j, i] > 0.0:
                    gap = theta[i] - theta[j]
                    up, down = 1.0 / (1.0 + np.exp(-gap)), 1.0 / (1.0 + np.exp(gap))
                    step[i] += wins[i, j] * down - wins[j, i] * up
                    joins[i, j] = (wins[i, j] + wins[j, i]) * up * down
    for k in range(systems):
        out = joins[k, k + 1 :].sum() + leak[k]
        if out > 0.0:
            for i in range(k + 1, systems):
                if joins[i, k] == 0.0:
                    continue
                share = joins[i, k] / out
                step[i] += share * step[k]
                leak[i] += share * leak[k]
                for j in range(k + 1, systems):
                    if j != i:
                        joins[i, j] += share * joins[k, j]
    for k in range(systems - 1, -1, -1):
        out = joins[k, k + 1 :].sum() + leak[k]
        # Without a prior the last of a component is the ground: only differences are known.
        step[k] = (step[k] + (joins[k, k + 1 :] * step[k + 1 :]).sum()) / out if out > 0.0 else 0.0
    return step


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


_TILE = 512  # resamples fitted at a time


class Tournament(msgspec.Struct, frozen=True):
    """The `strength` and the `share` of wins of S systems."""

    strength: Bootstrap
    share: Bootstrap


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

    # Intervals without BCa's acceleration, which strengths are too nearly symmetric to need.
    own, others = (
        merge([BootstrapPart(seed, 0, tasks, n_used, estimate, np.zeros(systems), resampled)], level=level)
        for estimate, resampled in ((full.strength, strength), (shares_against(full, baseline), share))
    )
    return Tournament(own, others)


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
