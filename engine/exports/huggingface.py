"""A leaderboard on the Hugging Face Hub: evaluation results of models, and a static Space.

Evaluation results are one `.eval_results/PROTOCOL.yaml` per system, in the format that huggingface_hub 1.x reads
(`parse_eval_result_entries`). The tasks must be a data set on the Hub, because an entry names it; the entry's `task_id`
is PROTOCOL.METRIC. A Space holds the page, a README with its metadata, and the data.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from adjudge.engine.errors import UsageError
from adjudge.engine.exports.shared import Figure, figures_of
from adjudge.engine.formats.hub import dataset_name
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.tables.files import write_leaderboard
from adjudge.engine.tables.markdown import leaderboard_markdown
from adjudge.fetchers.files import file_name


def write_eval_results(board: Leaderboard, record: RunRecord, out: Path) -> Iterator[Path]:
    """Write the results of every system below `out`/SYSTEM; the files written. Raises UsageError for local tasks."""
    dataset = {"id": dataset_name(record.config.tasks)}
    if dataset["id"] is None:
        raise UsageError(
            f"format: eval-results needs tasks from a data set of the Hub, but this run read {record.config.tasks}; "
            "evaluate with tasks: hf:OWNER/NAME"
        )
    if (commit := record.revisions.get(record.config.tasks)) is not None:
        dataset["revision"] = commit
    for system, figures in figures_of(board):
        folder = out / file_name(system) / ".eval_results"
        folder.mkdir(parents=True, exist_ok=True)
        for protocol in dict.fromkeys(figure.board.protocol for figure in figures):
            own = [figure for figure in figures if figure.board.protocol == protocol]
            file = folder / f"{file_name(protocol)}.yaml"
            entries = [_entry(figure, dataset, record) for figure in own]
            file.write_text(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True), encoding="utf-8")
            yield file


def _entry(figure: Figure, dataset: dict[str, Any], record: RunRecord) -> dict[str, Any]:
    notes = [f"judge {record.judging.said_of(figure.board.protocol)}", f"{figure.row.n_scored} scored"]
    if figure.low is not None and figure.high is not None:
        notes.append(f"interval {figure.low:.4g} to {figure.high:.4g}")
    notes.append(f"adjudge {record.versions.get('adjudge', 'unknown')}")
    return {
        "dataset": {**dataset, "task_id": figure.name},
        "value": round(figure.value, 6),
        "date": datetime.fromtimestamp(record.ended, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "notes": "; ".join(notes),
    }


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
    yield from sorted(out.glob("leaderboard.*.parquet"))


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
