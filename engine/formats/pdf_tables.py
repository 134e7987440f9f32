"""The tables of a PDF's page: which of its lines stand in the cells of one.

A PDF has no tables, only signs and drawings. Where rules are drawn across and upright, each cell is what they enclose.
Elsewhere columns are divided by space in which no row has a sign, and rows are known by their order: signs come cell by
cell, so that a row begins where a line of the first column stands below all lines before it, and all lines after it do
too.
"""

import itertools
import re
import statistics
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import msgspec

__all__ = ["APART", "LARGER", "Drawing", "Line", "Sign", "Table", "foot_of", "size_of", "with_tables"]

LARGER = 1.12  # times the usual size of the text: a heading's
APART = 1.5  # sizes of a sign between the feet of two lines, at most, within a paragraph
_GAP = 0.7  # sizes of a sign between two columns, at least
_HIGHER = 0.5  # sizes of a sign that another line stands higher, at least
_THIN = 3.0  # points: rules are no thicker, but longer, and are one where they are no further apart
_RULES = 1_000  # of a page, in each direction
_WIDTHS = 50  # of a page, that tables may have
_MARKER = re.compile(r"[^\w\s]{0,2}\d{0,3}(?:\.\d{1,3}){0,4}[^\w\s]{0,2}")  # of a list's item


class Sign(msgspec.Struct):
    """A sign of a page, with its place in points, its size, and the address that it leads to."""

    text: str
    left: float
    right: float
    foot: float
    top: float
    size: float
    is_bold: bool
    url: str = ""


Line = list[Sign]


class Drawing(msgspec.Struct, frozen=True):
    """The place of a drawing in points, and whether it is an area without an outline."""

    left: float
    foot: float
    right: float
    top: float
    is_area: bool


_Span = tuple[float, float]
_Rule = tuple[float, float, float]
"""Where a rule lies across its direction, and from where to where along it."""


class Table(msgspec.Struct, frozen=True):
    """Rows of cells, each with its lines. All rows have as many cells. `is_open`: the page's end cuts the last row."""

    rows: list[list[list[Line]]]
    is_open: bool = False


_Place = tuple[int, int, Table]
"""The first line of a table, the line after it, and the table."""


class _Band(msgspec.Struct, frozen=True):
    """The lines from `begin` to before `end`: the spans that their signs cover, and the highest and lowest foot."""

    begin: int
    end: int
    spans: list[_Span]
    high: float
    low: float


def size_of(line: Line) -> float:
    """The usual size of a line's signs."""
    return round(statistics.median(sign.size for sign in line), 1)


def foot_of(line: Line) -> float:
    """Where a line's signs usually stand."""
    return statistics.median(sign.foot for sign in line)


def with_tables(lines: Sequence[Line], drawings: Sequence[Drawing]) -> list[Line | Table]:
    """The lines of a page in their order, those of a table replaced by it."""
    found: list[Line | Table] = []
    done = 0
    for begin, end, table in _ruled(lines, drawings):
        found += [*_with_unruled(lines[done:begin]), table]
        done = end
    return found + _with_unruled(lines[done:])


def _with_unruled(lines: Sequence[Line]) -> list[Line | Table]:
    found: list[Line | Table] = []
    done = 0
    for begin, end, table in _in_columns(lines, _apart(lines)):
        found += [*lines[done:begin], table]
        done = end
    return [*found, *lines[done:]]


def _ruled(lines: Sequence[Line], drawings: Sequence[Drawing]) -> list[_Place]:
    """The tables that are drawn as grids, in the order of their lines."""
    across, upright = _rules(drawings)
    found: list[_Place] = []
    for left, right, heights in _of_one_width(across):
        columns = [rule for rule in upright if left + _THIN < rule[0] < right - _THIN]
        edges = [left, *(place for place, *_ in columns), right]
        rows = [rule for rule in across if all(_is_near(end, edges) for end in rule[1:])]
        # The end of a page may cut a row, which then has no rule below or above.
        ends = [
            end for rule in columns if rule[1] <= heights[-1] and rule[2] >= heights[0] for end in rule[1:]
        ]
        limits = [height for height, *_ in _whole([(one, left, right) for one in (*heights, *ends)])]
        bands = _between(lines, left, right, limits)
        for is_crossed, group in itertools.groupby(bands, partial(_crosses, columns)):
            places = _in_grid(lines, list(group), rows, columns) if is_crossed else ()
            found += [new for new in places if all(new[1] <= old[0] or old[1] <= new[0] for old in found)]
    return sorted(found, key=lambda place: place[0])


