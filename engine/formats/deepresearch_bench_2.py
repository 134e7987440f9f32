"""DeepResearch Bench II as published: `tasks_and_rubrics.jsonl`, or its folder, one task per line.

Fields: idx, language, theme, prompt, content (rubric: the items of info_recall, analysis and presentation; blocked:
title, authors and urls of what a report must not rest on), and optionally id and description. Reports:
`SYSTEM/idx-N.md`, .txt, .html, .pdf or .docx, or files of our own layout, whose `task_id` is idx.
"""

from pathlib import Path

import msgspec

from adjudge.engine.formats.dataset import Dataset, Key
from adjudge.engine.formats.rubric_sets import read_set
from adjudge.scoring.contract.case import Task
from adjudge.scoring.rubrics.drb2 import Gold

__all__ = ["read"]


class Row(msgspec.Struct):
    """A line of tasks_and_rubrics.jsonl."""

    idx: Key
    prompt: str
    content: Gold
    language: str = "en"
    theme: str = ""


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of the published tasks with `reports`. Raises FormatError."""
    return read_set(tasks, ("tasks_and_rubrics.jsonl",), Row, _task, reports)


def _task(row: Row) -> Task:
    return Task(
        id=str(row.idx),
        prompt=row.prompt,
        language=row.language,
        domain=row.theme,
        attributes={"theme": row.theme} if row.theme else {},
        gold={"drb2": msgspec.Raw(msgspec.json.encode(row.content))},
    )
