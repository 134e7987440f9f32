"""Cells and tables of text, the same wherever they are drawn.

How a score is written, wherever it is shown.

How figures are written: scores with two decimals, shares, correlations and p values with three.

Names of systems for small places: shared beginnings dropped, cut in the middle, and no two that look equal.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from adjudge.engine.runs.board import MetricBoard, Standing

__all__ = [
    "Cell",
    "Kind",
    "Table",
    "bar_span",
    "bounds",
    "bracketed",
    "chance",
    "coefficient",
    "labels",
    "number",
    "over_interval",
    "score",
    "span",
    "visible",
]


def number(value: float | None, scale: float = 1.0, decimals: int = 2) -> str:
    """`value` times `scale`, a hyphen for None."""
    return "-" if value is None else f"{value * scale:.{decimals}f}"


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


_PARTS = re.compile(r"[-_/:. ]")  # where a beginning that all names share may end
_SPACES = re.compile(r"^ | $|(?<= ) ")
_JOINERS = "\u200c\u200d"  # which belong to scripts and emoji
_SHORTEST = 8
_ROUNDS = 3  # in which a label that looks like another one may grow to twice its length
_LONGEST = 300


def visible(name: str) -> str:
    """`name` in one line, with what nobody sees shown: control and formatting characters, and spaces that collapse."""
    shown = "".join(_shown(character) for character in name[:_LONGEST])
    more = f"… ({len(name):,} characters)" if len(name) > _LONGEST else ""
    return _SPACES.sub("␣", shown) + more


def labels(names: Sequence[str], letters: int) -> dict[str, str]:
    """Every different one of `names` with its label, of about so many `letters` where that tells them apart.

    Names are dropped what all of them begin with, then cut in the middle. Labels that still look equal grow, and in the
    end are numbered.
    """
    full = {name: visible(name) for name in dict.fromkeys(names)}
    start = _shared(full.values()) if any(len(one) > letters for one in full.values()) else 0
    rest = {name: f"…{one[start:]}" if start else one for name, one in full.items()}
    found = {name: _cut(one, letters) for name, one in rest.items()}
    for round_ in range(1, _ROUNDS + 1):
        alike = _alike(found)
        if not alike:
            return found
        found |= {name: _cut(rest[name], letters * 2**round_) for name in alike}
    seen: dict[str, int] = {}
    for name in sorted(_alike(found)):
        number = seen[_look(found[name])] = seen.get(_look(found[name]), 0) + 1
        found[name] = f"{found[name]} (no. {number})"
    return found


def _shown(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and character not in _JOINERS:
        return f"‹{ord(character):X}›"
    return " " if kind == "Zs" and character != " " else character


def _shared(shown: Iterable[str]) -> int:
    """The length of what all of `shown` begin with, up to a place where names are divided; each keeps something."""
    first, last = min(shown := [*shown]), max(shown)
    if first == last:
        return 0
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    ends = [found.end() for found in _PARTS.finditer(first[:same]) if found.end() < min(map(len, shown))]
    return ends[-1] if ends else 0


def _cut(name: str, letters: int) -> str:
    """`name`, with its middle left out if it is longer than `letters`. Ends tell versions apart and keep more."""
    most = max(letters, _SHORTEST)
    if len(name) <= most:
        return name
    head = (most - 1) * 2 // 5
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"


def _alike(found: dict[str, str]) -> list[str]:
    """The names whose labels look like another's."""
    by_look: dict[str, list[str]] = {}
    for name, label in found.items():
        by_look.setdefault(_look(label), []).append(name)
    return [name for names in by_look.values() if len(names) > 1 for name in names]


def _look(label: str) -> str:
    """What labels that look equal have in common; letters of other scripts count as the Latin ones they look like."""
    return unicodedata.normalize("NFKC", label).translate(_DOUBLES)


_CYRILLIC = str.maketrans("АВЕКМНОРСТХаеорсухіјѕ", "ABEKMHOPCTXaeopcyxijs")
_GREEK = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo")
_DOUBLES = _CYRILLIC | _GREEK


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
    return Cell(number(row.value, metric.scale, metric.decimals), row.value, metric.metric)


def bounds(row: Standing, metric: MetricBoard) -> Cell:
    """What a system's value could become, sorted by its lower end; empty where nothing is missing."""
    if not row.open:
        return Cell("-", short="")
    low, high = (number(bound, metric.scale, metric.decimals) for bound in (row.bound_low, row.bound_high))
    text = f"{low} to {high}" if row.bound_high is not None else f"{low} or more"
    return Cell(text, row.bound_low, short=f"({text})")
