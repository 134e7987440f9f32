"""What was asked of each part of the project, and what the kept results say: the first table of the book.

A goal of goals.json either names rows of a kept result, whose figure is then read from there, or the tests that show
it. A goal that is not reached says why.
"""

from pathlib import Path

import msgspec

from benchmarks.timing import Row

__all__ = ["Goal", "goals", "table"]

FILE = Path(__file__).parent / "goals.json"
Found = dict[str, list[Row]]


class Goal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`asked` of `part`, in a few words.

    `rows` is the name of a row of `benchmark`, or what the names of several contain; of several, the worst counts.
    `peer` is the one of their peers that is meant. `ratio` says that their ratio counts and not our own figure.
    Without `benchmark`, `shown` says what was measured elsewhere or which tests hold it. `short` is why a goal is
    not reached.
    """

    part: str
    asked: str
    benchmark: str = ""
    rows: str = ""
    peer: str = ""
    ratio: bool = False
    at_least: float | None = None
    at_most: float | None = None
    shown: str = ""
    short: str = ""

    def measured(self, found: Found) -> float | None:
        """The worst figure among the rows of this goal; None if the results kept have none."""
        known = found.get(self.benchmark, [])
        rows = [row for row in known if row.name == self.rows] or [
            row for row in known if self.rows in row.name
        ]
        if self.peer:
            rows = [row for row in rows if row.peer_name == self.peer]
        figures = [row.ratio if self.ratio else row.ours for row in rows]
        told = [figure for figure in figures if figure is not None]
        if not told:
            return None
        return min(told) if self.at_most is None else max(told)

    def is_reached(self, found: Found) -> bool:
        """Whether the figure is in its bounds, or what shows it is no figure."""
        if not self.benchmark:
            return not self.short
        figure = self.measured(found)
        return (
            figure is not None
            and (self.at_least is None or figure >= self.at_least)
            and (self.at_most is None or figure <= self.at_most)
        )

    def verdict(self, found: Found) -> str:
        """Empty if it is reached; a quick run has smaller problems, so that some are not measured by it."""
        if self.is_reached(found):
            return ""
        if self.benchmark and self.measured(found) is None:
            return "not measured"
        return f"short: {self.short}"


def goals() -> list[Goal]:
    """All goals, by part."""
    return msgspec.json.decode(FILE.read_bytes(), type=list[Goal])


def table(asked: list[Goal], found: Found) -> list[str]:
    """One line each, in Markdown."""
    lines = ["| part | asked | measured | by | |", "|---|---|---:|---|---|"]
    for goal in asked:
        figure = goal.measured(found) if goal.benchmark else None
        measured = "" if figure is None else f"{figure:.3g}"
        by = f"`{goal.benchmark}`: {goal.rows}" if goal.benchmark else goal.shown
        lines.append(f"| {goal.part} | {goal.asked} | {measured} | {by} | {goal.verdict(found)} |")
    return lines
