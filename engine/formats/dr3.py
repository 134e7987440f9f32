"""DR3-Eval: its own folders (`dr3_published`), and a second form with all of a task in one folder.

    tasks/                           the folder to name as `tasks:`
      001/
        task.json                    query; optionally language, domain, insights, checklist
        files/                       the user's files: text, Markdown, HTML, PDF, DOCX, PPTX, XLSX, CSV, pictures, ...
        corpus/64k.jsonl, 512k.jsonl one page per line: url, title, text, role (supportive, distractor or noise)

Every corpus makes a separate task, `001@64k`; a folder without a corpus makes the task `001`. Reports: `SYSTEM.jsonl`,
one per line: id, size, report; optionally citations (url, title, marker), sample, seconds.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE, Dataset, FormatError, Prompts, located, rows
from adjudge.engine.formats.dr3_published import QUERIES, read_published
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.formats.user_files import user_files
from adjudge.scoring.contract.case import Amount, Citation, Report, Sample, Task
from adjudge.scoring.dr3_eval.dr3 import Gold, GoldInsights
from adjudge.scoring.dr3_eval.sandbox import Role, Source

__all__ = ["read"]


class TaskFile(msgspec.Struct):
    """A task.json."""

    query: str
    language: str | None = None
    domain: str = ""
    insights: GoldInsights = GoldInsights()
    checklist: tuple[str, ...] = ()


class Page(msgspec.Struct):
    """A line of a corpus."""

    text: str
    url: str = ""
    title: str = ""
    role: Role = "unlabelled"


class Row(msgspec.Struct):
    """A line of a system's file."""

    id: str
    report: str
    size: str = ""
    citations: tuple[Citation, ...] = ()
    sample: Sample = 0
    seconds: Amount | None = None
    prompt: str = ""


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of a folder of tasks with the systems of `reports`. Raises FormatError if either is missing.

    A user's file that cannot be read is rejected, but remains a source that a report should cite.
    """
    if (tasks / QUERIES).is_file():
        return read_published(tasks, reports)
    folders = sorted(file.parent for file in tasks.glob("*/task.json"))
    if not folders:
        raise FormatError(
            f"tasks: {tasks} has neither query.jsonl nor a folder with a task.json; give the folder "
            "above those of the tasks"
        )
    rejected: list[Rejected] = []
    known = {task.id: task for folder in folders for task in _tasks(folder, rejected)}
    prompts = Prompts(known)
    found = [report for file in reports for report in located(file, Row, rejected, prompts, _report)]
    return Dataset(known, found, rejected)


def _tasks(folder: Path, rejected: list[Rejected]) -> Iterator[Task]:
    """The tasks of one folder, one per corpus."""
    file = folder / "task.json"
    try:
        task = msgspec.json.decode(file.read_bytes(), type=TaskFile)
    except (OSError, *UNREADABLE) as error:
        rejected.append(Rejected.of(file, 0, Task, error))
        return
    files = tuple(user_files(folder / "files", rejected))
    corpora: list[Path | None] = [*sorted((folder / "corpus").glob("*.jsonl"))]
    for corpus in corpora or [None]:
        pages = [] if corpus is None else [page for _, _, page in rows(corpus, Page, rejected)]
        size = "" if corpus is None else corpus.stem
        gold = Gold(
            user_files=files,
            corpus=tuple(
                Source(url=page.url, title=page.title, text=page.text, role=page.role) for page in pages
            ),
            insights=task.insights,
            checklist=task.checklist,
            corpus_size=size,
        )
        yield Task(
            id=_id(folder.name, size),
            prompt=task.query,
            language=task.language or ("zh" if folder.resolve().parent.name.endswith("_zh") else "en"),
            domain=task.domain,
            gold={"dr3": msgspec.Raw(msgspec.json.encode(gold))},
            attributes={"size": size} if size else {},
        )


def _id(task: str, size: str) -> str:
    return f"{task}@{size}" if size else task


def _report(file: Path, line: Row) -> Report:
    return Report(
        task_id=_id(line.id, line.size),
        system=file.stem,
        sample=line.sample,
        text=line.report,
        citations=line.citations,
        seconds=line.seconds,
    )
