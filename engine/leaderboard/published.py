"""Published figures to set beside one's own."""

import csv
import math
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.engine.errors import UsageError
from adjudge.engine.records.matrices import figure
from adjudge.scoring.kernels.agreement.correlations import correlations

__all__ = ["Published", "PublishedAgreement", "agreement_with", "read_published"]

_NAMES = ("system", "model")


class Published(msgspec.Struct, frozen=True):
    """A published figure, in the units in which the metric is displayed (47.1 for an `overall` of 0.471)."""

    system: str
    metric: str
    value: float


class PublishedAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of one's own values with published ones, over the `n` systems in both; None if undefined."""

    n: int
    tau: float | None
    rho: float | None
    pearson: float | None
    mean_difference: float | None

    @property
    def line(self) -> str:
        """The figures in one line."""
        named = {"Kendall's tau": self.tau, "Spearman's rho": self.rho, "Pearson's r": self.pearson}
        figures = {**named, "mean difference": self.mean_difference}
        shown = (f"{name} {'-' if value is None else f'{value:.2f}'}" for name, value in figures.items())
        return f"{self.n} systems in both; {', '.join(shown)}"


def read_published(file: str | Path) -> tuple[Published, ...]:
    """The figures of a CSV file. Raises UsageError for an unreadable or invalid file.

    Either one line per figure with the columns `system`, `metric` and `value`, or one line per system with one column
    per metric; the system's column may be called `model`. Cells that are empty or `-` are left out, and so are columns
    without any number (a link, a licence); any other cell must be a number.
    """
    path = Path(file)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file_:
            rows = list(csv.DictReader(file_))
    except (OSError, UnicodeError, csv.Error) as error:
        raise UsageError(f"published: {path} cannot be read: {error}") from error
    columns = [name for name in (rows[0] if rows else {}) if name]
    named = next((name for name in columns if name.strip().lower() in _NAMES), None)
    if named is None:
        raise UsageError(
            f"published: {path}: no column is called system or model; name the column of systems so"
        )
    if {"metric", "value"} <= set(columns):
        figures = [(line, row[named], row["metric"], row["value"]) for line, row in enumerate(rows, 2)]
    else:
        metrics = [
            one for one in columns if one != named and any(_number(row[one]) is not None for row in rows)
        ]
        figures = [(line, row[named], one, row[one]) for line, row in enumerate(rows, 2) for one in metrics]
    found = []
    for line, system, metric, text in figures:
        value = _number(text)
        if value is None and text and text.strip() not in ("", "-"):
            raise UsageError(
                f"published: {path}:{line}: {metric}: {text!r} is not a number; leave the cell empty or write -"
            )
        if system and metric and value is not None:
            found.append(Published(system.strip(), metric.strip(), value))
    if not found:
        raise UsageError(f"published: {path}: no figures; write the columns system, metric and value")
    for (system, metric), several in groupby(sorted(found, key=_name), _name):
        if len({one.value for one in several}) > 1:
            raise UsageError(f"published: {path}: {system!r} has several values of {metric}")
    return tuple(found)


def _name(one: Published) -> tuple[str, str]:
    return one.system, one.metric


def agreement_with(own: dict[str, float], published: dict[str, float]) -> PublishedAgreement:
    """How `own` values agree with `published` ones in the same units, by system."""
    both = sorted(own.keys() & published.keys())
    values = np.array([[own[name] for name in both], [published[name] for name in both]], np.float64)
    if len(both) < 2:
        difference = float(values[0, 0] - values[1, 0]) if both else None
        return PublishedAgreement(n=len(both), tau=None, rho=None, pearson=None, mean_difference=difference)
    found = correlations(values)
    return PublishedAgreement(
        n=len(both),
        tau=_coefficient(found.kendall),
        rho=_coefficient(found.spearman),
        pearson=_coefficient(found.pearson),
        mean_difference=float((values[0] - values[1]).mean()),
    )


def _number(text: str | None) -> float | None:
    try:
        value = float((text or "").strip().rstrip("%"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _coefficient(values: npt.NDArray[np.float64] | None) -> float | None:
    return None if values is None else figure(values[0, 1])
