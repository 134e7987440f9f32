"""A leaderboard's files: leaderboard.json, .csv, .md and .html."""

import csv
import io
from pathlib import Path

import msgspec

from adjudge.engine.errors import UsageError
from adjudge.engine.leaderboard.board import Leaderboard, Standing
from adjudge.engine.leaderboard.correction import Corrected
from adjudge.engine.rendering.leaderboard_page import leaderboard_page
from adjudge.engine.rendering.markdown import leaderboard_markdown

__all__ = ["write_leaderboard"]

_COLUMNS = tuple(name for name in Standing.__struct_fields__ if name not in ("unscored", "corrected"))
_COMPUTED = ("=", "+", "-", "@", "\t", "\r")  # what a formula begins with
_CORRECTED = Corrected.__struct_fields__


def write_leaderboard(board: Leaderboard, folder: str | Path) -> Path:
    """Write the files into `folder`; return the path of the page. Raises UsageError."""
    out = Path(folder)
    files = {
        "leaderboard.json": msgspec.json.format(msgspec.json.encode(board), indent=1),
        "leaderboard.csv": _csv(board).encode("utf-8", "replace"),
        "leaderboard.md": leaderboard_markdown(board).encode("utf-8", "replace"),
        "leaderboard.html": leaderboard_page(board).encode(),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            written = out / f".{name}.tmp"
            written.write_bytes(content)
            written.rename(out / name)
    except OSError as error:
        raise UsageError(f"out: {out} cannot be written: {error.strerror}; choose another folder") from error
    return out / "leaderboard.html"


def _csv(board: Leaderboard) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    corrected = [name if name.startswith("n_") else f"corrected_{name}" for name in _CORRECTED]
    writer.writerow(["protocol", "metric", *_COLUMNS, "unscored", *corrected])
    for metric in board.metrics:
        for row in metric.standings:
            reasons = " ".join(f"{reason}={count}" for reason, count in row.unscored.items())
            own = [_text_cell(getattr(row, name)) for name in _COLUMNS]
            people = [None if row.corrected is None else getattr(row.corrected, name) for name in _CORRECTED]
            writer.writerow([_text_cell(metric.protocol), _text_cell(metric.metric), *own, reasons, *people])
    return text.getvalue()


def _text_cell(value: object) -> object:
    """`value`; a text that a spreadsheet would compute, led by an apostrophe, which makes it a text there."""
    if not isinstance(value, str):
        return value
    in_one_line = value.replace("\r", " ")
    return f"'{in_one_line}" if value.startswith(_COMPUTED) else in_one_line
