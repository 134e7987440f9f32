"""The contract of columns, tests/papers.yaml, and the tables of docs/reproduce.md, which come from it.

`python -m tests.papers` writes the tables anew.
"""

import re
from pathlib import Path

import msgspec

__all__ = ["PAGE", "PAPERS", "Column", "Line", "rewritten"]

PAGE = Path(__file__).parent.parent / "docs/reproduce.md"
_HEADINGS = ("table or figure", "shows", "columns", "command", "needs", "state")
_TABLE = re.compile(r"^\| table or figure \|.*\n(?:\|.*\n?)*", re.MULTILINE)


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column that a command prints: its name, its decimals (None: as many as it needs) and what it is.

    `figure` is the column's first figure, on the data of `tests.paper_folders`.
    """

    name: str
    decimals: int | None = None
    figure: str
    what: str = msgspec.field(name="is")


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of a paper's table on the page: a command with what it prints, or `none` or `missing` and why."""

    at: str
    shows: str
    command: str = ""
    needs: str = ""
    by: str = ""
    columns: tuple[Column, ...] = ()
    prints: tuple[str, ...] = ()
    none: str = ""
    missing: str = ""

    @property
    def state(self) -> str:
        """Whether a command prints it; empty for a command that only comes before another."""
        if self.missing:
            return f"missing: {self.missing}"
        return f"none: {self.none}" if self.none else "printed" if self.columns else ""

    @property
    def cells(self) -> tuple[str, ...]:
        """Its cells on the page."""
        columns = " ".join(f"`{column.name}`" for column in self.columns)
        command = f"`{self.command}`" if self.command else ""
        return self.at, self.shows, columns, command, self.needs, self.state


PAPERS = msgspec.yaml.decode(
    (Path(__file__).parent / "papers.yaml").read_bytes(), type=dict[str, tuple[Line, ...]]
)
"""The lines of each paper, by its heading on the page."""


def rewritten(page: str) -> str:
    """The page with the tables of the contract."""
    papers = iter(PAPERS.values())
    return _TABLE.sub(lambda found: _table(next(papers)), page)


def _table(lines: tuple[Line, ...]) -> str:
    ruled = "|".join("---" for _ in _HEADINGS)
    rows = ["| " + " | ".join(cells) + " |" for cells in (_HEADINGS, *(line.cells for line in lines))]
    return (
        "\n".join([rows[0].replace("|  |", "| |"), f"|{ruled}|", *(_closed(row) for row in rows[1:])]) + "\n"
    )


def _closed(row: str) -> str:
    return re.sub(r"(?<=\|) +(?=\|)", " ", row)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
