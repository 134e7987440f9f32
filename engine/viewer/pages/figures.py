"""What is drawn: values as bars, differences from a middle, verdicts as a stack, two runs as points; all in percent."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from adjudge.engine.viewer.pages.frame import verdict_of
from adjudge.engine.viewer.pages.listing import Row
from adjudge.scoring.contract.scorecard import Evidence, Metric

__all__ = ["VERDICTS", "Bar", "Ends", "Scatter", "Verdicts"]

VERDICTS = ("supported", "unsupported", "unknown", "unreachable", "none")


class Bar(msgspec.Struct, frozen=True):
    """A bar from `start`, `width` long; `others` is where a line is drawn across it.

    Where there is a `range` (start, width), that is drawn, and where `end` is in it.
    """

    start: float
    width: float
    others: float | None = None
    range: tuple[float, float] | None = None
    end: float = 0.0


class Ends(msgspec.Struct, frozen=True):
    """The ends between which bars are drawn."""

    low: float
    high: float

    @classmethod
    def of(cls, metric: Metric, values: Iterable[float | None]) -> "Ends":
        """The ends of `metric`; where it has no best value, the highest of `values` and 0."""
        present = [value for value in values if value is not None]
        ends = [metric.worst, *([metric.best] if metric.best is not None else [*present, 0.0])]
        return cls(min(ends), max(ends))

    def at(self, value: float) -> float:
        """Where `value` is drawn."""
        if self.high <= self.low:
            return 0.0
        return round(100 * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0), 2)

    def bar(self, value: float | None, others: float | None = None) -> Bar | None:
        """The bar of `value`, from the lower end or from 0 where that is between the ends."""
        if value is None:
            return None
        origin, end = self.at(0.0), self.at(value)
        line = None if others is None else self.at(others)
        return Bar(min(origin, end), round(abs(end - origin), 2), line, end=end)

    def apart(self, difference: float | None) -> Bar | None:
        """The bar of a difference: from the middle, to the right where it is positive."""
        if difference is None or self.high <= self.low:
            return None
        length = round(50 * min(abs(difference) / (self.high - self.low), 1.0), 2)
        return Bar(50.0 if difference >= 0 else 50.0 - length, length)


class Verdicts(msgspec.Struct, frozen=True):
    """How many lines of evidence have which verdict, in the order of VERDICTS."""

    counts: tuple[int, ...]

    @classmethod
    def of(cls, evidence: Sequence[Evidence]) -> "Verdicts":
        """The verdicts of `evidence`; lines without a verdict or a reason are not counted."""
        found = Counter(verdict_of(line.outcome, line.reason)[1] for line in evidence)
        return cls(tuple(found[kind] for kind in VERDICTS))

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts)

    @property
    def supported(self) -> int:
        """How many are supported."""
        return self.counts[0]

    @property
    def said(self) -> str:
        """In words."""
        kinds = zip(VERDICTS, self.counts, strict=True)
        return ", ".join(
            f"{count:,} {'without a verdict' if kind == 'none' else kind}" for kind, count in kinds if count
        )

    @property
    def parts(self) -> list[tuple[str, float, float]]:
        """(kind, start, width) of each part of the stack."""
        made, start = [], 0
        for kind, count in zip(VERDICTS, self.counts, strict=True):
            if count:
                made.append((kind, round(100 * start / self.total, 2), round(100 * count / self.total, 2)))
            start += count
        return made


_POINTS = 2_000


class Scatter(msgspec.Struct, frozen=True):
    """One value against another on equal axes: `points` are (x, y from above, address, words), `ticks` (place, text).

    `left_out` counts the points that there was no room for.
    """

    points: tuple[tuple[float, float, str, str], ...]
    ticks: tuple[tuple[float, str], ...]
    left_out: int

    @classmethod
    def of(cls, rows: Sequence[Row], metric: Metric) -> "Scatter":
        """The values of `rows` here against there, those that come first drawn if there are too many."""
        both = [row for row in rows if row["difference"] is not None]
        ends = Ends.of(metric, [row[name] for row in both for name in ("value", "other")])
        points = tuple(
            (
                ends.at(row["value"]),
                round(100 - ends.at(row["other"]), 2),
                row["to"],
                f"{row['system']}, {row['task_id']}: {row['value_text']} here, {row['other_text']} there",
            )
            for row in both[:_POINTS]
        )
        span = ends.high - ends.low
        ticks = tuple(
            (100 * share, f"{(ends.low + share * span) * metric.scale:.4g}")
            for share in (0.0, 0.25, 0.5, 0.75, 1.0)
        )
        return cls(points, ticks, max(0, len(both) - _POINTS))
