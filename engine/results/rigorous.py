"""Rigorous Bench's results: `Eval_SYSTEM.jsonl`, one row per query with its scores.

The benchmark's code is not public. A row has `uid` and numbers named as the paper names them, or as adjudge does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE, Key, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.results.recorded import (
    Recorded,
    Results,
    RunToWrite,
    folder_name,
    row_number,
    scorecard,
    write_lines,
)
from adjudge.scoring.contract.case import Task
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["PROTOCOL", "read", "write"]

PROTOCOL = "rigorous"
NAMES = {
    "IntegratedScore": "integrated",
    "Quality": "quality",
    "SemanticDrift": "drift",
    "TrustworthyBoost": "boost",
    "ContributionPerToken": "contribution_per_token",
    "RetrievalIndex": "retrieval_index",
    "FAK_Drift": "fak_drift",
    "FDK_Drift": "fdk_drift",
    "QSR": "qsr",
    "GRR": "grr",
}
"""The paper's names for our metrics."""
_PLAIN = {name.casefold().replace("_", ""): ours for name, ours in NAMES.items()} | {
    ours.replace("_", ""): ours for ours in NAMES.values()
}


class _Keyed(msgspec.Struct, frozen=True):
    uid: Key


def read(file: Path, system: str, results: Results) -> None:
    """Add the rows of `file` to `results`; those that are not results go to its rejected lines."""
    for line, _, raw in rows(file, msgspec.Raw, results.rejected):
        try:
            key = str(msgspec.json.decode(raw, type=_Keyed).uid)
            row = msgspec.json.decode(raw, type=dict[str, Any])
            card = scorecard((PROTOCOL, system, key, 0), _values(row))
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, line, _Keyed, error))
            continue
        results.found.append(Recorded(card, bytes(raw).decode(), f"{file}:{line}"))
        results.tasks.setdefault(key, Task(id=key, prompt=str(row.get("query", ""))))


def _values(row: dict[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, value in row.items():
        ours = _PLAIN.get(name.casefold().replace("_", ""))
        if ours is not None and (value is None or isinstance(value, int | float)):
            found[ours] = None if value is None else float(value)
    if not found:
        raise ValueError(f"no score; name one of {', '.join(NAMES)}")
    return found


def write(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write the file of every system into `out`; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        yield from write_lines(
            out / f"Eval_{folder_name(system, sample)}.jsonl", (_row(run, card) for card in cards)
        )


def _row(run: RunToWrite, card: Scorecard) -> dict[str, Any]:
    if (PROTOCOL, card.system, card.task_id, card.sample) in run.rows:
        return run.row(card)
    values = {name: card.scores[ours] for name, ours in NAMES.items() if ours in card.scores}
    return {"uid": row_number(card.task_id), **values}
