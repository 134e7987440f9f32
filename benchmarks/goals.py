"""The table of floors: figures that the kept results must reach, and properties that tests check (goals.json).

These floors are fixed. floors.json holds others, of every ratio, which rise with the measurements (`benchmarks.book`).
"""

from pathlib import Path

import msgspec

from benchmarks.kept import Result
from benchmarks.timing import Row

__all__ = ["Check", "Goal", "Goals", "goals", "table"]

FILE = Path(__file__).parent / "goals.json"
Found = dict[str, Result]


class Goal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure and its floor.

    `rows` is the name of a row of `benchmark`, or a part of the names of several; of several, the worst counts. `peer`
    selects the rows with this peer. With `ratio` the figure is the ratio, otherwise our own value, in the row's unit.
    Without `benchmark`, `stated` is a figure measured by `command`, and `floor` states what it must reach. `gap` says
    why the figure does not reach its floor.
    """

    name: str
    benchmark: str = ""
    rows: str = ""
    peer: str = ""
    ratio: bool = False
    at_least: float | None = None
    at_most: float | None = None
    stated: str = ""
    floor: str = ""
    command: str = ""
    gap: str = ""

    def measured(self, found: Found) -> float | None:
        """The worst figure among the rows of this goal; None if the kept results have none."""
        figures = [row.ratio if self.ratio else row.ours for row in self._rows(found)]
        known = [figure for figure in figures if figure is not None]
        if not known:
            return None
        return min(known) if self.at_most is None else max(known)

    def is_reached(self, found: Found) -> bool:
        """Whether the figure is within its bounds; without a benchmark, whether no gap is stated."""
        if not self.benchmark:
            return not self.gap
        figure = self.measured(found)
        return (
            figure is not None
            and (self.at_least is None or figure >= self.at_least)
            and (self.at_most is None or figure <= self.at_most)
        )

    def line(self, found: Found) -> str:
        """The goal as a line of the table, in Markdown."""
        if not self.benchmark:
            return f"| {self.name} | {self.stated} | {self.floor} | {self.command} |"
        figure, unit = self.measured(found), self._unit(found)
        measured = "not measured" if figure is None else _written(figure, unit)
        floor = [f"≥ {_written(self.at_least, unit)}"] if self.at_least is not None else []
        floor += [f"≤ {_written(self.at_most, unit)}"] if self.at_most is not None else []
        quick = " --quick" if self.benchmark in found and found[self.benchmark].quick else ""
        command = f"`python -m benchmarks.{self.benchmark}{quick}`: {self.rows}"
        return f"| {self.name} | {measured} | {', '.join(floor)} | {command} |"

    def _rows(self, found: Found) -> list[Row]:
        known = found[self.benchmark].rows if self.benchmark in found else []
        rows = [row for row in known if row.name == self.rows] or [
            row for row in known if self.rows in row.name
        ]
        return [row for row in rows if not self.peer or row.peer_name == self.peer]

    def _unit(self, found: Found) -> str:
        units = {row.unit for row in self._rows(found)}
        return "x" if self.ratio else units.pop() if len(units) == 1 else ""


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A property that has no figure, and the tests that check it."""

    name: str
    command: str


class Goals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All floors and all checks, in the order of the book."""

    floors: list[Goal]
    checks: list[Check]


def goals() -> Goals:
    """What goals.json holds."""
    return msgspec.json.decode(FILE.read_bytes(), type=Goals)


def table(floors: list[Goal], found: Found) -> list[str]:
    """The table of floors in Markdown, one line per goal."""
    return [
        "| name | measured | floor | command |",
        "|---|---:|---:|---|",
        *(goal.line(found) for goal in floors),
    ]


def _written(figure: float, unit: str) -> str:
    value, unit = (figure / 1e9, "GB") if unit == "bytes" else (figure, unit)
    return f"{value:.3g} {unit}".strip()
