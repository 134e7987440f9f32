"""Our own layout: tasks.jsonl, and reports.jsonl files that each may hold many systems (contract.md, Files)."""

from functools import partial
from pathlib import Path

import msgspec

from adjudge.engine.formats.dataset import Dataset, FormatError, Located, Rejected, rows
from adjudge.scoring.contract.case import Report, Task

__all__ = ["read"]


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of a tasks file and report files; bad lines are rejected. Raises FormatError for unreadable files."""
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for line, _, task in rows(tasks, Task, rejected):
        if known.setdefault(task.id, task) != task:
            raise FormatError(f"{tasks}:{line}: task {task.id!r} is there already with another content")
    found = [
        Located.of(report, f"{file}:{line}", partial(_load, file, offset))
        for file in reports
        for line, offset, report in rows(file, Report, rejected)
    ]
    return Dataset(known, found, rejected)


def _load(file: Path, offset: int) -> Report:
    with file.open("rb") as lines:
        lines.seek(offset)
        return msgspec.json.decode(lines.readline(), type=Report)
