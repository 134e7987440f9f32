"""A leaderboard as Markdown."""

from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.rendering.markdown_tables import escaped, markdown_table
from adjudge.engine.rendering.sections import sections_of

__all__ = ["leaderboard_markdown"]


def leaderboard_markdown(board: Leaderboard) -> str:
    """Every table of the leaderboard as Markdown, with its notes and how it was made."""
    lines = ["# Leaderboard", ""]
    lines += [f"- {escaped(note)}" for note in board.notes]
    for section in sections_of(board):
        lines += ["", f"## {escaped(section.title)}", "", escaped(section.lead)]
        for table in section.tables:
            lines += ["", f"### {escaped(table.title)}", ""]
            lines += [escaped(table.note), ""] if table.note else []
            lines.append(markdown_table(table.columns, [[cell.text for cell in row] for row in table.rows]))
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
