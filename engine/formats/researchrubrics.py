"""ResearchRubrics as published: `processed_data.jsonl`, or its folder, one task per line.

Fields: sample_id, prompt, domain, rubrics (criterion, weight from -5 to 5, axis). A criterion's axis is its tag.
Reports: `SYSTEM/ID.md` (or another document), or files of our own layout.
"""

from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.formats.dataset import Dataset, Key
from adjudge.engine.formats.rubric_sets import criteria_gold, read_set
from adjudge.scoring.contract.case import Task

__all__ = ["read"]


class Sample(msgspec.Struct):
    """A line of processed_data.jsonl."""

    sample_id: Key
    prompt: str
    rubrics: list[dict[str, Any]]
    domain: str = ""


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of the published tasks with `reports`. Raises FormatError."""
    return read_set(tasks, ("processed_data.jsonl",), Sample, _task, reports)


def _task(row: Sample) -> Task:
    return Task(
        id=str(row.sample_id),
        prompt=row.prompt,
        domain=row.domain,
        gold={"rubrics": criteria_gold(row.rubrics)},
    )
