"""Tables for people: on a terminal, and as Markdown.

A terminal whose text may come from anybody: no report, name or error can steer it.

A table for a terminal: on a narrow one its secondary columns give way, and their names are said.

Tables as Markdown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from adjudge.engine.config.redaction import printable

__all__ = ["Column", "Sheet", "Terminal", "escaped", "markdown_table", "rich_markdown"]


class Terminal(Console):
    """A console that shows control characters as replacement characters; its own colours and movements stay."""

    def on_broken_pipe(self) -> None:
        """Raise the error: rich itself would exit with 1."""
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of `renderable`, their texts made printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


_EDGES = 3  # characters that a column takes beside its text
_FOLDED = 48  # characters that a column of words is given before others are left out for it


class Column(msgspec.Struct, frozen=True):
    """A column of figures, or of `words`, which may go over several lines.

    One with a `spare` above 0 may be left out, the highest number first.
    """

    name: str
    words: bool = False
    spare: int = 0


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """A table as it would be on a terminal of any width; `blocks` of rows are apart by a line.

    `elsewhere` says where to read what is left out, `said` stands underneath.
    """

    title: str = ""
    columns: tuple[Column, ...]
    blocks: tuple[tuple[tuple[str, ...], ...], ...]
    elsewhere: str = "--json"
    said: tuple[str, ...] = ()

    def table(self, width: int | None = None) -> Table:
        """The whole table, or the columns that fit into `width` characters and those that are never left out."""
        kept = range(len(self.columns)) if width is None else self._fitting(width)
        table = Table(
            title=escape(self.title) or None,
            title_justify="left",
            title_style="bold",
            caption_justify="left",
            caption=escape("\n".join([*self._left_out(kept, width), *self.said])) or None,
        )
        for place in kept:
            column = self.columns[place]
            table.add_column(
                escape(column.name),
                justify="left" if column.words else "right",
                no_wrap=not column.words,
                overflow="fold",
            )
        for rows in self.blocks:
            for row in rows:
                table.add_row(*(escape(row[place]) for place in kept))
            table.add_section()
        return table

    def _fitting(self, width: int) -> Sequence[int]:
        kept = list(range(len(self.columns)))
        widths = [self._width(place) for place in kept]
        spares = sorted((place for place in kept if self.columns[place].spare), key=self._order)
        while spares and sum(widths[place] + _EDGES for place in kept) + 1 > width:
            kept.remove(spares.pop())
        return kept

    def _order(self, place: int) -> tuple[int, int]:
        return self.columns[place].spare, place

    def _width(self, place: int) -> int:
        cells = (self.columns[place].name, *(row[place] for rows in self.blocks for row in rows))
        width = max(cell_len(line) for cell in cells for line in cell.splitlines() or [""])
        return min(width, _FOLDED) if self.columns[place].words else width

    def _left_out(self, kept: Sequence[int], width: int | None) -> list[str]:
        lost = [column.name for place, column in enumerate(self.columns) if place not in kept]
        return [f"not shown at {width} columns: {', '.join(lost)}; see {self.elsewhere}"] if lost else []


_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
_SPACES = re.compile(r"\s+")


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, its text escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell if at == 1 else escaped(cell) for cell in line) + " |"
        for at, line in enumerate(lines)
    )


def rich_markdown(table: Table, said: str = "") -> str:
    """A terminal table in Markdown, its title, its caption and a sentence around it; lines within a cell are joined."""
    columns = [_plain(column.header) for column in table.columns]
    rows = zip(*(map(_plain, column.cells) for column in table.columns), strict=True)
    parts = [
        None if table.title is None else f"### {escaped(_plain(table.title))}",
        markdown_table(columns, rows),
        None if table.caption is None else escaped(_plain(table.caption)),
        escaped(said) if said else None,
    ]
    return "\n\n".join(part for part in parts if part is not None) + "\n"


def _plain(text: object) -> str:
    return Text.from_markup(str(text)).plain


def escaped(text: str) -> str:
    """Text in one line, as Markdown shows it."""
    return _SPECIAL.sub(r"\\\1", _SPACES.sub(" ", text))
