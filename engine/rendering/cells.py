"""Cells and tables of text, the same wherever they are drawn."""

from typing import Literal

import msgspec

from adjudge.engine.leaderboard.board import MetricBoard, Standing
from adjudge.engine.rendering.numbers import number

__all__ = ["Cell", "Kind", "Table", "bounds", "score", "span"]

Kind = Literal[
    "standings",
    "metric",
    "people",
    "resolved",
    "groups",
    "ranks",
    "pairs",
    "cost",
    "unscored",
    "noise",
    "published",
    "left out",
    "samples",
]


class Cell(msgspec.Struct, frozen=True):
    """Text, the number it is sorted by, if any, and the metric whose value it is, if it is one.

    `short` is what a terminal shows instead of `text`, where that differs; an interval's follows its value. `tip` is
    what a page explains it with.
    """

    text: str
    sort: float | None = None
    metric: str = ""
    short: str | None = None
    tip: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table. The column called `system` names rows."""

    kind: Kind
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def numeric(self) -> frozenset[int]:
        """The places of the columns that hold numbers."""
        return frozenset(at for row in self.rows for at, cell in enumerate(row) if cell.sort is not None)


def span(low: float | None, high: float | None, scale: float = 1.0) -> Cell:
    """An interval, sorted by its lower end."""
    if low is None or high is None:
        return Cell("-", short="")
    least, most = number(low, scale), number(high, scale)
    return Cell(f"{least} to {most}", low, short=f"[{least}, {most}]")


def score(row: Standing | None, metric: MetricBoard) -> Cell:
    """A system's value of `metric`."""
    if row is None or row.value is None:
        return Cell("-")
    return Cell(number(row.value, metric.scale), row.value, metric.metric)


def bounds(row: Standing, metric: MetricBoard) -> Cell:
    """What a system's value could become, sorted by its lower end; empty where nothing is missing."""
    if not row.open:
        return Cell("-", short="")
    low, high = number(row.bound_low, metric.scale), number(row.bound_high, metric.scale)
    text = f"{low} to {high}" if row.bound_high is not None else f"{low} or more"
    return Cell(text, row.bound_low, short=f"({text})")
