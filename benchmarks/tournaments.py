"""Pairwise comparisons of systems: how sure strengths are, and how many comparisons it takes to order the systems.

    python -m benchmarks.tournaments [--quick] [--json] [--only WORDS]

Simulated tournaments of 8 systems on 100 tasks. A system is better or worse at each task; a judge answers in both
orders, prefers what is shown first, and ties one time in five where systems are equal. The true strengths are those
that endless tasks would give. Coverage: the share of 95% intervals, of a strength or of the difference of two, that
hold the truth. Resolved: pairs whose difference has an interval without 0, of all comparisons and of as many as the
budget allows, chosen in rounds by `most_telling`, or drawn at random, or with hindsight: from the strengths of all
comparisons and the pairs that these resolve, which no rule knows beforehand. 500 tournaments a row, 1,000 resamples
each (--quick: 5).
"""

from collections.abc import Callable, Iterator

import numpy as np

from adjudge.scoring.kernels.base.arrays import Floats
from adjudge.scoring.kernels.comparison.strengths import bradley_terry, most_telling, tournament
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap
from benchmarks.timing import Row, alone, main

SYSTEMS, TASKS = 8, 100
ROUNDS = 20
SHARES = (0.3, 0.45, 0.6)
SPREAD, PER_TASK, BIAS, TIES = 1.0, 0.6, 0.3, 0.2
PAIRS = np.triu_indices(SYSTEMS, 1)


def decided(gap: Floats) -> Floats:
    """The share of wins of the first of two reports shown, ties as half a win."""
    return np.asarray(1.0 / (1.0 + np.exp(-(gap + BIAS))))


def truth(skill: Floats) -> Floats:
    """The strengths that endless tasks give: the fit to the expected wins."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    gap = skill[:, None] - skill[None, :]
    noisy = gap[..., None] + nodes * PER_TASK * np.sqrt(2.0)
    won = 0.5 * (decided(noisy) + 1.0 - decided(-noisy))
    expected = won @ (weights / weights.sum())
    return bradley_terry(1000.0 * expected, prior=0.0).strength


def played(skill: Floats, generator: np.random.Generator) -> Floats:
    """What the first of each pair won on each task, the mean of both orders: [T, pairs]."""
    at_task = skill + generator.normal(0.0, PER_TASK, (TASKS, SYSTEMS))
    gap = at_task[:, PAIRS[0]] - at_task[:, PAIRS[1]]
    orders = []
    for sign in (1.0, -1.0):
        share = decided(sign * gap)
        tied = 4.0 * TIES * share * (1.0 - share)
        drawn = generator.random(gap.shape)
        won = np.where(drawn < share - tied / 2, 1.0, np.where(drawn < share + tied / 2, 0.5, 0.0))
        orders.append(won if sign > 0 else 1.0 - won)
    return np.asarray((orders[0] + orders[1]) / 2.0)


def matrices(won: Floats, made: Floats) -> Floats:
    """[T, S, S] of the comparisons that were `made`."""
    wins = np.zeros((len(won), SYSTEMS, SYSTEMS))
    wins[:, PAIRS[0], PAIRS[1]] = np.where(made, won, 0.0)
    wins[:, PAIRS[1], PAIRS[0]] = np.where(made, 1.0 - won, 0.0)
    return wins


def chosen(won: Floats, budget: int, generator: np.random.Generator) -> Floats:
    """Which comparisons a run with this budget makes, in rounds as `evaluate` does."""
    order = np.argsort(generator.random(won.shape), axis=0)
    taken = np.zeros(len(PAIRS[0]), np.int64)
    made = np.zeros(won.shape, np.bool_)
    for number in range(ROUNDS):
        left = np.zeros((SYSTEMS, SYSTEMS))
        left[PAIRS] = TASKS - taken
        count = budget * (number + 1) // ROUNDS - budget * number // ROUNDS
        more = most_telling(matrices(won, made).sum(axis=0), left, count)[PAIRS]
        for pair, extra in enumerate(more.tolist()):
            made[order[taken[pair] : taken[pair] + extra, pair], pair] = True
        taken += more
    return made


def hindsight(won: Floats, all_found: Bootstrap, budget: int, generator: np.random.Generator) -> Floats:
    """Which comparisons are left when those are dropped, a twentieth of a pair's at a time, that the pairs resolved by
    all comparisons need least: each such pair keeps its distance from 0 in standard deviations above 1.96 if it can.
    """
    strength = all_found.estimate
    gap = np.abs(strength[PAIRS[0]] - strength[PAIRS[1]])
    goal = ahead(all_found) != 0
    apart = np.zeros((len(gap), SYSTEMS))
    apart[np.arange(len(gap)), PAIRS[0]], apart[np.arange(len(gap)), PAIRS[1]] = 1.0, -1.0
    weight = 1.0 / (2.0 + np.exp(gap) + np.exp(-gap))
    spread = 0.5 * np.abs(all_found.difference_interval[PAIRS] @ (-1.0, 1.0)) / 1.96
    share = np.ones(len(gap))
    # What tasks add to the spread of the full tournament is taken for a factor of each pair's variance.
    excess = spread**2 / variances(apart, weight * TASKS * share)
    while share.sum() * TASKS > budget + 1e-9:
        costs = np.full(len(gap), np.inf)
        for pair in np.flatnonzero(share > 0.05 - 1e-9):
            share[pair] -= 0.05
            slack = gap / np.sqrt(excess * variances(apart, weight * TASKS * share)) - 1.96
            costs[pair] = np.exp(-4.0 * slack[goal]).sum()
            share[pair] += 0.05
        share[np.argmin(costs)] -= 0.05
    order = np.argsort(np.argsort(generator.random(won.shape), axis=0), axis=0)
    return np.asarray(order < np.round(share * TASKS))


def variances(apart: Floats, told: Floats) -> Floats:
    """The variance of every pair's difference when comparisons tell `told` [pairs] of each."""
    information = apart.T @ (told[:, None] * apart) + 1e-3 * np.eye(SYSTEMS)
    return np.asarray(((apart @ np.linalg.inv(information)) * apart).sum(axis=1))


