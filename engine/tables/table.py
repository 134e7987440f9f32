"""A table: columns, and rows of cells with their text, numbers, bars and badges.

Any table is drawn by any drawer: for a terminal (`terminal`), as HTML (`page` and its templates), as Markdown
(`markdown`), and as CSV or Parquet (`files`).

Names of systems for small places: shared beginnings dropped, cut in the middle, and no two that look equal.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec


class Badge(msgspec.Struct, frozen=True):
    """A few words with an explanation. `kind` is its class (base.css), `unseen` is read out before the text."""

    text: str
    tip: str = ""
    kind: str = "plain"
    unseen: str = ""


class Bar(msgspec.Struct, frozen=True):
    """A value, its interval and its bounds in per cent of the column's axis, and in words."""

    low: float
    high: float
    value: float
    least: float
    most: float
    words: str


class Cell(msgspec.Struct, frozen=True):
    """Text, the number it is sorted by, if any, and the metric and protocol whose value it is, if it is one.

    `short` is what a terminal shows instead of `text`, where that differs; an interval's follows its value. `tip` is
    what a page explains it with.
    """

    text: str
    sort: float | None = None
    metric: str = ""
    protocol: str = ""
    short: str | None = None
    tip: str = ""
    bar: Bar | None = None
    badges: tuple[Badge, ...] = ()


class Column(msgspec.Struct, frozen=True):
    """A column of figures, or of `words`, which may go over several lines. `kind` says what its cells are.

    On a narrow terminal one with a `spare` above 0 may be left out, the highest number first, and the cells of one that
    is `joined` follow those of the column before it. A page explains a column with `tip`, sorts it the `best` end
    first and names its bars' ends (`axis`). Only a page has columns that are not `shown`: readers choose them.
    """

    name: str
    kind: str = ""
    words: bool = False
    spare: int = 0
    joined: bool = False
    tip: str = ""
    best: Literal["ascending", "descending"] = "ascending"
    axis: tuple[str, ...] = ()
    shown: bool = True

    @property
    def key(self) -> str:
        """What a page's address calls it."""
        return f"m.{self.name}" if self.kind in ("value", "beside") else self.kind


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table; the column called `system` names rows. Each row has one cell per column.

    `blocks` of rows are apart by a line. `note` is read before the table, `said` stands underneath, and `elsewhere`
    says where to read what a narrow terminal leaves out. `badges` are about the whole table.
    """

    kind: str = ""
    title: str = ""
    note: str = ""
    columns: tuple[Column, ...]
    blocks: tuple[tuple[tuple[Cell, ...], ...], ...]
    badges: tuple[Badge, ...] = ()
    elsewhere: str = "--json"
    said: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        title: str = "",
        columns: Iterable[Column],
        blocks: Iterable[Iterable[Sequence[str]]],
        said: Iterable[str] = (),
    ) -> "Table":
        """A table of text alone."""
        return cls(
            title=title,
            columns=tuple(columns),
            blocks=tuple(tuple(tuple(map(Cell, row)) for row in rows) for rows in blocks),
            said=tuple(said),
        )

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows of all blocks."""
        return tuple(row for block in self.blocks for row in block)

    @property
    def head(self) -> int:
        """The place of the column that names rows."""
        return next((place for place, column in enumerate(self.columns) if column.name == "system"), 0)

    @property
    def shown(self) -> "Table":
        """The table without what only a page has."""
        return self.arranged([place for place, column in enumerate(self.columns) if column.shown])

    def without(self, *kinds: str) -> "Table":
        """All columns but those of these kinds."""
        return self.arranged([place for place, one in enumerate(self.columns) if one.kind not in kinds])

    def arranged(self, places: Sequence[int]) -> "Table":
        """The columns at `places`, in this order."""
        return msgspec.structs.replace(
            self,
            columns=tuple(self.columns[place] for place in places),
            blocks=tuple(tuple(tuple(row[at] for at in places) for row in rows) for rows in self.blocks),
        )


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
