"""Score rows of one or more runs as matrices: for each protocol and metric, systems x tasks."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adjudge.engine.errors import UsageError
from adjudge.engine.store.scorecards import with_bounds

__all__ = [
    "MetricRows",
    "ScoreMatrix",
    "codes",
    "figure",
    "metric_rows",
    "read_matrices",
    "read_scores",
    "values_of",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class MetricRows(msgspec.Struct, frozen=True, kw_only=True):
    """The score rows of one metric: arrays with an element per row.

    `system`, `task` and `reason` are places in `systems`, `tasks` and `reasons`, which all metrics share (""
    where there is none). `answer` numbers the agent's sample and the judge's repeat together. `values` are NaN where
    unscored, `low` and `high` where null.
    """

    protocol: str
    metric: str
    systems: list[str]
    tasks: list[str]
    reasons: list[str]
    system: Integers
    task: Integers
    reason: Integers
    answer: Integers
    values: Floats
    low: Floats
    high: Floats

    def matrix(self) -> "ScoreMatrix":
        """The rows as systems x tasks."""
        scored = ~np.isnan(self.values)
        shape = (len(self.systems), len(self.tasks))
        cell = (self.system * shape[1] + self.task)[scored]
        count = np.bincount(cell, minlength=shape[0] * shape[1])
        total = np.bincount(cell, weights=self.values[scored], minlength=shape[0] * shape[1])
        with np.errstate(invalid="ignore"):
            means = (total / count).reshape(shape)
        present = np.flatnonzero(np.bincount(self.system, minlength=shape[0]))
        asked = np.flatnonzero(np.bincount(self.task, minlength=shape[1]))
        return ScoreMatrix(
            protocol=self.protocol,
            metric=self.metric,
            systems=tuple(self.systems[s] for s in present),
            tasks=tuple(self.tasks[t] for t in asked),
            values=means[np.ix_(present, asked)],
        )


class ScoreMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """One metric: `values[S, T]` is the mean over samples and repeats of what was scored, NaN where nothing was."""

    protocol: str
    metric: str
    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats


def read_scores(runs: list[Path]) -> pa.Table:
    """The score rows of `runs`, one after the other, with all columns of this version.

    Raises UsageError for a folder without scores.parquet.
    """
    tables = []
    for run in runs:
        try:
            tables.append(with_bounds(pq.read_table(run / "scores.parquet")))
        except (OSError, pa.ArrowException) as error:
            raise UsageError(
                f"{run}: not a finished run: scores.parquet cannot be read ({error}); pass a run's folder"
            ) from error
    return pa.concat_tables(tables, promote_options="default")


def read_matrices(scores: pa.Table) -> list[ScoreMatrix]:
    """Every metric of `scores`, in order of protocol and first appearance."""
    return [rows.matrix() for rows in metric_rows(scores)]


def metric_rows(scores: pa.Table) -> list[MetricRows]:
    """The rows of every metric of `scores`, in order of protocol and first appearance."""
    systems, system = codes(scores["system"])
    tasks, task = codes(scores["task_id"])
    kinds, kind = codes(pc.binary_join_element_wise(scores["protocol"], scores["metric"], "\n"))
    reasons, reason = codes(pc.fill_null(scores["reason"], ""))
    samples, repeats = (scores[name].to_numpy().astype(np.int64) for name in ("sample", "repeat"))
    answer = samples * (repeats.max(initial=0) + 1) + repeats
    figures = {name: scores[of].to_numpy() for name, of in _FIGURES.items()}
    order = np.argsort(kind, kind="stable")
    ends = np.searchsorted(kind[order], np.arange(len(kinds) + 1))
    found = []
    for number, name in enumerate(kinds):
        rows = order[ends[number] : ends[number + 1]]
        protocol, _, metric = name.partition("\n")
        found.append(
            MetricRows(
                protocol=protocol,
                metric=metric,
                systems=systems,
                tasks=tasks,
                reasons=reasons,
                system=system[rows],
                task=task[rows],
                reason=reason[rows],
                answer=answer[rows],
                **{name: values[rows] for name, values in figures.items()},
            )
        )
    return sorted(found, key=lambda one: one.protocol)


_FIGURES = {"values": "value", "low": "low", "high": "high"}


def values_of(matrix: ScoreMatrix, systems: Sequence[str], tasks: Sequence[str]) -> Floats:
    """The values of `matrix` for other `systems` and `tasks`, float64[S, T], NaN where it has none."""
    rows = {name: row for row, name in enumerate(matrix.systems)}
    columns = {name: column for column, name in enumerate(matrix.tasks)}
    row = np.array([rows.get(name, -1) for name in systems], np.int64)
    column = np.array([columns.get(name, -1) for name in tasks], np.int64)
    known = (row >= 0)[:, None] & (column >= 0)
    return np.where(known, matrix.values[np.ix_(row, column)], np.nan)


def codes(column: pa.ChunkedArray) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Sorted distinct values, and each row's place among them."""
    encoded = pc.dictionary_encode(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    return [names[i] for i in order], place[encoded.indices.to_numpy()]


def figure(value: float) -> float | None:
    """A kernel's `value`, or None if it is NaN (undefined)."""
    return None if np.isnan(value) else float(value) + 0.0  # no negative zero
