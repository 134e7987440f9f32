"""How often `adjudge check` raises a false alarm, and how often it finds the drop that it states. Simulated runs.

    python -m benchmarks.check [--quick] [--json] [--only WORDS]

Each of 2,000 pairs of run folders has new scores for the same tasks: a task's difficulty, a system's level, and noise
that both runs draw anew, clipped to 0..1 and rounded to hundredths. A false alarm is an exit code 4 where nothing
changed. For the power, the run's level is lower by the drop that the check states as detectable at this spread.
--quick: 100 pairs.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.commands.check import POWER, check
from adjudge.engine.runs.record import TaskRecord
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.comparison.drop_test import drop_test
from benchmarks.timing import Row, main
from tests.made_record import made_record

ALPHA = 0.05
NOISE = 0.06
METRIC = Metric(name="overall", scale=100.0, headline=True)
PROTOCOLS = ("race", "fact")


class Alarms(NamedTuple):
    """The share of pairs with an alarm, and the mean drop that was stated as detectable, in units of tables."""

    share: float
    stated: float


def alarms(
    *, pairs: int, tasks: int, systems: int, drop: float | None, seed: int, max_drop: float | None = None
) -> Alarms:
    """Check so many pairs of run folders; `drop` (0 to 1) of None is the one that is detectable at the true spread."""
    rng = np.random.default_rng(seed)
    if drop is None:
        shape = np.linspace(-1, 1, tasks)
        differences = shape / shape.std(ddof=1) * NOISE * np.sqrt(2)  # as many, and of this spread
        family = systems * len(PROTOCOLS)
        drop = drop_test(differences, np.zeros(tasks), alpha=ALPHA, power=POWER, family=family).detectable
    raised, stated = 0, 0.0
    with tempfile.TemporaryDirectory() as name:
        run, baseline = Path(name, "run"), Path(name, "baseline")
        for folder in (run, baseline):
            _record(folder, systems, tasks)
        for _ in range(pairs):
            level = rng.normal(0.5, 0.1, (len(PROTOCOLS), systems, tasks))
            # Only the first test of a pair has dropped, so the share is the power of a single test.
            fallen = np.zeros((len(PROTOCOLS), systems, 1))
            fallen[0, 0] = drop
            for folder, means in ((baseline, level), (run, level - fallen)):
                _scores(folder, means + rng.normal(0, NOISE, level.shape))
            found = check(run, baseline, alpha=ALPHA, max_drop=max_drop)
            hit = found.outcome == "regressed" if not drop else found.metrics[0].outcome == "regressed"
            raised += hit
            stated += float(found.metrics[0].detectable or 0.0)
    return Alarms(raised / pairs, stated / pairs)


def _record(folder: Path, systems: int, tasks: int) -> None:
    folder.mkdir()
    made_record(
        dict.fromkeys(PROTOCOLS, (METRIC,)),
        {str(task): TaskRecord("en", "") for task in range(tasks)},
        [str(system) for system in range(systems)],
    ).write(folder)


def _scores(folder: Path, values: np.ndarray) -> None:
    at = [one.ravel() for one in np.indices(values.shape)]
    rows = {
        "protocol": pa.array(PROTOCOLS).take(pa.array(at[0])),
        "system": pa.array(at[1].astype(str)),
        "task_id": pa.array(at[2].astype(str)),
        "sample": pa.array(np.zeros(values.size, np.int32)),
        "repeat": pa.array(np.zeros(values.size, np.int32)),
        "metric": pa.array(["overall"] * values.size),
        "value": pa.array(np.clip(values, 0, 1).round(2).ravel()),
        "status": pa.array(["scored"] * values.size),
        "reason": pa.nulls(values.size, pa.string()),
    }
    pq.write_table(pa.table(rows), folder / "scores.parquet")


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Shares of pairs beside what is promised; a ratio above 1 is better than promised."""
    pairs = 100 if quick else 2_000
    for tasks, systems in ((20, 1), (100, 1), (50, 5)):
        name = f"false alarms, {tasks} tasks, {systems * len(PROTOCOLS)} tests"
        if wanted(name):
            found = alarms(pairs=pairs, tasks=tasks, systems=systems, drop=0.0, seed=tasks)
            yield Row(name, found.share, ALPHA, "alpha", ALPHA / max(found.share, 1e-9), "share", pairs, 1)
    for tasks in (20, 100):
        name = f"power at the stated drop, {tasks} tasks, 2 tests"
        if wanted(name):
            found = alarms(pairs=pairs, tasks=tasks, systems=1, drop=None, seed=tasks + 1)
            yield Row(name, found.share, POWER, "stated", found.share / POWER, "share", pairs, 1)


if __name__ == "__main__":
    main(__doc__, rows)
