"""Tables as Markdown, and a leaderboard made of them."""

import re
from collections.abc import Iterable, Sequence

from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.tables.sections import (
    answers_table,
    lengths_table,
    overrides_table,
    sections_of,
    systems_table,
    unread_table,
)
from adjudge.engine.tables.table import Table

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
_SPACES = re.compile(r"\s+")


def leaderboard_markdown(board: Leaderboard) -> str:
    """Every table of the leaderboard as Markdown, with its notes and how it was made."""
    lines = ["# Leaderboard", ""]
    lines += [f"- {escaped(note)}" for note in board.notes]
    if (unread := unread_table(board)) is not None:
        lines += ["", as_markdown(unread).rstrip("\n")]
    for section in sections_of(board):
        lines += ["", f"## {escaped(section.title)}", "", escaped(section.lead)]
        for table in section.tables:
            lines += ["", as_markdown(table).rstrip("\n")]
    for found in (answers_table(board), lengths_table(board), systems_table(board), overrides_table(board)):
        lines += [] if found is None else ["", as_markdown(found).rstrip("\n")]
    lines += ["", "## How it was made", ""]
    for source in board.sources:
        prompts = ", ".join(f"{name} {digest}" for name, digest in source.prompts.items())
        lines += [
            f"- Run {escaped(source.run)}, {source.began}: `{_coded(source.command)}`",
            *(f"  - judge {escaped(judge.line)}" for judge in source.judges_used),
            f"  - repeats {source.repeats}, seed {source.seed}",
            f"  - versions {escaped(', '.join(f'{name} {of}' for name, of in source.versions.items()))}",
            f"  - prompts {escaped(prompts)}",
        ]
    return "\n".join(lines) + "\n"


def _coded(text: str) -> str:
    return " ".join(text.split()).replace("`", "'")


def as_markdown(table: Table, said: str = "") -> str:
    """A table with its title and note above, and what is said underneath; lines within a cell are joined."""
    drawn = table.shown
    rows = ([cell.text for cell in row] for row in drawn.rows)
    parts = (
        f"### {escaped(table.title)}" if table.title else "",
        escaped(table.note),
        markdown_table([column.name for column in drawn.columns], rows),
        escaped("\n".join(table.said)),
        escaped(said),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, its text escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell if at == 1 else escaped(cell) for cell in line) + " |"
        for at, line in enumerate(lines)
    )


def escaped(text: str) -> str:
    """Text in one line, as Markdown shows it."""
    return _SPECIAL.sub(r"\\\1", _SPACES.sub(" ", text))
