"""How reliable corrections by labels and early stopping are, and how much they save. Simulated with known truth.

    python -m benchmarks.calibration [--quick] [--json] [--only WORDS]

Prediction-powered means: a judge that correlates 0.8 with people, 10% of the tasks labelled. Sequential judging: runs
of 100 tasks that stop when every pair of systems is resolved, checked after every twentieth of the tasks. An error is a
pair in the opposite order from the full run; a miss is an interval, at any time, that excludes the full run's value.
--quick: 2,000 data sets and 200 leaderboards instead of 20,000 and 1,000 (5,000 where systems are equal).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.engine.runs.resolver import BATCHES
from adjudge.scoring.kernels.comparison.confidence_sequences import confidence_sequence
from adjudge.scoring.kernels.comparison.corrections import powered_means
from benchmarks.timing import Row, alone, main

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]

LABELLED = 0.1
# DeepResearch Bench, Table 1, RACE overall of the deep research agents.
RACE_OVERALL = (48.88, 46.98, 42.25, 40.24)
# The mean over the ten pairs of its Table 12 of |difference| sqrt(n) / t, which lies between 4.4 and 5.2.
SPREAD = 4.8
ERROR_RATE = 0.05


class PoweredRow(NamedTuple):
    """Shares of intervals that hold the truth, and how much narrower they are than those of the labels alone."""

    covered: float
    covered_difference: float
    narrower: float
    narrower_difference: float
    human_covered: float


class SequentialRow(NamedTuple):
    """Shares of leaderboards with an error or a miss, the mean task count at the end, and the share saved."""

    errors: float
    misses: float
    judged: float
    saved: float


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Noise of unit spread."""
    return rng.standard_normal(shape)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Noise of unit spread with a long tail to one side: gamma with shape 2."""
    return (rng.gamma(2.0, 1.0, shape) - 2.0) / np.sqrt(2.0)


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Noise of unit spread with long tails to both sides: Student's t with 3 degrees of freedom."""
    return rng.standard_t(3.0, shape) / np.sqrt(3.0)


def passed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Noise of unit spread with two values: a coin."""
    return 2.0 * rng.integers(0, 2, shape) - 1.0


def powered_row(
    *, tasks: int, data_sets: int, correlation: float, seed: int, noise: Noise = normal
) -> PoweredRow:
    """Two systems on shared tasks, whose true means are 0: people and a judge of that correlation."""
    rng = np.random.default_rng([seed, tasks])
    labels = round(LABELLED * tasks)
    truth, error = (
        noise(rng, (data_sets, 1, tasks)) * np.sqrt(0.5) + noise(rng, (data_sets, 2, tasks)) * np.sqrt(0.5)
        for _ in range(2)
    )
    judge = correlation * truth + np.sqrt(1.0 - correlation**2) * error
    human = truth.copy()
    human[:, :, labels:] = np.nan
    shares = []
    for scores, people in (
        (judge[:, 0], human[:, 0]),
        (judge[:, 0] - judge[:, 1], human[:, 0] - human[:, 1]),
    ):
        ours, people_alone = powered_means(scores, people), powered_means(scores, people, power=0.0)
        width = float((ours.high - ours.low).mean() / (people_alone.high - people_alone.low).mean())
        shares.append(
            (_covered(ours.low, ours.high), 1.0 - width, _covered(people_alone.low, people_alone.high))
        )
    (covered, narrower, people_covered), (difference, narrower_difference, _) = shares
    return PoweredRow(covered, difference, narrower, narrower_difference, people_covered)


def _covered(low: Floats, high: Floats) -> float:
    return float(((low <= 0.0) & (high >= 0.0)).mean())


def sequential_row(
    means: tuple[float, ...], *, tasks: int, leaderboards: int, seed: int, noise: Noise = normal
) -> SequentialRow:
    """Leaderboards of systems with these means, whose paired differences have the spread SPREAD."""
    rng = np.random.default_rng([seed, tasks])
    first, second = np.triu_indices(len(means), 1)
    batch = max(1, round(tasks / BATCHES))
    errors = misses = judged = 0.0
    for _ in range(leaderboards):
        scores = np.array(means)[:, None] + noise(rng, (len(means), tasks)) * SPREAD / np.sqrt(2.0)
        differences = scores[first] - scores[second]
        truth = differences.mean(axis=1, keepdims=True)
        found = confidence_sequence(differences, tasks, error_rate=ERROR_RATE / first.size)
        rounding = 1e-9 * np.abs(differences).max()
        out = (found.low > truth + rounding) | (found.high < truth - rounding)
        at = np.where(found.resolved.any(axis=1), found.resolved.argmax(axis=1), tasks - 1)
        sign = np.sign(found.mean[np.arange(first.size), at])
        early = at < tasks - 1
        errors += bool((early & (sign != np.sign(truth[:, 0]))).any())
        misses += bool(out.any())
        judged += min(tasks, -(-(int(at.max()) + 1) // batch) * batch)
    return SequentialRow(
        errors / leaderboards,
        misses / leaderboards,
        judged / leaderboards,
        1.0 - judged / leaderboards / tasks,
    )


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Intervals by noise and number of tasks, then leaderboards by noise."""
    for noise in (normal, skewed):
        for tasks, data_sets in ((100, 20_000), (300, 20_000), (1_000, 5_000)):
            name = f"prediction-powered, {tasks:,} tasks, {noise.__name__}"
            if wanted(name):
                n = data_sets // (10 if quick else 1)
                row = powered_row(tasks=tasks, data_sets=n, correlation=0.8, seed=0, noise=noise)
                yield alone(f"{name}: a mean is covered", row.covered, "", n=n)
                yield alone(f"{name}: a difference is covered", row.covered_difference, "", n=n)
                yield alone(f"{name}: people alone cover", row.human_covered, "", n=n)
                yield alone(f"{name}: narrower mean", row.narrower, "", n=n)
                yield alone(f"{name}: narrower difference", row.narrower_difference, "", n=n)
    for title, means, noises, leaderboards in (
        ("DeepResearch Bench Table 1", RACE_OVERALL, (normal, skewed, heavy, passed), 1_000),
        ("its first two", RACE_OVERALL[:2], (normal,), 1_000),
        ("four equal ones", (0.0,) * 4, (normal, skewed, heavy, passed), 5_000),
    ):
        for noise in noises:
            name = f"sequential, {title}, {noise.__name__}"
            if wanted(name):
                n = leaderboards // (5 if quick else 1)
                got = sequential_row(means, tasks=100, leaderboards=n, seed=0, noise=noise)
                yield alone(f"{name}: wrong orders", got.errors, "", n=n)
                yield alone(f"{name}: intervals that miss", got.misses, "", n=n)
                yield alone(f"{name}: tasks judged of 100", got.judged, "", n=n)
                yield alone(f"{name}: questions saved", got.saved, "", n=n)


if __name__ == "__main__":
    main(__doc__, rows)
