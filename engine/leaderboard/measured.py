"""A metric with its score rows: what any choice of its tasks gives."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from adjudge.engine.leaderboard.selection import Filled, Integers, Selection, fill, fill_ratio
from adjudge.engine.records.matrices import MetricRows
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["Known", "Measured", "measured"]

Known = Mapping[tuple[str, str], Metric]
"""Metrics by protocol and name, in the order in which protocols declare them."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of a protocol, its rows, its judge, and the systems and tasks that it is expected of.

    A metric that is pooled from two others has their rows, and theirs are its `parts`.
    """

    protocol: str
    metric: Metric
    judge: str
    among: Selection
    rows: tuple[MetricRows, ...]
    parts: tuple[Metric, ...] = ()

    @property
    def name(self) -> tuple[str, str]:
        """Protocol and metric."""
        return self.protocol, self.metric.name

    def filled(self) -> Filled:
        """The metric over all its tasks."""
        return self._filled(self.among, None)

    def within(self, tasks: Collection[str], expected: Integers) -> Filled | None:
        """The metric over those of its tasks that are in `tasks`, None if there are none.

        `expected` is that of all its tasks: as many samples are due in a part of them.
        """
        among = self.among.within(tasks)
        return self._filled(among, expected) if among.tasks else None

    def _filled(self, among: Selection, expected: Integers | None) -> Filled:
        if not self.parts:
            return fill(self.rows[0], self.metric, among, self.metric.lower_is_better, expected)
        over, below = self.parts
        return fill_ratio((self.rows[0], self.rows[1]), (self.metric, over, below), among, expected)


def measured(
    rows: Sequence[MetricRows],
    known: Known,
    among: Mapping[str, Selection],
    judge_of: Callable[[str], str],
) -> Iterator[Measured]:
    """Every metric with rows, then the pooled ones, which have none of their own. `judge_of` names a judge."""
    found = {(one.protocol, one.metric): one for one in rows}
    for name, one in found.items():
        metric = known.get(name, Metric(name=one.metric))
        own = among[one.protocol].of(one, everywhere=name in known and metric.everywhere)
        yield Measured(
            protocol=one.protocol, metric=metric, judge=judge_of(one.protocol), among=own, rows=(one,)
        )
    for (protocol, _), metric in known.items():
        if metric.ratio is None or (protocol, metric.ratio[0]) not in found:
            continue
        names = [(protocol, part) for part in metric.ratio]
        over, below = (found[name] for name in names)
        shared = among[protocol].of(over, everywhere=True).both(among[protocol].of(below, everywhere=True))
        yield Measured(
            protocol=protocol,
            metric=metric,
            judge=judge_of(protocol),
            among=shared,
            rows=(over, below),
            parts=tuple(known[name] for name in names),
        )
