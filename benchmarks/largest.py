"""The largest leaderboard: `python -m benchmarks.largest [--quick] [--json]`.

1,000 systems x 1,000 tasks (quick: 200 x 200) under six protocols of five metrics each, one of them the headline: 30
million score rows, one in 100 unscored. `adjudge leaderboard --out` on that folder in a new process: wall and CPU
seconds from start to exit, peak memory, and the size of each file it writes. There is no peer.
"""

import resource
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
from benchmarks.timing import Row, alone, main
from tests.made_record import made_record

PROTOCOLS = ("race", "fact", "rigorous", "livedr", "dr3", "drmi")
METRICS = ("overall", "first", "second", "third", "fourth")
SYSTEMS, QUICK_SYSTEMS = 1_000, 200


def write_run(folder: Path, systems: int, tasks: int) -> None:
    """A run folder with a score of every system on every task by every metric; each protocol is a part of the file."""
    rng = np.random.default_rng(0)
    names = [f"system {number:04d}" for number in range(systems)]
    ids = [str(number) for number in range(tasks)]
    skill, difficulty = rng.normal(0.5, 0.05, (len(METRICS), systems, 1)), rng.normal(0, 0.1, tasks)
    shape = (len(METRICS), systems, tasks)
    metric, system, task = (index.ravel().astype(np.int32) for index in np.indices(shape, np.int16))
    size = metric.size

    def named(index: np.ndarray, words: list[str]) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(index), pa.array(words))

    with (folder / "scores.parquet").open("wb") as file:
        writer = None
        for protocol in PROTOCOLS:
            values = np.round(skill + difficulty + rng.normal(0, 0.1, shape), 4).ravel()
            missing = rng.random(size) < 0.01
            part = pa.table(
                {
                    "protocol": named(np.zeros(size, np.int32), [protocol]),
                    "system": named(system, names),
                    "task_id": named(task, ids),
                    "sample": pa.array(np.zeros(size, np.int32)),
                    "repeat": pa.array(np.zeros(size, np.int32)),
                    "metric": named(metric, list(METRICS)),
                    "value": pa.array(values, mask=missing),
                    "status": named(missing.astype(np.int32), ["scored", "unscored"]),
                    "reason": named(missing.astype(np.int32), ["", "judge_timeout"]),
                }
            )
            plain = pa.schema(
                [(field.name, getattr(field.type, "value_type", field.type)) for field in part.schema]
            )
            writer = writer or pq.ParquetWriter(file, plain, compression="zstd")
            writer.write_table(part.cast(plain))
        if writer:
            writer.close()
    metrics = tuple(Metric(name=name, headline=place == 0, scale=100.0) for place, name in enumerate(METRICS))
    made_record(dict.fromkeys(PROTOCOLS, metrics), {one: TaskRecord("en", "") for one in ids}, names).write(
        folder
    )


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Write the run, then make its board once."""
    systems = QUICK_SYSTEMS if quick else SYSTEMS
    count = systems * systems * len(PROTOCOLS) * len(METRICS)
    with tempfile.TemporaryDirectory() as name:
        run, out = Path(name) / "run", Path(name) / "out"
        run.mkdir()
        write_run(run, systems, systems)
        command = [sys.executable, "-m", "adjudge.engine", "leaderboard", str(run), "--out", str(out)]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        clock = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        for what, figure, unit in (
            (f"leaderboard of {count:,} score rows", clock, "s"),
            ("CPU time of it", used.ru_utime + used.ru_stime, "s"),
            ("peak memory of it", used.ru_maxrss * 1024.0, "bytes"),
            *((file.name, float(file.stat().st_size), "bytes") for file in sorted(out.iterdir())),
        ):
            if wanted(what):
                yield alone(what, figure, unit, n=count)


if __name__ == "__main__":
    main(__doc__, rows)
