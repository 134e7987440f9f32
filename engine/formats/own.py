"""Our own layout, `adjudge`: a file of tasks, or the folder of `tasks.jsonl`, and files of reports in any form.

A file of reports may hold many systems. A document is the report of the system that its folder is named after, for the
task that it is named after: `SYSTEM/TASK.md`, or `SYSTEM/TASK-K.md` for the K-th sample.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from adjudge.engine.formats.dataset import (
    Dataset,
    FormatError,
    InputFile,
    Key,
    Located,
    Prompts,
    located,
    rows,
)
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Report, Task


class Row(Report, frozen=True, kw_only=True):
    """A row of a file of reports."""

    prompt: str = ""


class TaskRow(Task, frozen=True, kw_only=True):
    """A row of a file of tasks, whose names may be numbers."""

    id: Key  # type: ignore[assignment]
    domain: Key = ""  # type: ignore[assignment]
    attributes: dict[str, Key] = msgspec.field(default_factory=dict)  # type: ignore[assignment]


def read(tasks: Path, files: list[InputFile]) -> Dataset:
    """The dataset of a file of tasks and files of reports. Raises FormatError if a file is unreadable."""
    tasks = tasks / "tasks.jsonl" if tasks.is_dir() else tasks
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for line, row in rows(tasks, TaskRow, rejected):
        attributes = {name: str(value) for name, value in row.attributes.items()}
        names = {"id": str(row.id), "domain": str(row.domain), "attributes": attributes}
        task = Task(**msgspec.structs.asdict(row) | names)
        if known.setdefault(task.id, task) != task:
            raise FormatError(
                f"{tasks}:{line}: task {task.id!r} was given before with other content; use distinct ids"
            )
    prompts = Prompts(known)
    found = [report for file in files for report in reports(file, prompts, rejected)]
    return Dataset(known, found, rejected)


def reports(file: InputFile, prompts: Prompts, rejected: list[Rejected]) -> Iterator[Located]:
    """The reports of a file."""
    return located(file, Row, rejected, prompts, _report)


def _report(_: str, row: Row) -> Report:
    fields = {name: getattr(row, name) for name in Report.__struct_fields__}
    return Report(**fields)
