"""Two systems on the same tasks: the numbers that they are ranked by, on the tasks that are scored for both."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from adjudge.engine.config.metrics import Name
from adjudge.engine.runs.scores import MetricRows, ScoreMatrix, metric_rows, values_of
from adjudge.engine.statistics.selection import contributions, worst_end
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["Numbers", "numbers_of", "side_by_side"]

Floats = npt.NDArray[np.float64]

_UNKNOWN = Metric(name="")


class Numbers(msgspec.Struct, frozen=True):
    """A metric's numbers by system and task, what parts miss at its worst; a pooled one's `over` and `below`."""

    over: ScoreMatrix
    below: ScoreMatrix | None = None

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that have it."""
        return self.over.systems

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that have it."""
        return self.over.tasks

    def of(self, system: str, tasks: Sequence[str]) -> Floats:
        """[2, T]: what a system has on `tasks` over what (1 where nothing is pooled), NaN where nothing is scored."""
        over = values_of(self.over, [system], tasks)[0]
        below = np.ones_like(over) if self.below is None else values_of(self.below, [system], tasks)[0]
        return np.stack([over, below])


def numbers_of(scores: pa.Table, metrics: Mapping[str, Iterable[Metric]]) -> dict[Name, Numbers]:
    """The numbers of every metric in score rows, of those pooled from others too."""
    rows = {Name(one.protocol, one.metric): one for one in metric_rows(scores)}
    known = {Name(protocol, one.name): one for protocol, own in metrics.items() for one in own}
    found = {name: Numbers(one.matrix(worst_end(known.get(name, _UNKNOWN)))) for name, one in rows.items()}
    for name, metric in known.items():
        parts = [rows.get(Name(name.protocol, part)) for part in metric.ratio or ()]
        if len(parts) == 2 and parts[0] is not None and parts[1] is not None:
            found[name] = _pooled(parts[0], parts[1], worst_end(metric))
    return found


def _pooled(over: MetricRows, below: MetricRows, end: Literal["low", "high"] | None) -> Numbers:
    other: dict[str | None, Literal["low", "high"]] = {"low": "high", "high": "low"}
    return Numbers(over.matrix(end), below.matrix(other.get(end)))


def side_by_side(first: Floats, second: Floats) -> Floats:
    """[2, T]: what each task contributes to either number (`Numbers.of`), NaN unless it is scored for both."""
    common = ~np.isnan(first + second).any(axis=0)
    return np.concatenate(
        [contributions(np.where(common, one, np.nan)[:1], one[1:]) for one in (first, second)]
    )
