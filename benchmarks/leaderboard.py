"""A leaderboard of one million score rows: `python -m benchmarks.leaderboard [--quick] [--json]`.

100 systems x 10,000 tasks (quick: 1,000), 5 % of the scores missing, written as a run's scores.parquet; then
`adjudge leaderboard` on that folder in a new process: wall seconds from start to exit, and peak memory. There is no
peer: the ratio compares with fixed limits (10 s and 2 GB).
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.runs.record import TaskRecord
from adjudge.scoring.contract.scorecard import Metric
from benchmarks.timing import RUNS, Row, main
from tests.made_record import made_record

AIM_SECONDS, AIM_BYTES = 10.0, 2e9  # for a million rows
SYSTEMS, TASKS, QUICK_TASKS = 100, 10_000, 1_000


def write_run(
    folder: Path, systems: int, tasks: int, *, metrics: int = 1, domains: int = 1, unscored: float = 0.05
) -> None:
    """A run folder of systems x tasks scores on a 0..1 scale, a share of them `unscored`.

    With several `metrics` each is the headline of a table of its own; with several `domains` tasks are in turn of each.
    """
    rng = np.random.default_rng(0)
    skill, difficulty = rng.normal(0.5, 0.05, systems), rng.normal(0, 0.1, tasks)
    values = np.round(skill[:, None] + difficulty + rng.normal(0, 0.1, (systems, tasks)), 4).ravel()
    missing = rng.random(values.size) < unscored
    names = pa.array([f"system {i:03d}" for i in range(systems)])
    ids = pa.array([str(i) for i in range(tasks)])
    n = values.size
    heads = ["overall", *(f"overall_{number}" for number in range(2, metrics + 1))]
    alone = pa.table(
        {
            "protocol": pa.array(["race"] * n),
            "system": names.take(pa.array(np.repeat(np.arange(systems), tasks))),
            "task_id": ids.take(pa.array(np.tile(np.arange(tasks), systems))),
            "sample": pa.array(np.zeros(n, np.int32)),
            "repeat": pa.array(np.zeros(n, np.int32)),
            "metric": pa.array(["overall"] * n),
            "value": pa.array(values, mask=missing),
            "status": pa.array(np.where(missing, "unscored", "scored")),
            "reason": pa.array(np.where(missing, "judge_timeout", ""), mask=~missing),
        }
    )
    place = alone.schema.get_field_index("metric")
    scores = [alone.set_column(place, "metric", pa.array([name] * n)) for name in heads]
    pq.write_table(pa.concat_tables(scores), folder / "scores.parquet", compression="zstd")
    made_record(
        {
            "race": tuple(
                Metric(name=name, headline=True, scale=100.0, table="" if place == 0 else name)
                for place, name in enumerate(heads)
            )
        },
        {str(i): TaskRecord("en", "" if domains == 1 else f"domain {i % domains}") for i in range(tasks)},
        names.to_pylist(),
    ).write(folder)


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Write the run, then time the command and take its peak memory."""
    command = [sys.executable, "-m", "adjudge.engine", "leaderboard", "--json"]
    runs = 1 if quick else RUNS
    tasks = QUICK_TASKS if quick else TASKS
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder), SYSTEMS, tasks)
        subprocess.run([*command, folder], check=True, stdout=subprocess.DEVNULL)
        spent = []
        for _ in range(runs):
            began = time.perf_counter()
            subprocess.run([*command, folder], check=True, stdout=subprocess.DEVNULL)
            spent.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    for name, ours, aim, unit in (
        (f"leaderboard of {SYSTEMS * tasks:,} score rows", statistics.median(spent), AIM_SECONDS, "s"),
        ("peak memory of it", float(peak), AIM_BYTES, "bytes"),
    ):
        if wanted(name):
            yield Row(name, ours, aim, "aim", aim / ours, unit, SYSTEMS * tasks, runs)


if __name__ == "__main__":
    main(__doc__, rows)
