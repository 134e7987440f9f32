"""Benchmarks of rubrics: one JSON Lines file of tasks, and reports as documents or in our own layout.

A document is `SYSTEM/ID.md`, where ID is the task's, or `SYSTEM/idx-ID.md`; .txt, .html, .pdf and .docx are read too,
and `ID-K` is the system's report number K. A .jsonl file holds reports as our own layout has them.
"""

import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from adjudge.engine.formats import own
from adjudge.engine.formats.dataset import UNREADABLE, Dataset, FormatError, Located, Prompts, rows
from adjudge.engine.formats.documents import DocumentError, MissingReader, read_source
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.formats.rubric_rows import as_criteria
from adjudge.scoring.contract.case import Report, Task
from adjudge.scoring.rubrics.criteria import Criterion

__all__ = ["criteria_gold", "read_set"]

R = TypeVar("R")

DOCUMENTS = frozenset({".md", ".markdown", ".txt", ".html", ".htm", ".pdf", ".docx"})
_SAMPLE = re.compile(r"(.{1,500})-([0-9]{1,6})")


def read_set(
    tasks: Path, names: Sequence[str], kind: type[R], task: Callable[[R], Task], reports: Sequence[Path]
) -> Dataset:
    """The dataset of the file `tasks`, or of the first of `names` in that folder, with `reports`.

    A row that is not a `kind`, or of which `task` makes none, is rejected with its line. Raises FormatError.
    """
    file = next((tasks / name for name in names if (tasks / name).is_file()), tasks)
    if not file.is_file():
        raise FormatError(f"tasks: {tasks} has no {names[0]}; give that file or its folder")
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for line, _, row in rows(file, kind, rejected):
        try:
            made = task(row)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, line, kind, error))
            continue
        if known.setdefault(made.id, made) != made:
            raise FormatError(
                f"{file}:{line}: task {made.id!r} was given before with other content; use distinct ids"
            )
    prompts = Prompts(known)
    found = [one for report in reports for one in _reports(report, known, prompts, rejected)]
    return Dataset(known, found, rejected)


def criteria_gold(rubrics: object) -> msgspec.Raw:
    """Rows of rubrics as the gold `rubrics`. Raises ValidationError (a ValueError) for an invalid criterion."""
    criteria = msgspec.convert(as_criteria(rubrics), tuple[Criterion, ...])
    return msgspec.Raw(msgspec.json.encode([_row(one) for one in criteria]))


def _row(criterion: Criterion) -> dict[str, object]:
    row = msgspec.structs.asdict(criterion)
    return {name: value for name, value in row.items() if value not in (None, "", ())}


def _reports(
    file: Path, known: Container[str], prompts: Prompts, rejected: list[Rejected]
) -> Iterator[Located]:
    if file.suffix.lower() == ".jsonl":
        yield from own.reports(file, prompts, rejected)
        return
    try:
        if file.suffix.lower() not in DOCUMENTS:
            raise DocumentError(
                f"{file}: unknown kind of document; use one of {', '.join(sorted(DOCUMENTS))}"
            )
        report = _document(file, known)
    except MissingReader as error:
        raise FormatError(str(error)) from error
    except DocumentError as error:
        rejected.append(Rejected(str(file), 0, str(error).removeprefix(f"{file}: ")))
    else:
        yield Located.of(report, f"{file}:0", partial(_document, file, known))


def _document(file: Path, known: Container[str]) -> Report:
    """The report in a document. Raises DocumentError."""
    task, sample = file.stem.removeprefix("idx-"), 0
    numbered = _SAMPLE.fullmatch(task)
    if task not in known and numbered is not None:
        task, sample = numbered[1], int(numbered[2])
    text = read_source(file).text
    return Report(task_id=task, system=file.parent.name, sample=sample, text=text)
