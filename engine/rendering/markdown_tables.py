"""Tables as Markdown."""

import re
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

__all__ = ["escaped", "markdown_table", "rich_markdown"]

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
