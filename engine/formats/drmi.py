"""Dr.Mi-Bench: papers with a gold plan, works and statements, and one file of reports per system.

The benchmark's files are not public yet; this layout has the fields that its paper lists. Papers: `papers.jsonl` (or
its folder), one per line: id, question, domain, language, kind (research or review), plan, references (title, doi),
statements (text, truth), and optionally date, by which tables may be grouped. Reports: `SYSTEM.jsonl`, one per line:
id, report, and optionally plan, evidence (title, doi, url), sample, seconds, total_tokens, input_tokens and mode.

A system's reports in a mode other than `end_to_end` count as another system, named `SYSTEM (MODE)`.
"""

from pathlib import Path

import msgspec

from adjudge.engine.formats.dataset import Dataset, FormatError, InputFile, Key, Prompts, located, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Amount, Citation, Count, Report, ReportUsage, Sample, Task
from adjudge.scoring.drmi_bench.drmi import Gold

END_TO_END = "end_to_end"


class Paper(Gold, frozen=True, kw_only=True):
    """A line of papers.jsonl."""

    id: Key
    question: str
    domain: Key = ""
    language: str = "en"
    date: Key = ""


class Work(msgspec.Struct, frozen=True):
    """A work that an agent found."""

    title: str = ""
    doi: str = ""
    url: str = ""


class Row(msgspec.Struct, frozen=True):
    """A line of a system's file."""

    task_id: Key = msgspec.field(name="id")
    text: str = msgspec.field(name="report")
    plan: tuple[str, ...] = ()
    evidence: tuple[Work, ...] = ()
    sample: Sample = 0
    seconds: Amount | None = None
    total_tokens: Count | None = None
    input_tokens: Count | None = None
    mode: str = END_TO_END
    prompt: str = ""


def read(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the papers with the systems of `reports`. Raises FormatError if either is missing."""
    file = tasks / "papers.jsonl" if tasks.is_dir() else tasks
    if not file.is_file():
        raise FormatError(f"tasks: {file} does not exist; give papers.jsonl or its folder")
    rejected: list[Rejected] = []
    known = {str(paper.id): _task(paper) for _, paper in rows(file, Paper, rejected)}
    prompts = Prompts(known)
    found = [report for file in reports for report in located(file, Row, rejected, prompts, _report)]
    return Dataset(known, found, rejected)


def _task(paper: Paper) -> Task:
    gold = Gold(kind=paper.kind, plan=paper.plan, references=paper.references, statements=paper.statements)
    return Task(
        id=str(paper.id),
        prompt=paper.question,
        language=paper.language,
        domain=str(paper.domain),
        attributes={"kind": paper.kind, **({"date": str(paper.date)} if paper.date != "" else {})},
        gold={"drmi": msgspec.Raw(msgspec.json.encode(gold))},
    )


def _report(system: str, line: Row) -> Report:
    return Report(
        task_id=str(line.task_id),
        system=system if line.mode == END_TO_END else f"{system} ({line.mode})",
        sample=line.sample,
        text=line.text,
        plan=line.plan,
        evidence=tuple(
            Citation(url=f"https://doi.org/{work.doi}" if work.doi else work.url, title=work.title)
            for work in line.evidence
        ),
        usage=ReportUsage(total_tokens=line.total_tokens, input_tokens=line.input_tokens),
        seconds=line.seconds,
        mode=line.mode,
    )
