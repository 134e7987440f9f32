"""Cells and tables of text, the same for a page and for Markdown."""

from typing import Literal

import msgspec

from adjudge.engine.leaderboard.board import MetricBoard, Standing

__all__ = ["Cell", "Table", "number", "score", "span"]

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
    """Text, what it is sorted by where that is a number, and the metric whose value it is, if it is one."""

    text: str
    sort: float | None = None
    metric: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table. The column called `system` names rows."""

    kind: Kind
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def number(value: float | None, scale: float = 1.0) -> str:
    """`value` times `scale`, a hyphen for None."""
    return "-" if value is None else f"{value * scale:.2f}"


def span(low: float | None, high: float | None, scale: float = 1.0) -> Cell:
    """An interval, sorted by its lower end."""
    if low is None or high is None:
        return Cell("-")
    return Cell(f"{number(low, scale)} to {number(high, scale)}", low)


def score(row: Standing | None, metric: MetricBoard) -> Cell:
    """A system's value of `metric`."""
    if row is None or row.value is None:
        return Cell("-")
    return Cell(number(row.value, metric.scale), row.value, metric.metric)
