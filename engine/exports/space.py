"""A leaderboard as a static Space of the Hugging Face Hub: the page, the README with its metadata, and the data."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import yaml

from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.records.record import RunRecord
from adjudge.engine.rendering.files import write_leaderboard
from adjudge.engine.rendering.markdown import leaderboard_markdown

__all__ = ["write_space"]

_KEPT = ("leaderboard.csv", "leaderboard.json", "leaderboard.parquet")


def write_space(board: Leaderboard, record: RunRecord, out: Path) -> Iterator[Path]:
    """Write the folder of a Space: index.html, README.md, and the leaderboard's data; the files written."""
    page = write_leaderboard(board, out)
    index = page.rename(out / "index.html")
    (out / "leaderboard.md").unlink()
    yield index
    readme = out / "README.md"
    readme.write_text(_readme(board, record), encoding="utf-8", errors="replace")
    yield readme
    yield from (out / name for name in _KEPT)


def _readme(board: Leaderboard, record: RunRecord) -> str:
    protocols = list(dict.fromkeys(metric.protocol for metric in board.metrics))
    metadata = {
        "title": f"Leaderboard: {', '.join(protocols)}"[:100],
        "emoji": "\N{BAR CHART}",
        "colorFrom": "blue",
        "colorTo": "gray",
        "sdk": "static",
        "app_file": "index.html",
        "pinned": False,
        "short_description": f"Deep-research reports, {datetime.fromtimestamp(record.ended, UTC):%Y-%m-%d}",
        "tags": ["leaderboard", "deep-research"],
    }
    header = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    return f"---\n{header}---\n\n{leaderboard_markdown(board)}"
