"""A run's score rows, read on demand: row groups without a wanted row are not opened."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adjudge.engine.errors import UsageError

__all__ = ["RowsSoFar", "ScoreRows", "joined"]

_REPORT = ("system", "task_id", "sample", "repeat")


class ScoreRows:
    """The rows of a scores.parquet. Raises UsageError for a folder without one."""

    def __init__(self, run: Path) -> None:
        self._path = run / "scores.parquet"
        try:
            pq.read_metadata(self._path)
        except (OSError, pa.ArrowException) as error:
            raise UsageError(
                f"{run}: scores.parquet cannot be read ({error}); name the folder of a finished run"
            ) from error

    def select(self, columns: list[str], **equal: str | int) -> pa.Table:
        """`columns` of the rows whose values equal those in `equal`, in the file's order."""
        with pq.ParquetFile(self._path) as file:
            places = {file.schema_arrow.names[i]: i for i in range(len(file.schema_arrow.names))}
            kept = [
                _matching(file.read_row_group(group, columns=[*{*columns, *equal}]), equal).select(columns)
                for group in range(file.num_row_groups)
                if all(_may_hold(file, group, places[name], value) for name, value in equal.items())
            ]
        tables = [table for table in kept if len(table)] or kept[:1]
        return pa.concat_tables(tables) if tables else self._empty(columns)

    def _empty(self, columns: list[str]) -> pa.Table:
        return pq.read_schema(self._path).empty_table().select(columns)

    def of_metric(self, protocol: str, metric: str, **equal: str | int) -> pa.Table:
        """Rows of one metric: the report's identity, value and reason."""
        columns = [*_REPORT, "value", "reason"]
        return self.select(columns, protocol=protocol, metric=metric, **equal)

    def by_task(self, protocol: str, metric: str) -> dict[str, dict[str, float]]:
        """Each task's systems and their means over samples and repeats; those without a value are not there."""
        found = self.select(["system", "task_id", "value"], protocol=protocol, metric=metric)
        valid = found.filter(pc.is_valid(found["value"]))
        # Threads would add values up, and order systems, in a way of their own each time.
        means = valid.group_by(["task_id", "system"], use_threads=False).aggregate([("value", "mean")])
        tasks: dict[str, dict[str, float]] = {}
        for task, system, value in zip(
            *(means[name].to_pylist() for name in ("task_id", "system", "value_mean")), strict=True
        ):
            tasks.setdefault(task, {})[system] = value
        return tasks


class RowsSoFar(ScoreRows):
    """The score rows of a run that has not finished, as `rows` gives them."""

    def __init__(self, rows: Callable[[], pa.Table]) -> None:
        self._rows = rows

    def select(self, columns: list[str], **equal: str | int) -> pa.Table:
        """`columns` of the rows whose values equal those in `equal`."""
        return _matching(self._rows(), equal).select(columns)


def joined(here: pa.Table, there: pa.Table) -> pa.Table:
    """Rows of one metric in two runs, report by report: value, reason, other, other_reason and their difference."""
    other = there.rename_columns([*_REPORT, "other", "other_reason"])
    table = here.join(other, list(_REPORT), join_type="full outer")
    difference = pc.subtract(table["value"], table["other"])
    return table.append_column("difference", difference)


def _matching(table: pa.Table, equal: dict[str, str | int]) -> pa.Table:
    """The rows of `table` whose values equal those in `equal`.

    Compared with a scalar of the column itself: to make a new one, pyarrow would import pandas if it is installed.
    """
    for name, value in equal.items():
        kinds = pc.unique(table[name])
        held = kinds.to_pylist()
        if value not in held:
            return table.slice(0, 0)
        table = table.filter(pc.equal(table[name], kinds[held.index(value)]))
    return table


def _may_hold(file: pq.ParquetFile, group: int, column: int, value: str | int) -> bool:
    """Whether a row group may hold `value`, by the minimum and maximum of its column if they are recorded."""
    found = file.metadata.row_group(group).column(column).statistics
    return found is None or not found.has_min_max or found.min <= value <= found.max
