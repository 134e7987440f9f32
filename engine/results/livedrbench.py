"""LiveDRBench's results: the rows that its evaluation returns, and the table that it prints.

A JSON list (or JSON Lines) of `{"key", "category", "precision", "recall", "f1"}`, named after the system; a list of
these rows and the averages, as the code returns them together, is read too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE, FormatError, Key, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.results.recorded import (
    Recorded,
    Results,
    RunToWrite,
    dumped,
    folder_name,
    row_number,
    scorecard,
)
from adjudge.scoring.contract.case import Task
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.livedrbench.livedr import CATEGORIES

__all__ = ["PROTOCOL", "Row", "read", "write"]

PROTOCOL = "livedr"
_NAMES = ("precision", "recall", "f1")

Figure = Annotated[float, msgspec.Meta(ge=0)]


class Row(msgspec.Struct, frozen=True):
    """A question's figures."""

    key: Key
    category: str
    precision: Figure
    recall: Figure
    f1: Figure


def read(file: Path, system: str, results: Results) -> None:
    """Add the rows of `file` to `results`; those that are not results go to its rejected lines."""
    for line, raw in _raw_rows(file, results.rejected):
        try:
            row = msgspec.json.decode(raw, type=Row)
            values: dict[str, float | None] = {
                name: getattr(row, name) for name in ("f1", "precision", "recall")
            }
            card = scorecard((PROTOCOL, system, str(row.key), 0), values)
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, line, Row, error))
            continue
        results.found.append(Recorded(card, bytes(raw).decode(), f"{file}:{line}"))
        results.tasks.setdefault(str(row.key), Task(id=str(row.key), prompt="", domain=row.category))


def _raw_rows(file: Path, rejected: list[Rejected]) -> Iterator[tuple[int, msgspec.Raw]]:
    if file.suffix == ".jsonl":
        yield from ((line, raw) for line, _, raw in rows(file, msgspec.Raw, rejected))
        return
    try:
        content = file.read_bytes()
        content.decode()
        listed = msgspec.json.decode(content, type=list[msgspec.Raw])
        if len(listed) == 2 and bytes(listed[0]).lstrip().startswith(b"["):
            listed = msgspec.json.decode(listed[0], type=list[msgspec.Raw])
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror}") from error
    except UNREADABLE as error:
        rejected.append(Rejected(str(file), 0, f"not a JSON list of results: {error}"))
        return
    yield from enumerate(listed, 1)


def write(run: RunToWrite, out: Path, categories: dict[str, str]) -> Iterator[Path]:
    """Write the rows and the table for every system below `out`; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        made = [_row(run, card, categories) for card in cards if card.scores.get("f1") is not None]
        if not made:
            continue
        out.mkdir(parents=True, exist_ok=True)
        file = out / f"{folder_name(system, sample)}.json"
        file.write_text(dumped(made), encoding="utf-8")
        table = file.with_suffix(".txt")
        table.write_text("".join(_lines(made)), encoding="utf-8")
        yield from (file, table)


def _row(run: RunToWrite, card: Scorecard, categories: dict[str, str]) -> dict[str, Any]:
    row = run.row(card) if (PROTOCOL, card.system, card.task_id, card.sample) in run.rows else {}
    made = {"key": row_number(card.task_id), "category": categories.get(card.task_id, ""), **row}
    return made | {name: card.scores[name] for name in _NAMES}


def _lines(made: list[dict[str, Any]]) -> Iterator[str]:
    found = {row["category"] for row in made}
    for name in (*(one for one in CATEGORIES if one in found), *sorted(found - {*CATEGORIES}), "overall"):
        few = made if name == "overall" else [row for row in made if row["category"] == name]
        precision, recall, f1 = (sum(row[one] for row in few) / len(few) for one in _NAMES)
        yield f"{name}: Precision: {precision:.3f}, Recall: {recall:.3f}, F1: {f1:.3f}\n"
