"""Tables as Markdown."""

import re
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.rendering.sections import sections_of

__all__ = ["leaderboard_markdown", "markdown_table", "rich_markdown"]

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
_SPACES = re.compile(r"\s+")


def leaderboard_markdown(board: Leaderboard) -> str:
    """Every table of the leaderboard as Markdown, with its notes and how it was made."""
    lines = ["# Leaderboard", ""]
    lines += [f"- {_escaped(note)}" for note in board.notes]
    for section in sections_of(board):
        lines += ["", f"## {_escaped(section.title)}", "", _escaped(section.lead)]
        for table in section.tables:
            lines += ["", f"### {_escaped(table.title)}", ""]
            lines += [_escaped(table.note), ""] if table.note else []
            lines.append(markdown_table(table.columns, [[cell.text for cell in row] for row in table.rows]))
    lines += ["", "## How it was made", ""]
    for source in board.sources:
        prompts = ", ".join(f"{name} {digest}" for name, digest in source.prompts.items())
        lines += [
            f"- Run {_escaped(source.run)}, {source.began}: `{_coded(source.command)}`",
            *(f"  - judge {_escaped(judge.line)}" for judge in source.judges_used),
            f"  - repeats {source.repeats}, seed {source.seed}",
            f"  - versions {_escaped(', '.join(f'{name} {of}' for name, of in source.versions.items()))}",
            f"  - prompts {_escaped(prompts)}",
        ]
    return "\n".join(lines) + "\n"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, its text escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell if at == 1 else _escaped(cell) for cell in line) + " |"
        for at, line in enumerate(lines)
    )


def rich_markdown(table: Table, said: str = "") -> str:
    """A terminal table in Markdown, its title, its caption and a sentence around it; lines within a cell are joined."""
    columns = [_plain(column.header) for column in table.columns]
    rows = zip(*(map(_plain, column.cells) for column in table.columns), strict=True)
    parts = [
        None if table.title is None else f"### {_escaped(_plain(table.title))}",
        markdown_table(columns, rows),
        None if table.caption is None else _escaped(_plain(table.caption)),
        _escaped(said) if said else None,
    ]
    return "\n\n".join(part for part in parts if part is not None) + "\n"


def _plain(text: object) -> str:
    return Text.from_markup(str(text)).plain


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _SPACES.sub(" ", text))


def _coded(text: str) -> str:
    return _SPACES.sub(" ", text).replace("`", "'")
