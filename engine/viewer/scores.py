"""A run's score rows, read as they are looked at: row groups that hold nothing of what is asked for are not opened."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from adjudge.engine.config import ConfigError

__all__ = ["ScoreRows", "joined", "pooled"]

_REPORT = ("system", "task_id", "sample", "repeat")


class ScoreRows:
    """The rows of a scores.parquet. Raises ConfigError for a folder without one."""

    def __init__(self, run: Path) -> None:
        try:
            self._rows = ds.dataset(run / "scores.parquet", format="parquet")
        except (OSError, pa.ArrowException) as error:
            raise ConfigError(f"{run} is no finished run: scores.parquet cannot be read ({error})") from error

    def select(self, columns: list[str], **equal: str | int) -> pa.Table:
        """`columns` of the rows whose columns equal what is given, in the file's order."""
        wanted = pc.scalar(True)
        for name, value in equal.items():
            wanted = wanted & (pc.field(name) == pc.scalar(value))
        return self._rows.to_table(columns=columns, filter=wanted)

    def of_metric(self, protocol: str, metric: str, **equal: str | int) -> pa.Table:
        """Rows of one metric: which report, value, reason."""
        columns = [*_REPORT, "value", "reason"]
        return self.select(columns, protocol=protocol, metric=metric, **equal)


def joined(here: pa.Table, there: pa.Table) -> pa.Table:
    """Rows of one metric in two runs, report by report: value, reason, other, other_reason and their difference."""
    other = there.rename_columns([*_REPORT, "other", "other_reason"])
    table = here.join(other, list(_REPORT), join_type="full outer")
    difference = pc.subtract(table["value"], table["other"])
    return table.append_column("difference", difference)


def pooled(rows: pa.Table, denominators: pa.Table | None) -> tuple[float | None, int]:
    """A system's value as the leaderboard has it, and the number of tasks it is from.

    Means over a task's samples and repeats, then over tasks; of a pooled metric the sum of those over the sum of its
    `denominators`'.
    """
    numerators = _by_task(rows)
    if denominators is None:
        return (sum(numerators.values()) / len(numerators), len(numerators)) if numerators else (None, 0)
    below = _by_task(denominators)
    both = numerators.keys() & below.keys()
    total = sum(below[task] for task in both)
    return (sum(numerators[task] for task in both) / total if total else None), len(both)


def _by_task(rows: pa.Table) -> dict[str, float]:
    means = rows.filter(pc.is_valid(rows["value"])).group_by("task_id").aggregate([("value", "mean")])
    return dict(zip(means["task_id"].to_pylist(), means["value_mean"].to_pylist(), strict=True))
