"""Our own layout, `adjudge`: a JSON Lines file of tasks, or the folder of `tasks.jsonl`, and files of reports.

A file of reports may hold many systems.
"""

from collections.abc import Iterator
from pathlib import Path

from adjudge.engine.formats.dataset import Dataset, FormatError, Located, Prompts, located, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Report, Task


class Row(Report, frozen=True, kw_only=True):
    """A line of a file of reports."""

    prompt: str = ""


def read(tasks: Path, files: list[Path]) -> Dataset:
    """The dataset of a file of tasks and files of reports. Raises FormatError if a file is unreadable."""
    tasks = tasks / "tasks.jsonl" if tasks.is_dir() else tasks
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for line, _, task in rows(tasks, Task, rejected):
        if known.setdefault(task.id, task) != task:
            raise FormatError(
                f"{tasks}:{line}: task {task.id!r} was given before with other content; use distinct ids"
            )
    prompts = Prompts(known)
    found = [report for file in files for report in reports(file, prompts, rejected)]
    return Dataset(known, found, rejected)


def reports(file: Path, prompts: Prompts, rejected: list[Rejected]) -> Iterator[Located]:
    """The reports of a file."""
    return located(file, Row, rejected, prompts, _report)


def _report(_: Path, row: Row) -> Report:
    fields = {name: getattr(row, name) for name in Report.__struct_fields__}
    return Report(**fields)
