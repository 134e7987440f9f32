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

__all__ = ["ScoreMatrix", "codes", "figure", "read_matrices", "read_scores", "values_of"]

Floats = npt.NDArray[np.float64]


class ScoreMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """One metric: `values[S, T]` is the mean over samples and repeats of what was scored, NaN where nothing was.

    `rows`, `scored` int64[S] count score rows; `unscored[s]` counts those without a value by reason.
    A pooled metric has `denominators[S, T]`; its `values` are the numerators.
    """

    protocol: str
    metric: str
    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats
    rows: npt.NDArray[np.int64]
    scored: npt.NDArray[np.int64]
    unscored: tuple[dict[str, int], ...]
    denominators: Floats | None = None


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
    systems, system = codes(scores["system"])
    tasks, task = codes(scores["task_id"])
    kinds, kind = codes(pc.binary_join_element_wise(scores["protocol"], scores["metric"], "\n"))
    reasons, reason = codes(pc.fill_null(scores["reason"], ""))
    values = scores["value"].to_numpy()
    order = np.argsort(kind, kind="stable")
    ends = np.searchsorted(kind[order], np.arange(len(kinds) + 1))
    found = []
    for number, name in enumerate(kinds):
        rows = order[ends[number] : ends[number + 1]]
        protocol, _, metric = name.partition("\n")
        found.append(
            _matrix(
                protocol,
                metric,
                systems,
                tasks,
                reasons,
                system[rows],
                task[rows],
                reason[rows],
                values[rows],
            )
        )
    return sorted(found, key=lambda matrix: matrix.protocol)


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


def _matrix(
    protocol: str,
    metric: str,
    systems: list[str],
    tasks: list[str],
    reasons: list[str],
    system: npt.NDArray[np.int64],
    task: npt.NDArray[np.int64],
    reason: npt.NDArray[np.int64],
    values: Floats,
) -> ScoreMatrix:
    scored = ~np.isnan(values)
    shape = (len(systems), len(tasks))
    cell = system * shape[1] + task
    count = np.bincount(cell[scored], minlength=shape[0] * shape[1])
    total = np.bincount(cell[scored], weights=values[scored], minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore"):
        means = (total / count).reshape(shape)
    present = np.flatnonzero(np.bincount(system, minlength=shape[0]))
    asked = np.flatnonzero(np.bincount(task, minlength=shape[1]))
    missing = np.bincount(
        system[~scored] * len(reasons) + reason[~scored], minlength=shape[0] * len(reasons)
    ).reshape(shape[0], len(reasons))
    return ScoreMatrix(
        protocol=protocol,
        metric=metric,
        systems=tuple(systems[s] for s in present),
        tasks=tuple(tasks[t] for t in asked),
        values=means[np.ix_(present, asked)],
        rows=np.bincount(system, minlength=shape[0])[present],
        scored=np.bincount(system[scored], minlength=shape[0])[present],
        unscored=tuple({reasons[r]: int(missing[s, r]) for r in np.flatnonzero(missing[s])} for s in present),
    )
