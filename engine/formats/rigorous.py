"""Rigorous Bench (Dr. Bench) as published: queries with their bundles, and one log of reports per system.

Queries: `DrBench.jsonl`, formerly `RigorousBench.jsonl` (or the folder of either), one per line: uid, query, qsr, tsl,
fak, fdk, and optionally `language` and `domain`. Logs: `Log_SYSTEM.jsonl` or `SYSTEM.jsonl`, one report per line: uid,
text, annotations (URLs, or objects of url, title and end_index, the position in the text that they follow),
input_tokens and total_tokens, and optionally `retrieved`, `inference_seconds`, `retrieval_seconds` and `sample`.
"""

from pathlib import Path

import msgspec

from adjudge.engine.formats.dataset import Dataset, FormatError, InputFile, Key, Prompts, located, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Amount, Citation, Count, Report, ReportUsage, Sample, Task

_QUERIES = ("DrBench.jsonl", "RigorousBench.jsonl")


class Query(msgspec.Struct):
    """A line of DrBench.jsonl."""

    uid: Key
    query: str
    qsr: msgspec.Raw
    fak: msgspec.Raw
    fdk: msgspec.Raw
    tsl: msgspec.Raw
    language: str = "en"
    domain: Key = ""


class Annotation(msgspec.Struct):
    """An annotation with its position: after `end_index` characters of the text."""

    url: str
    title: str = ""
    end_index: Count | None = None


class Row(msgspec.Struct):
    """A line of a system's log."""

    task_id: Key = msgspec.field(name="uid")
    text: str
    annotations: list[str | Annotation] = []
    input_tokens: Count | None = None
    total_tokens: Count | None = None
    retrieved: Count | None = None
    inference_seconds: Amount | None = None
    retrieval_seconds: Amount | None = None
    sample: Sample = 0
    prompt: str = ""


def read(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the queries with the logs of `reports`, or without any, of all logs beside the queries.

    Raises FormatError if either is missing.
    """
    files = [tasks / name for name in _QUERIES] if tasks.is_dir() else [tasks]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise FormatError(f"tasks: {tasks} holds no queries; give {_QUERIES[0]} or its folder")
    systems = reports or [InputFile(log) for log in sorted(file.parent.glob("Log_*.jsonl"))]
    rejected: list[Rejected] = []
    known = {str(query.uid): _task(query) for _, query in rows(file, Query, rejected)}
    prompts = Prompts(known)
    found = [report for file in systems for report in located(file, Row, rejected, prompts, _report)]
    return Dataset(known, found, rejected)


def _task(query: Query) -> Task:
    gold = {"qsr": query.qsr, "fak": query.fak, "fdk": query.fdk, "tsl": query.tsl}
    return Task(
        id=str(query.uid),
        prompt=query.query,
        language=query.language,
        domain=str(query.domain),
        gold={"rigorous": msgspec.Raw(msgspec.json.encode(gold))},
    )


def _report(system: str, line: Row) -> Report:
    usage = ReportUsage(
        total_tokens=line.total_tokens,
        input_tokens=line.input_tokens,
        retrieved=line.retrieved,
        inference_seconds=line.inference_seconds,
        retrieval_seconds=line.retrieval_seconds,
    )
    return Report(
        task_id=str(line.task_id),
        system=system.removeprefix("Log_"),
        sample=line.sample,
        text=line.text,
        citations=tuple(map(_citation, line.annotations)),
        usage=usage,
    )


def _citation(annotation: str | Annotation) -> Citation:
    if isinstance(annotation, str):
        return Citation(url=annotation)
    return Citation(url=annotation.url, title=annotation.title, position=annotation.end_index)
