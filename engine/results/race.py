"""RACE's results: `raw_results.jsonl`, one row per task, and `race_result.txt`, their means.

A file of judgements without a reference (`mode: no_reference`) holds the marks themselves; they are weighed by the
criteria of the same folder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE, Key, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.results.recorded import (
    Recorded,
    Results,
    RunToWrite,
    folder_name,
    language_of,
    scorecard,
    write_lines,
)
from adjudge.scoring.contract.case import Task
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.deepresearch_bench.race import dimension_score, pointwise, total
from adjudge.scoring.deepresearch_bench.yardstick import DIMENSIONS, MOST, RaceGold

__all__ = ["PROTOCOL", "Judged", "Row", "read", "read_judged", "write"]

PROTOCOL = "race"
_OVERALL = "overall_score"
_NAMES = (*DIMENSIONS, _OVERALL)
_JUDGED = "judge_details"

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Row(msgspec.Struct, frozen=True):
    """A row of raw_results.jsonl: a task's shares, or why there are none."""

    id: Key
    prompt: str = ""
    comprehensiveness: Share | None = None
    insight: Share | None = None
    instruction_following: Share | None = None
    readability: Share | None = None
    overall_score: Share | None = None
    error: str | None = None

    @property
    def values(self) -> dict[str, float | None]:
        """RACE's metrics. Raises ValueError where a row without an error lacks one."""
        found = {name: None if self.error is not None else getattr(self, name) for name in _NAMES}
        if self.error is None and None in found.values():
            raise ValueError("a score is missing, and there is no `error`")
        return {"overall": found.pop(_OVERALL), **found}


def read(file: Path, system: str, results: Results) -> None:
    """Add the rows of `file` to `results`; those that are not results go to its rejected lines."""
    for line, _, raw in rows(file, msgspec.Raw, results.rejected):
        try:
            row = msgspec.json.decode(raw, type=Row)
            card = scorecard((PROTOCOL, system, str(row.id), 0), row.values)
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, line, Row, error))
            continue
        results.found.append(Recorded(card, bytes(raw).decode(), f"{file}:{line}"))
        task = Task(id=str(row.id), prompt=row.prompt, language=language_of(row.prompt))
        results.tasks.setdefault(task.id, task)


class Mark(msgspec.Struct, frozen=True):
    """A criterion's mark, from 0 to 10."""

    criterion: str
    target_score: Annotated[float, msgspec.Meta(ge=0, le=MOST)]


class Judged(msgspec.Struct, frozen=True):
    """A row of a file of judgements."""

    id: Key
    mode: Literal["no_reference"]
    judge_details: dict[str, list[Mark]]
    prompt: str = ""

    def values(self, gold: RaceGold | None) -> dict[str, float | None]:
        """RACE's metrics without a reference. Raises ValueError without criteria, or marks of all dimensions."""
        if gold is None or gold.dimension_weight is None or gold.criterions is None:
            raise ValueError("the folder has no criteria for this task")
        if missing := [name for name in DIMENSIONS if not self.judge_details.get(name)]:
            raise ValueError(f"no marks for {', '.join(missing)}")
        marks = {
            name: dimension_score(
                [(mark.criterion, mark.target_score) for mark in self.judge_details[name]],
                gold.criterions.get(name, ()),
            )
            for name in DIMENSIONS
        }
        whole = total(marks, gold.dimension_weight)
        shares = {name: pointwise(mark) for name, mark in marks.items()}
        return {"overall": pointwise(whole), **shares, "total": whole}


def read_judged(file: Path, system: str, criteria: dict[str, RaceGold], results: Results) -> None:
    """Add the rows of a `file` of judgements to `results`; the others go to its rejected lines."""
    for line, _, raw in rows(file, msgspec.Raw, results.rejected):
        try:
            row = msgspec.json.decode(raw, type=Judged)
            card = scorecard((PROTOCOL, system, str(row.id), 0), row.values(criteria.get(str(row.id))))
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, line, Judged, error))
            continue
        results.found.append(Recorded(card, bytes(raw).decode(), f"{file}:{line}"))
        task = Task(id=str(row.id), prompt=row.prompt, language=language_of(row.prompt))
        results.tasks.setdefault(task.id, task)


def write(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write both files for every system below `out`/race; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        folder = out / PROTOCOL / folder_name(system, sample)
        recorded = [run.row(card) for card in cards]
        judged = (row for row in recorded if _JUDGED in row)
        yield from write_lines(out / "judgements" / f"{folder_name(system, sample)}.jsonl", judged)
        made = [_row(row, card) for row, card in zip(recorded, cards, strict=True)]
        yield from write_lines(folder / "raw_results.jsonl", made)
        scored = [row for row in made if "error" not in row]
        if scored:
            means = {name: sum(row[name] for row in scored) / len(scored) for name in _NAMES}
            text = "".join(f"{name.replace('_', ' ').title()}: {mean:.4f}\n" for name, mean in means.items())
            (folder / "race_result.txt").write_text(text, encoding="utf-8")
            yield folder / "race_result.txt"


def _row(row: dict[str, Any], card: Scorecard) -> dict[str, Any]:
    if _JUDGED in row:
        row = {name: row[name] for name in ("id", "prompt") if name in row}
    values = {**{name: card.scores.get(name) for name in DIMENSIONS}, _OVERALL: card.scores.get("overall")}
    if None in values.values():
        return row if "error" in row else row | {"error": card.reason or "not scored"}
    return row | values