def _is_near(place: float, ordered: Sequence[float]) -> bool:
    at = bisect(ordered, place - _THIN)
    return at < len(ordered) and ordered[at] <= place + _THIN


def _rules(drawings: Sequence[Drawing]) -> tuple[list[_Rule], list[_Rule]]:
    """The rules across the page and the upright ones, edges of outlines among them."""
    across: list[_Rule] = []
    upright: list[_Rule] = []
    for one in drawings:
        wide, high = one.right - one.left, one.top - one.foot
        if one.is_area and min(wide, high) > _THIN:
            continue
        if wide > _THIN:
            heights = ((one.foot + one.top) / 2,) if high <= _THIN else (one.foot, one.top)
            across += [(height, one.left, one.right) for height in heights]
        if high > _THIN:
            places = ((one.left + one.right) / 2,) if wide <= _THIN else (one.left, one.right)
            upright += [(place, one.foot, one.top) for place in places]
    return _whole(across), _whole(upright)


def _whole(pieces: list[_Rule]) -> list[_Rule]:
    """Rules in order, those that touch as one."""
    levels: list[list[_Rule]] = []
    for piece in sorted(pieces)[:_RULES]:
        if levels and piece[0] - levels[-1][0][0] <= _THIN:
            levels[-1].append(piece)
        else:
            levels.append([piece])
    return [
        (level[0][0], *span) for level in levels for span in _merged((piece[1:] for piece in level), _THIN)
    ]


def _merged(spans: Iterable[_Span], gap: float) -> list[_Span]:
    """Spans in order, those no further apart than `gap` as one."""
    merged: list[_Span] = []
    for begin, end in sorted(spans):
        if merged and begin - merged[-1][1] <= gap:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def _of_one_width(across: Sequence[_Rule]) -> list[tuple[float, float, list[float]]]:
    """Left, right and heights, from low to high, of rules of about the same ends."""
    groups: list[tuple[float, float, list[float]]] = []
    for height, begin, end in across:
        for left, right, heights in groups:
            if abs(left - begin) <= _THIN and abs(right - end) <= _THIN:
                heights.append(height)
                break
        else:
            groups.append((begin, end, [height]))
    return [group for group in groups if len(group[2]) > 1][:_WIDTHS]


def _between(lines: Sequence[Line], left: float, right: float, heights: Sequence[float]) -> list[_Band]:
    """The lines between each two rules."""

    def number(line: Line) -> int:
        """Of the space that a line stands in; 0 outside of them."""
        place = bisect(heights, _middle(line))
        is_inside = all(left - _THIN < sign.left and sign.right < right + _THIN for sign in _shown(line))
        return place % len(heights) if is_inside else 0

    numbers = itertools.groupby(range(len(lines)), lambda at: number(lines[at]))
    groups = [list(group) for place, group in numbers if place]
    return [_band(lines, group[0], group[-1] + 1) for group in groups]


def _apart(lines: Sequence[Line]) -> list[_Band]:
    """Lines in groups that are further apart than lines are, above the one before, or below a heading."""
    bands: list[_Band] = []
    begin, high, low = 0, 0.0, 0.0
    for at, line in enumerate(lines):
        foot, size = foot_of(line), size_of(line)
        is_apart = foot < low - APART * size or foot > high + _HIGHER * size
        if at > begin and (is_apart or size_of(lines[at - 1]) > LARGER * size):
            bands.append(_band(lines, begin, at))
            begin = at
        high = foot if at == begin else max(foot, high)
        low = foot if at == begin else min(foot, low)
    return [*bands, _band(lines, begin, len(lines))] if lines else []


def _band(lines: Sequence[Line], begin: int, end: int) -> _Band:
    here = lines[begin:end]
    feet = [foot_of(line) for line in here]
    signs = [sign for line in here for sign in _shown(line)]
    spans = _merged(((sign.left, sign.right) for sign in signs), _GAP * size_of(signs))
    return _Band(begin, end, spans, max(feet), min(feet))


def _shown(line: Line) -> Line:
    return [sign for sign in line if not sign.text.isspace()]


def _middle(line: Line) -> float:
    return foot_of(line) + size_of(line) / 2


