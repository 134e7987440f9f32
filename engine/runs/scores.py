"""Score rows of runs: as tables, as matrices of systems x tasks, and how much of an unfinished run they are."""

import time
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.record import Due, RunRecord
from adjudge.engine.store.place import Place
from adjudge.engine.store.scorecards import RIVAL, score_table, with_bounds
from adjudge.judges.plural import plural

__all__ = [
    "MetricRows",
    "ScoreMatrix",
    "alone",
    "codes",
    "compared",
    "figure",
    "metric_rows",
    "provisional",
    "read_matrices",
    "read_scores",
    "settled",
    "state_of",
    "told_apart",
    "values_of",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TEXTS = ["protocol", "system", "task_id", "metric", "status", "reason"]
_AS_IT_IS = slice(None)


class MetricRows(msgspec.Struct, frozen=True, kw_only=True):
    """The score rows of one metric: arrays with an element per row.

    `system`, `task` and `reason` are places in `systems`, `tasks` and `reasons`, which all metrics share (""
    where there is none). `sample` numbers the agent's own attempts, `repeat` the judge's. `values` are NaN where
    unscored, `low` and `high` where null; `answered` of `parts` have an answer.
    """

    protocol: str
    metric: str
    systems: list[str]
    tasks: list[str]
    reasons: list[str]
    system: Integers
    task: Integers
    reason: Integers
    sample: Integers
    repeat: Integers
    values: Floats
    low: Floats
    high: Floats
    answered: Integers
    parts: Integers

    def on(self, tasks: Container[str]) -> "MetricRows":
        """The rows on `tasks` alone."""
        kept = np.array([name in tasks for name in self.tasks], np.bool_)[self.task]
        arrays = {
            name: value[kept] for name, value in msgspec.structs.asdict(self).items() if name in _BY_ROW
        }
        return msgspec.structs.replace(self, **arrays)

    def matrix(self, end: Literal["low", "high"] | None = None) -> "ScoreMatrix":
        """The rows as systems x tasks, with all that parts miss at this `end` of the bounds, where there is one."""
        scored = ~np.isnan(self.values)
        values = self.values
        if end is not None:
            bound = self.low if end == "low" else self.high
            values = np.where(scored & ~np.isnan(bound), bound, values)
        shape = (len(self.systems), len(self.tasks))
        cell = (self.system * shape[1] + self.task)[scored]
        count = np.bincount(cell, minlength=shape[0] * shape[1])
        total = np.bincount(cell, weights=values[scored], minlength=shape[0] * shape[1])
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


_BY_ROW = ("system", "task", "reason", "sample", "repeat", "values", "low", "high", "answered", "parts")


class ScoreMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """One metric: `values[S, T]` is the mean over samples and repeats of what was scored, NaN where nothing was."""

    protocol: str
    metric: str
    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats


def read_scores(folder: Path, record: RunRecord) -> pa.Table:
    """The score rows of the run in `folder`, with all columns of this version; texts are dictionary-encoded.

    Those of a run that has not finished are what its store holds by now. Raises UsageError for a folder without
    scores.parquet, StoreError.
    """
    if record.state != "finished":
        return _encoded(score_table(Place.of(record.config.store), record.run))
    try:
        with pq.ParquetFile(folder / "scores.parquet", read_dictionary=_TEXTS) as file:
            return with_bounds(file.read())
    except (OSError, pa.ArrowException) as error:
        raise UsageError(
            f"{folder}: not a finished run: scores.parquet cannot be read ({error}); pass a run's folder"
        ) from error


def _encoded(scores: pa.Table) -> pa.Table:
    for name in _TEXTS:
        scores = scores.set_column(scores.column_names.index(name), name, pc.dictionary_encode(scores[name]))
    return scores


def read_matrices(scores: pa.Table) -> list[ScoreMatrix]:
    """Every metric of `scores`, in order of protocol and metric."""
    return [rows.matrix() for rows in metric_rows(scores)]


def compared(scores: pa.Table) -> pa.Table | None:
    """The rows of comparisons of two systems' reports, their texts plain; None if there are none."""
    if RIVAL not in scores.column_names:
        return None
    rows = scores.filter(pc.is_valid(scores[RIVAL]))
    for name in (*_TEXTS, RIVAL):
        rows = rows.set_column(rows.column_names.index(name), name, pc.cast(rows[name], pa.string()))
    return rows if len(rows) else None


def alone(scores: pa.Table) -> pa.Table:
    """The rows of reports that were judged by themselves."""
    if RIVAL not in scores.column_names:
        return scores
    return scores.filter(pc.is_null(scores[RIVAL])).drop_columns([RIVAL])


def metric_rows(scores: pa.Table) -> list[MetricRows]:
    """The rows of every metric of `scores`, in order of protocol and metric; comparisons are left out."""
    scores = alone(scores)
    kinds, kind = _kinds(scores)
    order = np.argsort(kind, kind="stable")
    ends = np.searchsorted(kind[order], np.arange(len(kinds) + 1))
    del kind
    systems, system = codes(scores["system"], order)
    tasks, task = codes(scores["task_id"], order)
    reasons, reason = codes(pc.fill_null(scores["reason"], ""), order)
    sample, repeat, answered, parts = (
        scores[name].to_numpy()[order].astype(np.int64) for name in ("sample", "repeat", "answered", "parts")
    )
    values = scores["value"].to_numpy()[order]
    # A bound that is the value everywhere takes no memory of its own.
    low, high = (
        values if scores[end].equals(scores["value"]) else scores[end].to_numpy()[order]
        for end in ("low", "high")
    )
    found = []
    for number, (protocol, metric) in enumerate(kinds):
        rows = slice(ends[number], ends[number + 1])
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
                sample=sample[rows],
                repeat=repeat[rows],
                values=values[rows],
                low=low[rows],
                high=high[rows],
                answered=answered[rows],
                parts=parts[rows],
            )
        )
    return found


