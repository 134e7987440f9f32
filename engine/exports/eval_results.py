"""A leaderboard as evaluation results of models on the Hugging Face Hub: `.eval_results/PROTOCOL.yaml` per system.

The format is the one that huggingface_hub 1.x reads (`parse_eval_result_entries`). The tasks have to be a data set of
the Hub, because an entry names it; the entry's `task_id` is PROTOCOL.METRIC.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from adjudge.engine.errors import UsageError
from adjudge.engine.exports.headlines import Figure, figures_of
from adjudge.engine.exports.places import place
from adjudge.engine.formats.hub import dataset_name
from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.records.record import RunRecord

__all__ = ["write_eval_results"]


def write_eval_results(board: Leaderboard, record: RunRecord, out: Path) -> Iterator[Path]:
    """Write the results of every system below `out`/SYSTEM; the files written. Raises UsageError for local tasks."""
    dataset = {"id": dataset_name(record.config.tasks)}
    if dataset["id"] is None:
        raise UsageError(
            f"format: eval-results names a data set of the Hub, and this run read {record.config.tasks}; "
            "evaluate with tasks: hf:OWNER/NAME"
        )
    if (commit := record.revisions.get(record.config.tasks)) is not None:
        dataset["revision"] = commit
    for system, figures in figures_of(board):
        folder = out / place(system) / ".eval_results"
        folder.mkdir(parents=True, exist_ok=True)
        for protocol in dict.fromkeys(figure.board.protocol for figure in figures):
            own = [figure for figure in figures if figure.board.protocol == protocol]
            file = folder / f"{place(protocol)}.yaml"
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
