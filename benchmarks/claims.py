"""How often tiers and sentences claim a difference that is not there, and how often they find one that is.

Systems have scores on the same tasks: of normal noise, of skewed noise (exponential), or right and wrong (0 and 1).
Where all are equally good, any tier but the first, and any sentence of `compare` that says that one is better, is a
false alarm; the chance of one must not exceed alpha. The power is that of one pair of systems whose means are one
standard deviation apart (of scores of 0 and 1: 0.75 and 0.25), as measured: nothing promises it.

    python -m benchmarks.claims

A row's `ours` is the measured share, `peer` alpha, and `ratio` alpha over the share; rows of power have no peer, and
without any alarm there is no ratio.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.comparison.claims import ALPHA, differences, tiers, told_apart
from benchmarks.timing import Row, main

Noise = Literal["normal", "skewed", "0 or 1"]
NOISES: tuple[Noise, ...] = ("normal", "skewed", "0 or 1")
TASKS = (3, 5, 8, 12, 30)

Floats = npt.NDArray[np.float64]


class Claimed(NamedTuple):
    """The shares of the worlds in which tiers separate anybody, and in which two systems are told apart."""

    tiers: float
    sentence: float


def claimed(
    noise: Noise, tasks: int, *, systems: int = 5, gap: bool = False, worlds: int = 2_000, seed: int = 0
) -> Claimed:
    """What is claimed of so many `worlds`; with a `gap` the first system is better than the others."""
    rng = np.random.default_rng(seed)
    tiered, said = 0, 0
    for _ in range(worlds):
        scores = _scores(rng, noise, systems, tasks, gap)
        pairs = differences(scores, bounded=False)
        tiered += int(tiers(scores.mean(axis=1), told_apart(pairs, systems)[1]).max() > 1)
        said += bool(pairs.p[0] <= ALPHA)  # of the first two systems alone
    return Claimed(tiered / worlds, said / worlds)


def _scores(rng: np.random.Generator, noise: Noise, systems: int, tasks: int, gap: bool) -> Floats:
    """Scores [S, T] on tasks that are easier and harder for all alike."""
    better = np.zeros((systems, 1))
    better[0] = float(gap)
    hard = rng.normal(size=tasks)
    if noise == "normal":
        return np.asarray(rng.normal(size=(systems, tasks)) + better + hard)
    if noise == "skewed":
        return np.asarray(rng.exponential(size=(systems, tasks)) + better + hard)
    right = (
        np.where(better > 0.0, 0.75, 0.25) if gap else np.broadcast_to(rng.random(tasks), (systems, tasks))
    )
    return np.asarray(rng.random((systems, tasks)) < right, np.float64)


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """False alarms beside alpha, and power."""
    worlds = 500 if quick else 10_000
    for noise in NOISES:
        for tasks in TASKS:
            name = f"{noise}, {tasks} tasks"
            if not wanted(name):
                continue
            none = claimed(noise, tasks, worlds=worlds, seed=tasks)
            some = claimed(noise, tasks, gap=True, worlds=worlds, seed=tasks)
            for what, share in (("tiers of 5 systems", none.tiers), ("sentences on 2", none.sentence)):
                alarm = f"false alarms of {what}, {name}"
                yield Row(alarm, share, ALPHA, "alpha", ALPHA / share if share else None, "share", worlds, 1)
            yield Row(f"power of sentences, {name}", some.sentence, None, "", None, "share", worlds, 1)


if __name__ == "__main__":
    main(__doc__, rows)
