"""Rigorous Bench (Dr. Bench) as published: queries with their bundles, one log of reports per system, and results.

Queries: `DrBench.jsonl`, formerly `RigorousBench.jsonl` (or the folder of either), one per line: uid, query, qsr, tsl,
fak, fdk, and optionally `language` and `domain`. Logs: `Log_SYSTEM.jsonl` or `SYSTEM.jsonl`, one report per line: uid,
text, annotations (URLs, or objects of url, title and end_index, the position in the text that they follow),
input_tokens and total_tokens, and optionally `retrieved` and `sample`.

Results: `Eval_SYSTEM.jsonl`, one row per query with its scores. The benchmark's code is not public. A row has `uid` and
numbers named as the paper names them, or as adjudge does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE, Dataset, FormatError, Key, Prompts, located, rows
from adjudge.engine.formats.recorded import (
    Results,
    RunToWrite,
    folder_name,
    row_number,
    scorecard,
    write_lines,
)
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Citation, Count, Report, ReportUsage, Sample, Task
from adjudge.scoring.contract.scorecard import Scorecard

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
    domain: str = ""


class Annotation(msgspec.Struct):
    """An annotation with its position: after `end_index` characters of the text."""

    url: str
    title: str = ""
    end_index: Count | None = None


class Row(msgspec.Struct):
    """A line of a system's log."""

    uid: Key
    text: str
    annotations: list[str | Annotation] = []
    input_tokens: Count | None = None
    total_tokens: Count | None = None
    retrieved: Count | None = None
    sample: Sample = 0
    prompt: str = ""


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of the queries with the logs of `reports`, or without any, of all logs beside the queries.

    Raises FormatError if either is missing.
    """
    files = [tasks / name for name in _QUERIES] if tasks.is_dir() else [tasks]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise FormatError(f"tasks: {tasks} holds no queries; give {_QUERIES[0]} or its folder")
    systems = reports or sorted(file.parent.glob("Log_*.jsonl"))
    rejected: list[Rejected] = []
    known = {str(query.uid): _task(query) for _, _, query in rows(file, Query, rejected)}
    prompts = Prompts(known)
    found = [report for file in systems for report in located(file, Row, rejected, prompts, _report)]
    return Dataset(known, found, rejected)


def _task(query: Query) -> Task:
    gold = {"qsr": query.qsr, "fak": query.fak, "fdk": query.fdk, "tsl": query.tsl}
    return Task(
        id=str(query.uid),
        prompt=query.query,
        language=query.language,
        domain=query.domain,
        gold={"rigorous": msgspec.Raw(msgspec.json.encode(gold))},
    )


def _report(file: Path, line: Row) -> Report:
    usage = ReportUsage(
        total_tokens=line.total_tokens, input_tokens=line.input_tokens, retrieved=line.retrieved
    )
    return Report(
        task_id=str(line.uid),
        system=file.stem.removeprefix("Log_"),
        sample=line.sample,
        text=line.text,
        citations=tuple(map(_citation, line.annotations)),
        usage=usage,
    )


def _citation(annotation: str | Annotation) -> Citation:
    if isinstance(annotation, str):
        return Citation(url=annotation)
    return Citation(url=annotation.url, title=annotation.title, position=annotation.end_index)


PROTOCOL = "rigorous"
NAMES = {
    "IntegratedScore": "integrated",
    "Quality": "quality",
    "SemanticDrift": "drift",
    "TrustworthyBoost": "boost",
    "ContributionPerToken": "contribution_per_token",
    "RetrievalIndex": "retrieval_index",
    "FAK_Drift": "fak_drift",
    "FDK_Drift": "fdk_drift",
    "QSR": "qsr",
    "GRR": "grr",
}
"""The paper's names for our metrics."""
_PLAIN = {name.casefold().replace("_", ""): ours for name, ours in NAMES.items()} | {
    ours.replace("_", ""): ours for ours in NAMES.values()
}


class _Keyed(msgspec.Struct, frozen=True):
    uid: Key


def read_results(file: Path, system: str, results: Results) -> None:
    """Add the rows of `file` to `results`; those that are not results go to its rejected lines."""
    for line, _, raw in rows(file, msgspec.Raw, results.rejected):
        try:
            key = str(msgspec.json.decode(raw, type=_Keyed).uid)
            row = msgspec.json.decode(raw, type=dict[str, Any])
            card = scorecard((PROTOCOL, system, key, 0), _values(row))
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, line, _Keyed, error))
            continue
        results.add(card, bytes(raw).decode(), file, line)
        results.tasks.setdefault(key, Task(id=key, prompt=str(row.get("query", ""))))


def _values(row: dict[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, value in row.items():
        ours = _PLAIN.get(name.casefold().replace("_", ""))
        if ours is not None and (value is None or isinstance(value, int | float)):
            found[ours] = None if value is None else float(value)
    if not found:
        raise ValueError(f"no score; name one of {', '.join(NAMES)}")
    return found


def write_results(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write the file of every system into `out`; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        yield from write_lines(
            out / f"Eval_{folder_name(system, sample)}.jsonl", (_row(run, card) for card in cards)
        )


def _row(run: RunToWrite, card: Scorecard) -> dict[str, Any]:
    if (PROTOCOL, card.system, card.task_id, card.sample) in run.rows:
        return run.row(card)
    values = {name: card.scores[ours] for name, ours in NAMES.items() if ours in card.scores}
    return {"uid": row_number(card.task_id), **values}
