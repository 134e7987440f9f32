"""A table for a terminal: on a narrow one its secondary columns give way, and their names are said."""

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

__all__ = ["Column", "Sheet"]

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
