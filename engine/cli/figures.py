"""How figures are written: scores with two decimals, shares, correlations and p values with three."""

from adjudge.engine.rendering.numbers import number

__all__ = ["bracketed", "chance", "coefficient", "over_interval", "span"]


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
