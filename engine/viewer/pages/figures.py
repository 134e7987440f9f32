"""What is drawn: values as bars, differences from a middle, verdicts as a stack, two runs as points; all in percent."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from adjudge.engine.rendering.numbers import number
from adjudge.engine.viewer.pages.listing import Row
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["Bar", "Ends", "Scatter", "differences", "writer"]


class Bar(msgspec.Struct, frozen=True):
    """A bar from `start`, `width` long; `others` is where a line is drawn across it.

    Where there is a `range` (start, width), that is drawn, and where `end` is in it.
    """

    start: float
    width: float
    others: float | None = None
    range: tuple[float, float] | None = None
    end: float = 0.0


def writer(metric: Metric, values: Iterable[float | None]) -> Callable[[float | None], str]:
    """What writes `values` of `metric`: counts as whole numbers, all others with two decimals."""
    counts = metric.best is None or metric.ratio is not None
    if counts and all(value is None or float(value).is_integer() for value in values):
        return _count
    return partial(number, scale=1.0 if metric.ratio else metric.scale)


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


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
        share = (value / 2 - self.low / 2) / (
            self.high / 2 - self.low / 2
        )  # halves: the range itself may overflow
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def bar(self, value: float | None, others: float | None = None) -> Bar | None:
        """The bar of `value`, from the lower end or from 0 where that is between the ends."""
        if value is None:
            return None
        origin, end = self.at(0.0), self.at(value)
        line = None if others is None else self.at(others)
        return Bar(min(origin, end), round(abs(end - origin), 2), line, end=end)

    @classmethod
    def around(cls, values: Sequence[float]) -> "tuple[Ends, list[float]]":
        """Round ends around `values`, and at most seven round values from one end to the other."""
        low, high = min(values), max(values)
        apart = high - low
        most = max(abs(low), abs(high))
        if most * 1e-9 < apart < math.inf and apart > 1e-300:
            step = 10.0 ** math.floor(math.log10(apart))
        else:
            step = most or 1.0
        while math.ceil(high / step) - math.floor(low / step) > 6:
            step *= 2
        first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
        return cls(first * step, last * step), [place * step for place in range(first, last + 1)]


def differences(values: Sequence[float | None]) -> list[Bar | None]:
    """The bars of differences: from the middle, to the right where positive, the largest half the width."""
    most = max((abs(value) for value in values if value is not None), default=0.0)
    return [None if value is None else _difference(value / most if most else 0.0) for value in values]


def _difference(share: float) -> Bar:
    length = round(50 * abs(share), 2)
    return Bar(50.0 if share >= 0 else 50.0 - length, length)


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
        values = [row[name] for row in both for name in ("value", "other")]
        ends, round_ones = Ends.around(values or [0.0, 1.0])
        points = tuple(
            (
                ends.at(row["value"]),
                round(100 - ends.at(row["other"]), 2),
                row["to"],
                f"{row['system']}, {row['task_id']}: {row['value_text']} here, {row['other_text']} there",
            )
            for row in both[:_POINTS]
        )
        ticks = tuple((ends.at(value), f"{value * metric.scale:.4g}") for value in round_ones)
        return cls(points, ticks, max(0, len(both) - _POINTS))
