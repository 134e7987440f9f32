"""What the viewer's pages share: the frame around them, long texts, tables of rows, and bars and plots.

Tables are filtered, sorted and paged here, or by the page's own script where the page holds every row. Bars show
values, differences from a middle and stacked verdicts; a plot shows two runs as points. All are in percent.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from adjudge.engine.tables.cells import number
from adjudge.engine.tables.page import render
from adjudge.engine.viewer.data.query import ListQuery, address
from adjudge.judges.plural import plural
from adjudge.scoring.contract.scorecard import Metric

PART_CHARS = 100_000


class Frame(msgspec.Struct, frozen=True):
    """The frame of a run's pages: the run's name and judge, and the address of the other run, if there is one.

    `shelf` is the address of the list of runs that this one is in, if it was opened from one; that list's own page has
    no `run`.

    A page shows `rows` rows of a table at once. A `still` page is a separate file without a server behind it; without
    `sources` it holds only passages of the pages that were judged. Of a run that has not finished, `state` says how it
    stands, and `headline` how far it is.
    """

    run: str
    judge: str
    other: str = ""
    shelf: str = ""
    rows: int = 100
    still: bool = False
    sources: bool = True
    state: str = ""
    headline: str = ""

    @property
    def places(self) -> list[tuple[str, str]]:
        """The pages that the header of every page leads to, by text and address."""
        if not self.run:
            return [("Runs", self.shelf)]
        places = [("Systems", "./"), ("Tasks", "tasks"), ("Leaderboard", "leaderboard"), ("Search", "search")]
        if self.other:
            places += [("Differences", "differences"), ("The other run", self.other)]
        if self.shelf:
            places.append(("All runs", self.shelf))
        return [(text, to if to in (self.other, self.shelf) else address(to)) for text, to in places]

    def show(
        self,
        template: str,
        title: str,
        *,
        crumbs: Sequence[tuple[str, str]] = (),
        words: str = "",
        here: str = "",
        **values: object,
    ) -> str:
        """The page that `template`, which extends base.html.jinja, makes of `values`.

        `crumbs` are (text, address) of the pages above it, `words` stand in the search field, and `here` is the address
        of the place in the header that it belongs to.
        """
        return render(
            template,
            __package__,
            frame=self,
            address=address,
            title=title,
            crumbs=crumbs,
            words=words,
            here=address(here) if here else "",
            **values,
        )


def part_of(text: str, part: int) -> tuple[int, int]:
    """Where part number `part` of a long text begins and ends; the last part if there are fewer."""
    last = max(1, -(-len(text) // PART_CHARS))
    start = (min(part, last) - 1) * PART_CHARS
    return start, min(start + PART_CHARS, len(text))


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
            return f"{self.found:,} of {plural(self.total, self.noun)}"
        if self.found == len(self.rows):
            return plural(self.total, self.noun)
        shown = f"{self.first:,} to {self.last:,}" if self.last >= self.first else "none"
        return f"{shown} of {plural(self.found, self.noun)}"


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


class Bar(msgspec.Struct, frozen=True):
    """A bar from `start`, `width` long; `others` is where a line is drawn across it."""

    start: float
    width: float
    others: float | None = None


def writer(metric: Metric, values: Iterable[float | None]) -> Callable[[float | None], str]:
    """What writes `values` of `metric`: counts as whole numbers, all others with its decimals."""
    counts = metric.best is None or metric.ratio is not None
    if counts and all(value is None or float(value).is_integer() for value in values):
        return _count
    return partial(number, scale=1.0 if metric.ratio else metric.scale, decimals=metric.decimals)


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


class Ends(msgspec.Struct, frozen=True):
    """The ends between which bars are drawn."""

    low: float
    high: float

    @classmethod
    def of(cls, metric: Metric, values: Iterable[float | None]) -> "Ends":
        """The ends of `metric`; where it has no best value, the highest of `values` and 0."""
        present = [value for value in values if value is not None]
        ends = [metric.worst, *([metric.best] if metric.best is not None else [*present, 0.0])]
        return cls(min(ends), max(ends))

    def at(self, value: float) -> float:
        """Where `value` is drawn."""
        if self.high <= self.low:
            return 0.0
        share = (value / 2 - self.low / 2) / (
            self.high / 2 - self.low / 2
        )  # halves: the range itself may overflow
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def bar(self, value: float | None, others: float | None = None) -> Bar | None:
        """The bar of `value`, from the lower end or from 0 where that is between the ends."""
        if value is None:
            return None
        origin, end = self.at(0.0), self.at(value)
        line = None if others is None else self.at(others)
        return Bar(min(origin, end), round(abs(end - origin), 2), line)

    @classmethod
    def around(cls, values: Sequence[float]) -> "tuple[Ends, list[float]]":
        """Round ends around `values`, and at most seven round values from one end to the other."""
        low, high = min(values), max(values)
        apart = high - low
        most = max(abs(low), abs(high))
        if most * 1e-9 < apart < math.inf and apart > 1e-300:
            step = 10.0 ** math.floor(math.log10(apart))
        else:
            step = most or 1.0
        while math.ceil(high / step) - math.floor(low / step) > 6:
            step *= 2
        first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
        return cls(first * step, last * step), [place * step for place in range(first, last + 1)]


def differences(values: Sequence[float | None]) -> list[Bar | None]:
    """The bars of differences: from the middle, to the right where positive, the largest half the width."""
    most = max((abs(value) for value in values if value is not None), default=0.0)
    return [None if value is None else _difference(value / most if most else 0.0) for value in values]


def _difference(share: float) -> Bar:
    length = round(50 * abs(share), 2)
    return Bar(50.0 if share >= 0 else 50.0 - length, length)


_POINTS = 2_000


class Scatter(msgspec.Struct, frozen=True):
    """One value against another on equal axes: `points` are (x, y from above, address, words), `ticks` (place, text).

    `left_out` counts the points that there was no room for.
    """

    points: tuple[tuple[float, float, str, str], ...]
    ticks: tuple[tuple[float, str], ...]
    left_out: int

    @classmethod
    def of(cls, rows: Sequence[Row], metric: Metric) -> "Scatter":
        """The values of `rows` here against there, those that come first drawn if there are too many."""
        both = [row for row in rows if row["difference"] is not None]
        values = [row[name] for row in both for name in ("value", "other")]
        ends, round_ones = Ends.around(values or [0.0, 1.0])
        points = tuple(
            (
                ends.at(row["value"]),
                round(100 - ends.at(row["other"]), 2),
                row["to"],
                f"{row['system']}, {row['task_id']}: {row['value_text']} here, {row['other_text']} there",
            )
            for row in both[:_POINTS]
        )
        ticks = tuple((ends.at(value), f"{value * metric.scale:.4g}") for value in round_ones)
        return cls(points, ticks, max(0, len(both) - _POINTS))