def _kinds(scores: pa.Table) -> tuple[list[tuple[str, str]], Integers]:
    """The metrics of `scores`, (protocol, metric) in sorted order, and each row's place among them."""
    protocols, protocol = codes(scores["protocol"])
    metrics, metric = codes(scores["metric"])
    found, kind = np.unique(protocol * len(metrics) + metric, return_inverse=True)
    names = [(protocols[one // len(metrics)], metrics[one % len(metrics)]) for one in found.tolist()]
    return names, kind.reshape(-1)  # flat in every numpy 2


def values_of(matrix: ScoreMatrix, systems: Sequence[str], tasks: Sequence[str]) -> Floats:
    """The values of `matrix` for other `systems` and `tasks`, float64[S, T], NaN where it has none."""
    rows = {name: row for row, name in enumerate(matrix.systems)}
    columns = {name: column for column, name in enumerate(matrix.tasks)}
    row = np.array([rows.get(name, -1) for name in systems], np.int64)
    column = np.array([columns.get(name, -1) for name in tasks], np.int64)
    known = (row >= 0)[:, None] & (column >= 0)
    return np.where(known, matrix.values[np.ix_(row, column)], np.nan)


def codes(column: pa.ChunkedArray, order: Integers | slice = _AS_IT_IS) -> tuple[list[str], Integers]:
    """Sorted distinct values, and each row's place among them, in `order`."""
    encoded = pc.dictionary_encode(column).combine_chunks()
    names, at = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()[order]
    used = np.flatnonzero(np.bincount(at, minlength=len(names))).tolist()
    used.sort(key=names.__getitem__)
    place = np.empty(len(names), np.int64)
    place[used] = np.arange(len(used))
    return [names[one] for one in used], place[at]


def figure(value: float) -> float | None:
    """A kernel's `value`, or None if it is NaN (undefined)."""
    return None if np.isnan(value) else float(value) + 0.0  # no negative zero


def told_apart(records: Sequence[RunRecord], tables: Sequence[pa.Table]) -> tuple[list[RunRecord], pa.Table]:
    """The runs in `records` with their score rows, one after the other, recorded systems named as such."""
    pairs = [_marked(*pair) for pair in zip(records, tables, strict=True)]
    return [record for record, _ in pairs], pa.concat_tables(
        [table for _, table in pairs], promote_options="default"
    )


def _marked(record: RunRecord, scores: pa.Table) -> tuple[RunRecord, pa.Table]:
    if not record.recorded:
        return record, scores
    ending = f" (recorded, {record.judge.name})"
    names = pc.cast(scores["system"], pa.string())
    systems = pc.cast(pc.binary_join_element_wise(names, ending, ""), scores["system"].type)
    named = msgspec.structs.replace(
        record,
        systems=[name + ending for name in record.systems],
        spent={name + ending: spent for name, spent in record.spent.items()},
    )
    return named, scores.set_column(scores.column_names.index("system"), "system", systems)


_CARD = ["protocol", "system", "task_id", "sample", "repeat"]


def state_of(record: RunRecord) -> str:
    """How the run stands, in words: at work, stopped and why, or finished."""
    if record.state == "running":
        return "still running"
    if record.state == "finished":
        return "finished"
    at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.ended))
    return f"stopped at {at}: {record.why}; run the same command again to continue"


def provisional(record: RunRecord, scores: pa.Table) -> str:
    """What a reader must know of the score rows of a run that has not finished; "" of one that has."""
    if record.due is None:
        return ""
    return (
        f"provisional: {_cards(scores):,} of {plural(record.due.scorecards, 'scorecard')}; {state_of(record)}"
    )


def settled(record: RunRecord, scores: pa.Table) -> tuple[pa.Table, str]:
    """The rows of tasks that have all their scorecards under a protocol, and what to say of the rest.

    What has not come yet is neither good nor bad: no system gains by being early or late. Comparisons stay as they are.
    Rows of a run that has finished are all there, and nothing is said.
    """
    if record.due is None:
        return scores, ""
    complete = _complete(record.due, record.config.repeats, scores)
    kept = scores.filter(complete)
    tasks = len(pc.unique(alone(kept)["task_id"]))
    on = f"standings are over the {tasks:,} of {plural(len(record.tasks), 'task')} done for every system"
    return kept, f"{provisional(record, scores)}; {on}"


def _cards(scores: pa.Table) -> int:
    """How many scorecards have rows."""
    names = [*_CARD, *([RIVAL] if RIVAL in scores.column_names else [])]
    return len(scores.group_by(names).aggregate([]))


def _complete(due: Due, repeats: int, scores: pa.Table) -> pa.Array:
    """Which rows belong to a task and protocol of which nothing is due any more, or to a comparison."""
    cards = alone(scores).group_by(_CARD).aggregate([]).group_by(["protocol", "task_id"])
    counted = cards.aggregate([("system", "count")]).to_pylist()
    done = {
        (one["protocol"], one["task_id"])
        for one in counted
        if one["system_count"] >= due.tasks.get(one["task_id"], 0) * repeats
    }
    protocols = sorted({protocol for protocol, _ in done})
    kept = pc.is_valid(scores[RIVAL]) if RIVAL in scores.column_names else pa.repeat(False, len(scores))
    for name in protocols:
        tasks = pa.array([task for protocol, task in done if protocol == name], pa.string())
        own = pc.equal(pc.cast(scores["protocol"], pa.string()), name)
        kept = pc.or_(kept, pc.and_(own, pc.is_in(pc.cast(scores["task_id"], pa.string()), tasks)))
    return kept
