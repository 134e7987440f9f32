"""How often the 95% interval of a metric corrected by labels of single verdicts contains its true value.

    python -m benchmarks.labels [--quick] [--json] [--only WORDS]

Two systems' reports to the same tasks, each of a random number of items. A task has its own share of items that hold,
so items of a report go together, and a judge that errs more on some tasks than on others. Labels are drawn evenly from
the judge's two verdicts, `labels` for each system. 4,000 data sets per row (--quick: 100).
"""

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.comparison.corrections import LabelledItems, labelled_mean
from benchmarks.timing import Row, alone, main

__all__ = ["Coverage", "Truth", "covered"]

SHARES = (0.7, 0.6)  # of items that hold, by system
SPREAD = 4.0  # of the tasks' own shares: the two numbers of a beta distribution together
UNEVEN = 0.05  # standard deviation of the judge's accuracy over tasks
SIZES = ((50, 20, 60), (100, 20, 60), (100, 20, 120), (100, 30, 300))
ACCURACIES = (0.75, 0.85, 0.95)

Floats = npt.NDArray[np.float64]


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """A world: so many tasks, items per report on average, labels per system, and the judge's accuracy."""

    tasks: int
    items: int
    labels: int
    accuracy: float


class Coverage(msgspec.Struct, frozen=True):
    """The shares of intervals that hold the mean and the difference, and the mean's bias and width."""

    mean: float
    difference: float
    bias: float
    width: float


def covered(truth: Truth, data_sets: int, seed: int) -> Coverage:
    """Simulate so many data sets; those whose labels miss a verdict altogether are drawn again."""
    rng = np.random.default_rng([seed, truth.tasks, truth.labels])
    held, bias, width = np.zeros(2), 0.0, 0.0
    for _ in range(data_sets):
        common = rng.beta(SPREAD / 2, SPREAD / 2, truth.tasks)
        sides = [_system(rng, truth, share, common) for share in SHARES]
        (scores, items), (other_scores, other) = sides
        mean = labelled_mean(scores, items)
        both = {
            name: np.concatenate([getattr(items, name), getattr(other, name)])
            for name in ("task", "judge", "human")
        }
        gap = labelled_mean(
            scores - other_scores,
            LabelledItems(
                **both,
                weight=np.concatenate([items.weight, -other.weight]),
                stratum=np.concatenate([items.stratum, other.stratum + 2]),
            ),
        )
        held += [
            mean.low <= SHARES[0] <= mean.high,
            gap.low <= SHARES[0] - SHARES[1] <= gap.high,
        ]
        bias += mean.estimate - SHARES[0]
        width += mean.high - mean.low
    shares = held / data_sets
    return Coverage(float(shares[0]), float(shares[1]), bias / data_sets, width / data_sets)


def _system(
    rng: np.random.Generator, truth: Truth, share: float, common: Floats
) -> tuple[Floats, LabelledItems]:
    """A system's scores by the judge, and its items; a part of a task's share is common to the systems."""
    own = rng.beta(SPREAD * share, SPREAD * (1.0 - share), truth.tasks)
    rate = 0.8 * own + 0.2 * share + 0.2 * min(share, 1.0 - share) * (2.0 * common - 1.0)
    counts = 1 + rng.poisson(truth.items - 1, truth.tasks)
    task = np.repeat(np.arange(truth.tasks), counts)
    holds = rng.random(task.size) < rate[task]
    accuracy = np.clip(truth.accuracy + UNEVEN * rng.normal(size=truth.tasks), 0.5, 1.0)
    judge = np.where(rng.random(task.size) < accuracy[task], holds, ~holds)
    labelled = np.zeros(task.size, bool)
    order = rng.permutation(task.size)
    sizes = [int((judge == verdict).sum()) for verdict in (False, True)]
    for verdict in (False, True):
        most = max(truth.labels // 2, truth.labels - sizes[not verdict])
        labelled[order[judge[order] == verdict][:most]] = True
    weight = 1.0 / counts[task]
    said = judge.astype(np.float64)
    items = LabelledItems(
        task=task,
        weight=weight,
        judge=said,
        human=np.where(labelled, holds, np.nan),
        stratum=judge.astype(np.int64),
    )
    return np.bincount(task, weight * said, truth.tasks), items


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """A row for each size and accuracy of the judge, of the mean and of the difference."""
    data_sets = 100 if quick else 4_000
    for tasks, items, labels in SIZES:
        for accuracy in ACCURACIES:
            name = f"{tasks} tasks of {items} items, {labels} labels, judge right in {accuracy:.0%}"
            if wanted(name):
                world = Truth(tasks=tasks, items=items, labels=labels, accuracy=accuracy)
                found = covered(world, data_sets, seed=0)
                yield alone(f"{name}: the mean is covered", found.mean, "", n=data_sets)
                yield alone(f"{name}: the difference is covered", found.difference, "", n=data_sets)
                yield alone(f"{name}: width of the mean", found.width, "", n=data_sets)


if __name__ == "__main__":
    main(__doc__, rows)
