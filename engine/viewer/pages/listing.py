"""Tables of rows: filtered, sorted and cut into pages here, and by the page's own script where it holds every row."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from adjudge.engine.viewer.data.query import ListQuery, address

__all__ = ["Column", "Head", "Listing", "Row", "natural"]

Row = dict[str, Any]

_DIGITS = re.compile(r"(\d{1,30})")


class Column(msgspec.Struct, frozen=True):
    """A column. One with a `key` is sorted by that field of its rows, the `best` end first."""

    title: str
    key: str = ""
    number: bool = False
    long: bool = False
    low_first: bool = False
    tip: str = ""

    @property
    def style(self) -> str:
        """The class of its cells."""
        return "n" if self.number else "long" if self.long else ""

    @property
    def first(self) -> str:
        """The value of `sort` that the first click asks for: numbers from the highest, texts from A."""
        return f"-{self.key}" if self.number and not self.low_first else self.key


class Head(msgspec.Struct, frozen=True):
    """A column's heading: where it leads, and how the rows are sorted by it now."""

    column: Column
    to: str = ""
    state: str = ""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a table as a page shows them.

    `rows` are those of this page; where all fit (`whole`), those that the filter leaves out are among them with
    `hidden` set, and the script sorts and filters in place. `found` of `total` rows match the filter; `steps` lead to
    the other pages by (text, address, relation); `clear` is the address without the filter.
    """

    heads: tuple[Head, ...]
    rows: tuple[Row, ...]
    noun: str
    found: int
    total: int
    first: int
    whole: bool
    filter: str
    clear: str
    steps: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        rows: Sequence[Row],
        path: str,
        query: ListQuery,
        *,
        at_once: int,
        noun: str,
        words: Callable[[Row], str] | None = None,
    ) -> "Listing":
        """`rows` in their own order or as `query` sorts them, `at_once` a page. `words` is what the filter looks in."""
        wanted = query.filter.casefold() if words is not None else ""
        marked = [
            {**row, "hidden": bool(wanted) and wanted not in _words(words, row)}
            for row in _sorted(rows, query.sort, columns)
        ]
        kept = [row for row in marked if not row["hidden"]]
        whole = len(marked) <= at_once
        start = (query.page - 1) * at_once
        return cls(
            heads=tuple(_head(column, path, query) for column in columns),
            rows=tuple(marked if whole else kept[start : start + at_once]),
            noun=noun,
            found=len(kept),
            total=len(marked),
            first=1 if whole else start + 1,
            whole=whole,
            filter=query.filter if words is not None else "",
            clear=address(path, query, filter="", page=1),
            steps=() if whole else _steps(path, query, -(-len(kept) // at_once)),
        )

    @property
    def last(self) -> int:
        """The number of the last row shown; less than `first` if there is none."""
        return self.first + sum(not row["hidden"] for row in self.rows) - 1

    @property
    def said(self) -> str:
        """How many rows there are, and which of them are shown."""
        if self.found < self.total and self.whole:
            return f"{self.found:,} of {_counted(self.total, self.noun)}"
        if self.found == len(self.rows):
            return _counted(self.total, self.noun)
        shown = f"{self.first:,} to {self.last:,}" if self.last >= self.first else "none"
        return f"{shown} of {_counted(self.found, self.noun)}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _words(words: Callable[[Row], str] | None, row: Row) -> str:
    return "" if words is None else words(row).casefold()


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """The key that sorts names as people do: 2 before 10."""
    parts = enumerate(_DIGITS.split(text.casefold()))
    return tuple((0, int(part)) if place % 2 else (1, part) for place, part in parts if part)


def _sorted(rows: Sequence[Row], sort: str, columns: Sequence[Column]) -> list[Row]:
    """`rows` by the field that `sort` names, if a column has it; rows without a value come last either way."""
    key = sort.removeprefix("-")
    if key not in {column.key for column in columns if column.key}:
        return list(rows)
    present = [row for row in rows if row[key] is not None]
    present.sort(
        key=lambda row: natural(row[key]) if isinstance(row[key], str) else row[key],
        reverse=sort.startswith("-"),
    )
    return present + [row for row in rows if row[key] is None]


def _head(column: Column, path: str, query: ListQuery) -> Head:
    if not column.key:
        return Head(column)
    up, down = query.sort == column.key, query.sort == f"-{column.key}"
    turned = f"-{column.key}" if up else column.key if down else column.first
    to = address(path, query, sort=turned, page=1)
    return Head(column, to, "ascending" if up else "descending" if down else "")


def _steps(path: str, query: ListQuery, pages: int) -> tuple[tuple[str, str, str], ...]:
    steps = (
        ("First", 1, ""),
        ("Previous", query.page - 1, "prev"),
        ("Next", query.page + 1, "next"),
        ("Last", pages, ""),
    )
    return tuple(
        (text, address(path, query, page=page), rel)
        for text, page, rel in steps
        if 1 <= page <= pages and page != query.page
    )
