"""A run's scores as tables for other tools."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from adjudge.engine.runs.record import RunRecord
from adjudge.engine.store.scorecards import SCORE_TYPES
from adjudge.engine.tables.spreadsheet import plain_texts


def write_scores(scores: pa.Table, record: RunRecord, out: Path) -> Iterator[Path]:
    """Write the rows `scores` with the run, its judge, and the tasks' language and domain: Parquet, CSV, JSON Lines."""
    scores = scores.cast(
        pa.schema({name: SCORE_TYPES.get(name, pa.string()) for name in scores.column_names})
    )
    tasks = [record.tasks.get(name) for name in scores["task_id"].to_pylist()]
    more = {
        "language": [task.language if task else None for task in tasks],
        "domain": [task.domain if task else None for task in tasks],
        "judge": [record.judging.said_of(name) for name in scores["protocol"].to_pylist()],
        "run": [record.run] * len(scores),
    }
    for name, values in more.items():
        scores = scores.append_column(name, pa.array(values, pa.string()))
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(scores, out / "scores.parquet")
    pacsv.write_csv(plain_texts(scores), out / "scores.csv")
    encoder = msgspec.json.Encoder()
    with (out / "scores.jsonl").open("wb") as lines:
        for batch in scores.to_batches(max_chunksize=10_000):
            lines.writelines(encoder.encode(row) + b"\n" for row in batch.to_pylist())
    yield from (out / f"scores.{ending}" for ending in ("parquet", "csv", "jsonl"))
