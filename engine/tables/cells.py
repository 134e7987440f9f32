"""How figures are written, wherever they are shown: scores with two decimals, shares and p values with three."""

from adjudge.engine.runs.board import MetricBoard, Standing
from adjudge.engine.tables.table import Cell

__all__ = [
    "bar_span",
    "bounds",
    "bracketed",
    "chance",
    "coefficient",
    "number",
    "over_interval",
    "score",
    "span",
]


def number(value: float | None, scale: float = 1.0) -> str:
    """`value` times `scale`, a hyphen for None."""
    return "-" if value is None else f"{value * scale:.2f}"


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


def span(low: float | None, high: float | None, scale: float = 1.0) -> str:
    """An interval."""
    return "-" if low is None or high is None else f"{number(low, scale)} to {number(high, scale)}"


def bracketed(value: float | None, low: float | None, high: float | None, scale: float) -> str:
    """A value, and its interval in the same line."""
    interval = "" if low is None or high is None else f" [{number(low, scale)}, {number(high, scale)}]"
    return f"{number(value, scale)}{interval}"


def bar_span(low: float | None, high: float | None, scale: float = 1.0) -> Cell:
    """An interval, sorted by its lower end."""
    if low is None or high is None:
        return Cell("-", short="")
    least, most = number(low, scale), number(high, scale)
    return Cell(f"{least} to {most}", low, short=f"[{least}, {most}]")


def score(row: Standing | None, metric: MetricBoard) -> Cell:
    """A system's value of `metric`."""
    if row is None or row.value is None:
        return Cell("-")
    return Cell(number(row.value, metric.scale), row.value, metric.metric, metric.protocol)


def bounds(row: Standing, metric: MetricBoard) -> Cell:
    """What a system's value could become, sorted by its lower end; empty where nothing is missing."""
    if not row.open:
        return Cell("-", short="")
    low, high = number(row.bound_low, metric.scale), number(row.bound_high, metric.scale)
    text = f"{low} to {high}" if row.bound_high is not None else f"{low} or more"
    return Cell(text, row.bound_low, short=f"({text})")