def ahead(found: Bootstrap) -> Floats:
    """For every pair: 1 or -1 where its interval says who is ahead, 0 where it holds 0."""
    interval = found.difference_interval[PAIRS]
    return np.where(interval[:, 0] > 0.0, 1.0, np.where(interval[:, 1] < 0.0, -1.0, 0.0))


def resolved(found: Bootstrap, true: Floats) -> tuple[int, int]:
    """Pairs told apart, and those of them in the wrong order."""
    said = ahead(found)
    right = np.sign(true[PAIRS[0]] - true[PAIRS[1]])
    return int((said != 0).sum()), int(((said != 0) & (said != right)).sum())


def held(found: Bootstrap, true: Floats) -> tuple[float, float]:
    """The shares of the intervals of strengths, and of differences, that hold the truth."""
    own = (found.percentile[:, 0] <= true) & (true <= found.percentile[:, 1])
    gap, interval = true[PAIRS[0]] - true[PAIRS[1]], found.difference_interval[PAIRS]
    return float(own.mean()), float(((interval[:, 0] <= gap) & (gap <= interval[:, 1])).mean())


def simulated(tournaments: int) -> dict[str, Floats]:
    """For every way of choosing: [tournaments, 4] of pairs resolved, of those wrong, and the two coverages."""
    generator = np.random.default_rng(25)
    everything = np.ones((TASKS, len(PAIRS[0])), np.bool_)
    figures: dict[str, list[tuple[float, ...]]] = {}
    for number in range(tournaments):
        skill = generator.normal(0.0, SPREAD, SYSTEMS)
        true, won = truth(skill), played(skill, generator)
        ways = {"all": everything}
        full = tournament(matrices(won, everything), resamples=1_000, seed=number).strength
        for share in SHARES:
            budget = round(share * everything.size)
            ways[f"{share:.0%} chosen"] = chosen(won, budget, generator)
            drawn = generator.permutation(everything.size) < budget
            ways[f"{share:.0%} at random"] = drawn.reshape(everything.shape)
            ways[f"{share:.0%} with hindsight"] = hindsight(won, full, budget, np.random.default_rng(number))
        for name, made in ways.items():
            found = tournament(matrices(won, made), resamples=1_000, seed=number).strength
            figures.setdefault(name, []).append((*resolved(found, true), *held(found, true)))
    return {name: np.array(each) for name, each in figures.items()}


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Rows of coverage, of pairs resolved, and of how many of them are in the wrong order."""
    tournaments = 5 if quick else 500
    if not wanted("tournaments"):
        return
    found = simulated(tournaments)
    everything = float(found["all"][:, 0].mean())
    for name, each in found.items():
        pairs, wrong, strengths, differences = each.mean(axis=0).tolist()
        for what, value in (
            ("95% intervals of strengths hold the truth", strengths),
            ("95% intervals of differences hold the truth", differences),
            ("pairs resolved of 28", pairs),
            ("pairs resolved, of those that all comparisons resolve", pairs / everything),
            ("resolved pairs in the wrong order", wrong / pairs),
        ):
            yield alone(f"tournaments, {name}: {what}", value, "", n=tournaments)


if __name__ == "__main__":
    main(__doc__, rows)
