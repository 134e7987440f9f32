"""How a score is written, wherever it is shown."""

__all__ = ["number"]


def number(value: float | None, scale: float = 1.0) -> str:
    """`value` times `scale`, a hyphen for None."""
    return "-" if value is None else f"{value * scale:.2f}"
