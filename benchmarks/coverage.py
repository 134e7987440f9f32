"""How often a 95% interval of the bootstrap contains the true value, by the number of tasks.

    python -m benchmarks.coverage [--quick] [--json] [--only WORDS]

Each data set has two systems on the same tasks, made of task difficulty, a skill per system and skewed noise, so the
true value is known. 10,000 data sets per row, 1,000 resamples each (--quick: 200 data sets).
"""

from collections.abc import Callable, Iterator

import numpy as np

from adjudge.scoring.kernels.resampling.bootstrap import bootstrap
from benchmarks.timing import Row, alone, main

TOGETHER = 10  # data sets a call: their random scores differ, the tasks drawn are the same
SKILLS = (55.0, 53.0)
SIZES = (10, 20, 50, 100, 200)


def coverage(tasks: int, data_sets: int, resamples: int, seed: int) -> dict[str, float]:
    """The share of intervals at 95% that hold the true mean, or the true difference of two systems."""
    generator = np.random.default_rng([seed, tasks])
    truth = np.tile(SKILLS, TOGETHER)
    first, second = np.arange(0, 2 * TOGETHER, 2), np.arange(1, 2 * TOGETHER, 2)
    held = {"mean, percentile": 0, "mean, BCa": 0, "difference, percentile": 0}
    calls = data_sets // TOGETHER
    for call in range(calls):
        difficulty = np.repeat(generator.normal(0.0, 10.0, (TOGETHER, tasks)), 2, axis=0)
        noise = generator.gamma(4.0, 4.0, (2 * TOGETHER, tasks)) - 16.0
        scores = truth[:, None] + difficulty + noise
        result = bootstrap(scores, resamples=resamples, seed=seed + call, threads=1)
        for name, interval in (("mean, percentile", result.percentile), ("mean, BCa", result.bca)):
            held[name] += int(((interval[first, 0] <= SKILLS[0]) & (SKILLS[0] <= interval[first, 1])).sum())
        pairs = result.difference_interval[first, second]
        gap = SKILLS[0] - SKILLS[1]
        held["difference, percentile"] += int(((pairs[:, 0] <= gap) & (gap <= pairs[:, 1])).sum())
    return {name: count / (calls * TOGETHER) for name, count in held.items()}


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """A row for each number of tasks and kind of interval."""
    data_sets = 200 if quick else 10_000
    for tasks in SIZES:
        name = f"95% intervals at {tasks} tasks"
        if wanted(name):
            for kind, share in coverage(tasks, data_sets, 1_000, seed=0).items():
                yield alone(f"{name}, {kind}: hold the truth", share, "", n=data_sets)


if __name__ == "__main__":
    main(__doc__, rows)