def _crosses(upright: Sequence[_Rule], band: _Band) -> bool:
    return any(foot <= band.low + _THIN and band.high <= top for _, foot, top in upright)


def _in_grid(
    lines: Sequence[Line], bands: Sequence[_Band], across: Sequence[_Rule], upright: Sequence[_Rule]
) -> Iterator[_Place]:
    """The table whose cells are what rules enclose, however many rows and columns they span."""
    if len(bands) < 2 or any(one.end != other.begin for one, other in itertools.pairwise(bands)):
        return
    begin, end = bands[0].begin, bands[-1].end
    cells: dict[tuple[float, float], list[Line]] = {}
    for line in lines[begin:end]:
        middle = _middle(line)
        for column, piece in _divided(line, _dividers(upright, middle)):
            at = (piece[0].left + piece[0].right) / 2
            rows = _dividers(across, at)
            row = min((height for height in rows if height > middle), default=float("inf"))
            cells.setdefault((row, column), []).append(piece)
    heights = sorted({row for row, _ in cells}, reverse=True)
    places = sorted({column for _, column in cells})
    if len(heights) > 1 and len(places) > 1:
        is_open = all(height > bands[-1].low for height, *_ in across)
        yield begin, end, Table([[cells.get((row, at), []) for at in places] for row in heights], is_open)


def _dividers(rules: Sequence[_Rule], at: float) -> list[float]:
    """Where the rules lie that pass `at`, in order."""
    return [place for place, begin, end in rules if begin - _THIN <= at <= end + _THIN]


def _divided(line: Line, dividers: Sequence[float]) -> list[tuple[float, Line]]:
    """The pieces of a line between `dividers`, each with the one left of it; a blank stays with the sign before it."""
    pieces: list[tuple[float, Line]] = []
    for sign in line:
        place = bisect(dividers, (sign.left + sign.right) / 2)
        left = dividers[place - 1] if place else float("-inf")
        if not sign.text.isspace() and (not pieces or pieces[-1][0] != left):
            pieces.append((left, []))
        pieces[-1][1].append(sign)
    return pieces


def _in_columns(lines: Sequence[Line], bands: Sequence[_Band]) -> Iterator[_Place]:
    """The tables whose columns are parted by space alone."""
    run: list[_Band] = []
    columns: list[_Span] = []
    for band in bands:
        if run:
            shared = _merged([*columns, *band.spans], _GAP * size_of(lines[run[0].begin]))
            is_next = run[-1].end == band.begin and band.high < run[-1].low
            if is_next and len(band.spans) > 1 and len(shared) > 1:
                run, columns = [*run, band], shared
                continue
            yield from _table(lines, run, columns)
        run, columns = ([band], band.spans) if len(band.spans) > 1 else ([], [])
    if run:
        yield from _table(lines, run, columns)


def _table(lines: Sequence[Line], run: Sequence[_Band], columns: Sequence[_Span]) -> Iterator[_Place]:
    """The table that the lines of `run` are, if they are one and no list."""
    dividers = [(one[1] + other[0]) / 2 for one, other in itertools.pairwise(columns)]
    rows = [row for band in run for row in _rows(lines[band.begin : band.end], dividers)]
    firsts = ("".join(sign.text for line in row[0] for sign in line).strip() for row in rows)
    is_list = len(columns) == 2 and all(_MARKER.fullmatch(first) for first in firsts)
    if len(rows) > 1 and not is_list:
        yield run[0].begin, run[-1].end, Table(rows)


def _rows(lines: Sequence[Line], dividers: Sequence[float]) -> Iterator[list[list[Line]]]:
    """The rows of lines that come cell by cell: one begins in the first column, below all before it."""
    feet = [foot_of(line) for line in lines]
    highest = list(itertools.accumulate(reversed(feet), max))[::-1]  # of a line and those after it
    row: list[list[Line]] = []
    low = 0.0
    for line, foot, high in zip(lines, feet, highest, strict=True):
        pieces = _divided(line, dividers)
        is_below = high < low - _HIGHER * size_of(line)
        if not row or (is_below and pieces[0][0] == float("-inf")):
            if row:
                yield row
            row, low = [[] for _ in range(len(dividers) + 1)], foot
        low = min(low, foot)
        for left, piece in pieces:
            row[bisect(dividers, left)].append(piece)
    yield row
