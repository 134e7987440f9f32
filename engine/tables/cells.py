"""How figures are written, wherever they are shown: scores with two decimals, shares and p values with three."""

import math

from adjudge.engine.runs.board import MetricBoard, Standing
from adjudge.engine.runs.listed import Headline, ListedRun
from adjudge.engine.tables.table import Cell

__all__ = [
    "bar_span",
    "bounds",
    "bracketed",
    "chance",
    "coefficient",
    "leaders",
    "number",
    "over_interval",
    "rounded",
    "score",
    "span",
]


def number(value: float | None, scale: float = 1.0, decimals: int = 2) -> str:
    """`value` times `scale`, a hyphen for None."""
    return "-" if value is None else f"{value * scale:.{decimals}f}"


def rounded(value: float) -> str:
    """`value` with four digits that count, or as a whole number if it has more."""
    digits = 3 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:,.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def leaders(run: ListedRun) -> list[tuple[str, str, str]]:
    """Of a listed run, the best system by each metric that ranks: the metric, its value and the system."""
    first: dict[str, Headline] = {}
    for each in run.headlines:
        first.setdefault(each.full, each)
    return [
        (name, "-", "not ranked")
        if best.rank is None
        else (name, number(best.value, 1.0, best.decimals), best.system)
        for name, best in first.items()
    ]


def over_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    """A coefficient, and its interval underneath."""
    text = coefficient(value)
    return text if interval is None else f"{text}\n{interval[0]:.3f} to {interval[1]:.3f}"


def coefficient(value: float | None) -> str:
    """A share or correlation, which has no scale."""
    return "-" if value is None else f"{value:.3f}"


def chance(p: float | None) -> str:
    """A p value."""
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def span(low: float | None, high: float | None, scale: float = 1.0, decimals: int = 2) -> str:
    """An interval."""
    if low is None or high is None:
        return "-"
    return f"{number(low, scale, decimals)} to {number(high, scale, decimals)}"


def bracketed(value: float | None, low: float | None, high: float | None, metric: MetricBoard) -> str:
    """A value of `metric`, and its interval in the same line."""
    shown, least, most = (number(one, metric.scale, metric.decimals) for one in (value, low, high))
    return shown if low is None or high is None else f"{shown} [{least}, {most}]"


def bar_span(low: float | None, high: float | None, scale: float = 1.0, decimals: int = 2) -> Cell:
    """An interval, sorted by its lower end."""
    if low is None or high is None:
        return Cell("-", short="")
    least, most = number(low, scale, decimals), number(high, scale, decimals)
    return Cell(f"{least} to {most}", low, short=f"[{least}, {most}]")


def score(row: Standing | None, metric: MetricBoard) -> Cell:
    """A system's value of `metric`."""
    if row is None or row.value is None:
        return Cell("-")
    return Cell(number(row.value, metric.scale, metric.decimals), row.value, metric.metric, metric.protocol)


def bounds(row: Standing, metric: MetricBoard) -> Cell:
    """What a system's value could become, sorted by its lower end; empty where nothing is missing."""
    if not row.open:
        return Cell("-", short="")
    low, high = (number(bound, metric.scale, metric.decimals) for bound in (row.bound_low, row.bound_high))
    text = f"{low} to {high}" if row.bound_high is not None else f"{low} or more"
    return Cell(text, row.bound_low, short=f"({text})")
