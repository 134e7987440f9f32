"""Our own layout: tasks.jsonl, and reports.jsonl files that each may hold many systems ."""

from pathlib import Path

from adjudge.engine.formats.dataset import Dataset, FormatError, Rejected, located, rows
from adjudge.scoring.contract.case import Report, Task

__all__ = ["read"]


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of a tasks file and report files; bad lines are rejected. Raises FormatError for unreadable files."""
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for line, _, task in rows(tasks, Task, rejected):
        if known.setdefault(task.id, task) != task:
            raise FormatError(f"{tasks}:{line}: task {task.id!r} is there already with another content")
    found = [report for file in reports for report in located(file, Report, rejected, lambda _, row: row)]
    return Dataset(known, found, rejected)
