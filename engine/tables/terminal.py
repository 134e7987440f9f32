"""Tables on a terminal: on a narrow one secondary columns give way, and their names are said.

A terminal's text may come from anybody: no report, name or error can steer it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import rich.table
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment

from adjudge.engine.config.redaction import printable
from adjudge.engine.tables.table import Column, Table


class Terminal(Console):
    """A console that shows control characters as replacement characters; its own colours and movements stay.

    A text between colons is no picture: the line 100 of a file is `:100:`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def on_broken_pipe(self) -> None:
        """Raise the error: rich itself would exit with 1."""
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of `renderable`, their texts made printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


_EDGES = 3  # characters that a column takes beside its text
_FOLDED = 48  # characters that a column of words is given before others are left out for it


def on_terminal(table: Table, width: int | None = None) -> rich.table.Table:
    """The whole table, or the columns that fit into `width` characters and those that are never left out."""
    columns, blocks = _joined(table.shown)
    kept = _fitting(columns, blocks, width)
    lost = ", ".join(column.name for place, column in enumerate(columns) if place not in kept)
    said = [f"not shown at {width} columns: {lost}; see {table.elsewhere}"] if lost else []
    drawn = rich.table.Table(
        title=escape(table.title) or None,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        caption=escape("\n".join([*said, *table.said])) or None,
    )
    for place in kept:
        drawn.add_column(
            escape(columns[place].name),
            justify="left" if columns[place].words else "right",
            no_wrap=not columns[place].words,
            overflow="fold",
        )
    for rows in blocks:
        for row in rows:
            drawn.add_row(*(escape(row[place]) for place in kept))
        drawn.add_section()
    return drawn


def _joined(table: Table) -> tuple[list[Column], list[list[list[str]]]]:
    """The columns and texts of a table, those of joined columns in the column before."""
    blocks = []
    for rows in table.blocks:
        block = []
        for row in rows:
            cells: list[str] = []
            for column, cell in zip(table.columns, row, strict=True):
                text = cell.text if cell.short is None else cell.short
                if column.joined:
                    cells[-1] = f"{cells[-1]} {text}".rstrip()
                else:
                    cells.append(text)
            block.append(cells)
        blocks.append(block)
    return [column for column in table.columns if not column.joined], blocks


def _fitting(columns: Sequence[Column], blocks: list[list[list[str]]], width: int | None) -> list[int]:
    """The places of the columns that fit into `width`, and of those that are never left out."""

    def wide(place: int) -> int:
        cells = (columns[place].name, *(row[place] for rows in blocks for row in rows))
        widest = max(cell_len(line) for cell in cells for line in cell.splitlines() or [""])
        return min(widest, _FOLDED) if columns[place].words else widest

    kept = list(range(len(columns)))
    if width is None:
        return kept
    widths = [wide(place) for place in kept]
    spares = sorted((one for one in kept if columns[one].spare), key=lambda one: (columns[one].spare, one))
    while spares and sum(widths[place] + _EDGES for place in kept) + 1 > width:
        kept.remove(spares.pop())
    return kept
