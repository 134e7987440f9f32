"""Our own layout, `adjudge`: a file of tasks, or the folder of `tasks.jsonl`, and files of reports in any form.

A file of reports may hold many systems. A document is the report of the system that its folder is named after, for the
task that it is named after: `SYSTEM/TASK.md`, or `SYSTEM/TASK-K.md` for the K-th sample.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from adjudge.engine.file_kinds import TABLES
from adjudge.engine.formats.dataset import (
    UNREADABLE,
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
from adjudge.engine.formats.rubric_rows import as_criteria
from adjudge.engine.formats.usual_names import TASKS_COLUMNS
from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import NULL, Report, Task
from adjudge.scoring.text.thoughts import parted

_USUAL = "en"  # the language of a task that does not say, as files of tasks are documented

_log = logging.getLogger(__name__)


class Row(Report, frozen=True, kw_only=True):
    """A row of a file of reports."""

    prompt: str = ""


class TaskRow(Task, frozen=True, kw_only=True):
    """A row of a file of tasks, whose names may be numbers."""

    language: str = ""
    id: Key  # type: ignore[assignment]
    domain: Key = ""  # type: ignore[assignment]
    attributes: dict[str, Key] = msgspec.field(default_factory=dict)  # type: ignore[assignment]


def read(tasks: Path, files: list[InputFile]) -> Dataset:
    """The dataset of a file of tasks and files of reports. Raises FormatError if a file is unreadable."""
    folder, tasks = tasks, tasks / "tasks.jsonl" if tasks.is_dir() else tasks
    if not tasks.exists():
        raise FormatError(
            f"tasks: {folder} is a folder without tasks.jsonl; give the file of tasks, or set format: to a benchmark's"
        )
    if tasks.suffix.lower() not in (*TABLES, ".gz", ""):
        raise FormatError(
            f"tasks: {tasks}: {tasks.suffix} files cannot hold tasks; write JSON Lines (.jsonl: "
            '{"id": "1", "prompt": "..."} on a line of its own for each task), or .json, .csv, .tsv, .xlsx or .parquet'
        )
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    detected: Counter[str] = Counter()
    for line, row in rows(tasks, TaskRow, rejected, TASKS_COLUMNS):
        attributes = {name: str(value) for name, value in row.attributes.items()}
        language = row.language or language_of(row.prompt)
        names = {
            "id": str(row.id),
            "domain": str(row.domain),
            "attributes": attributes,
            "language": language,
            "gold": _gold(row.gold),
        }
        task = Task(**msgspec.structs.asdict(row) | names)
        if known.setdefault(task.id, task) != task:
            raise FormatError(
                f"{tasks}:{line}: task {task.id!r} was given before with other content; use distinct ids"
            )
        if not row.language and language != _USUAL:
            detected[language] += 1
    for language, count in detected.items():
        _log.warning(
            "tasks: %s: %s without a language, read as %s; `language` may say otherwise",
            tasks,
            plural(count, "task"),
            language,
        )
    prompts = Prompts(known)
    found = [report for file in files for report in reports(file, prompts, rejected)]
    return Dataset(known, found, rejected)


def _gold(given: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """`given` with its rubrics as criteria, which may be plain texts or in the shapes that data sets publish."""
    if "rubrics" not in given:
        return given
    try:
        found = msgspec.json.decode(given["rubrics"])
    except UNREADABLE:  # left as it is, to be refused where it is needed
        return given
    made = as_criteria(found)
    return given if made == found else given | {"rubrics": msgspec.Raw(msgspec.json.encode(made))}


_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_JAPANESE = re.compile(r"[\u3040-\u30ff]")
_LATIN = re.compile(r"[A-Za-z]++")


def language_of(prompt: str) -> str:
    """The language of a prompt whose task does not say: Chinese, where more of it is that than is in Latin letters."""
    chinese = len(_CHINESE.findall(prompt))
    is_chinese = chinese > len(_LATIN.findall(prompt)) and not _JAPANESE.search(prompt)
    return "zh" if is_chinese else _USUAL


def reports(file: InputFile, prompts: Prompts, rejected: list[Rejected]) -> Iterator[Located]:
    """The reports of a file, without thoughts and calls of tools, which become the trace where there is none."""

    def made(_: str, row: Row) -> Report:
        fields = {name: getattr(row, name) for name in Report.__struct_fields__}
        fields["text"], aside = parted(row.text)
        if aside:
            file.thoughtful.add((row.task_id, row.system, row.sample))
            if row.trace == NULL:
                fields["trace"] = msgspec.Raw(msgspec.json.encode(aside))
        return Report(**fields)

    return located(file, Row, rejected, prompts, made)
