"""Tables as Markdown."""

import re
from collections.abc import Iterable, Sequence

from adjudge.engine.leaderboard import Leaderboard
from adjudge.engine.tables import sections_of

__all__ = ["escaped", "leaderboard_markdown", "markdown_table"]

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
_SPACES = re.compile(r"\s+")


def leaderboard_markdown(board: Leaderboard) -> str:
    """Every table of the leaderboard as Markdown, with its notes and how it was made."""
    lines = ["# Leaderboard", ""]
    lines += [f"- {escaped(note)}" for note in board.notes]
    for section in sections_of(board):
        lines += ["", f"## {escaped(section.protocol)}", "", escaped(section.lead)]
        for table in section.tables:
            lines += ["", f"### {escaped(table.title)}", ""]
            lines += [escaped(table.note), ""] if table.note else []
            lines.append(markdown_table(table.columns, [[cell.text for cell in row] for row in table.rows]))
    lines += ["", "## How it was made", ""]
    for source in board.sources:
        prompts = ", ".join(f"{name} {digest}" for name, digest in source.prompts.items())
        lines += [
            f"- Run {escaped(source.run)}, {source.began}: `{_coded(source.command)}`",
            f"  - judge {escaped(source.judge)} ({escaped(source.fingerprint)}; {escaped(source.sampling)})",
            f"  - repeats {source.repeats}, seed {source.seed}",
            f"  - versions {escaped(', '.join(f'{name} {of}' for name, of in source.versions.items()))}",
            f"  - prompts {escaped(prompts)}",
        ]
    return "\n".join(lines) + "\n"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown has it, its text escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell if at == 1 else escaped(cell) for cell in line) + " |"
        for at, line in enumerate(lines)
    )


def escaped(text: str) -> str:
    """`text` as one line that Markdown takes for nothing but text."""
    return _SPECIAL.sub(r"\\\1", _SPACES.sub(" ", text))


def _coded(text: str) -> str:
    return _SPACES.sub(" ", text).replace("`", "'")
