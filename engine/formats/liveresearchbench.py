"""LiveResearchBench as published: questions with checklists, and reports `MODEL/qid_ID_report.md`.

Questions: a JSON Lines or Parquet file, or its folder; rows with `qid`, `question` and `checklists`, or one row per
item of the list, as `checklist`. Placeholders ({{current_year}}, {{last_year}}, {{current_date}}, {{date}}) are filled
for a stated date; without one, `question_no_placeholder` is read where rows have it. Depth is judged against a
reference system's reports, in a folder `reference_reports` (or `data/reference_reports`) beside the questions.
"""

import datetime
import re
from pathlib import Path

import msgspec

from adjudge.engine.formats import own
from adjudge.engine.formats.dataset import Dataset, FormatError, InputFile, Key, Prompts, rows
from adjudge.engine.formats.documents import read_source
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Task
from adjudge.scoring.rubrics.liveresearchbench import LiveGold

_FILES = (
    "*checklist*.jsonl",
    "liveresearchbench.jsonl",
    "test.jsonl",
    "*checklist*.parquet",
    "*checklist*/*.parquet",
)
_REFERENCES = ("reference_reports", "data/reference_reports")
_PLACEHOLDER = re.compile(r"\{\{(current_year|last_year|current_date|date)\}\}")
_REPORT = re.compile(r"qid_(.{1,200})_report")
_MONTHS = "January February March April May June July August September October November December".split()


class Question(msgspec.Struct):
    """A row: a question with its checklist, or with one item of it."""

    qid: Key
    question: str
    checklists: list[str] = []
    checklist: str | None = None
    question_no_placeholder: str | None = None
    checklist_no_placeholder: str | None = None
    domain: Key = ""
    language: str = "en"


def read(tasks: Path, reports: list[InputFile], date: datetime.date | None = None) -> Dataset:
    """The dataset of the questions with `reports`, placeholders filled for `date`. Raises FormatError."""
    found = (file for pattern in _FILES for file in sorted(tasks.glob(pattern)))
    file = next(found, tasks) if tasks.is_dir() else tasks
    if not file.is_file():
        raise FormatError(f"tasks: {tasks} has no file of questions; give it or its folder")
    rejected: list[Rejected] = []
    questions: dict[str, list[Question]] = {}
    for _, row in rows(file, Question, rejected):
        questions.setdefault(str(row.qid), []).append(row)
    found = (path for name in _REFERENCES for path in sorted((file.parent / name).glob("qid_*_report.*")))
    references = {match[1]: path for path in found if (match := _REPORT.fullmatch(path.stem))}
    known = {qid: _task(file, qid, each, references.get(qid), date) for qid, each in questions.items()}
    prompts = Prompts(known)
    return Dataset(known, [one for file in reports for one in own.reports(file, prompts, rejected)], rejected)


def _task(
    file: Path, qid: str, rows: list[Question], reference: Path | None, date: datetime.date | None
) -> Task:
    static = date is None and rows[0].question_no_placeholder is not None
    question = rows[0].question_no_placeholder if static else rows[0].question
    single = [row.checklist_no_placeholder if static else row.checklist for row in rows]
    items = [*(item for row in rows for item in row.checklists), *(item for item in single if item)]
    prompt, *checklist = (_filled(file, qid, text, date) for text in (question or "", *items))
    gold = LiveGold(
        checklist=tuple(checklist),
        reference="" if reference is None else read_source(reference).text,
        date="" if date is None else _shown(date),
    )
    return Task(
        id=qid,
        prompt=prompt,
        language=rows[0].language,
        domain=str(rows[0].domain),
        gold={"liveresearchbench": msgspec.Raw(msgspec.json.encode(gold))},
    )


def _filled(file: Path, qid: str, text: str, date: datetime.date | None) -> str:
    """`text` with its placeholders filled. Raises FormatError if it has any and no date is stated."""
    if date is None:
        if _PLACEHOLDER.search(text):
            raise FormatError(
                f"date: is missing; {file} has placeholders (task {qid!r}): state the day the reports were written "
                "for, such as date: 2025-11-12"
            )
        return text
    years = {"current_year": str(date.year), "last_year": str(date.year - 1)}
    return _PLACEHOLDER.sub(lambda match: years.get(match[1], _shown(date)), text)


def _shown(date: datetime.date) -> str:
    return f"{_MONTHS[date.month - 1]} {date.day:02d}, {date.year}"
