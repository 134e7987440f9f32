"""`adjudge show`: the evidence behind a score, every question, answer, page and reason of one report in one run."""

import argparse
import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.notices import unfinished
from adjudge.engine.commands.output import out, print_result, print_table
from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.runs.people import People, Said
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.selection import explained
from adjudge.engine.store.cards import StoredCard, stored
from adjudge.engine.tables.cells import number
from adjudge.engine.tables.table import Column, Table
from adjudge.scoring.contract.scorecard import Scorecard

_log = logging.getLogger(__name__)


class AskedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A stored judgment: `answer` is its JSON, or None with the reason.

    `finish_reason` is the server's word; of a reply that cannot be read, it names the field and what is wrong with it.
    """

    key: str
    question: str
    answer: Any
    reason: str | None
    text: str
    finish_reason: str
    judge: str


class ReadPage(msgspec.Struct, frozen=True, kw_only=True):
    """A stored page, without its text."""

    url: str
    final_url: str
    status: str
    reason: str | None
    title: str
    chars: int


class CardEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A scorecard with the judgments and pages that it names and the store still holds.

    `scales` are what tables multiply its scores by, `decimals` how many they write. `people` has people's labels by
    the number of the line of evidence (from 1), `edited` the scores with the verdicts that they overrode.
    """

    card: StoredCard
    questions: tuple[AskedQuestion, ...]
    pages: tuple[ReadPage, ...]
    scales: dict[str, float] = {}
    decimals: dict[str, int] = {}
    people: dict[int, tuple[Said, ...]] = {}
    edited: dict[str, float] = {}


def find_evidence(run: str, task: str, system: str, labels: Path | None = None) -> list[CardEvidence]:
    """The evidence for `system`'s reports to `task` in the run folder `run`, by protocol, sample and repeat.

    People's `labels` are set beside it. Raises UsageError if the run has no such report, and for labels that cannot be
    read; StoreError if its store cannot be read.
    """
    opened = Run.open(run)
    cards = opened.cards_of(system, task)
    if not cards:
        raise UsageError(_not_there(opened, task, system))
    people = None if labels is None else People(opened, labels)
    return asyncio.run(_with_rows(opened, cards, people))


async def _with_rows(run: Run, cards: list[Scorecard], people: People | None) -> list[CardEvidence]:
    judgments, pages = await run.stores()
    found = []
    for card in cards:
        rows = [(key, await judgments.raw(bytes.fromhex(key))) for key in card.judgments]
        read = [await pages.get(url) for url in card.pages]
        metrics = run.metrics.get(card.protocol, ())
        found.append(
            CardEvidence(
                card=stored(card),
                questions=tuple(
                    AskedQuestion(
                        key=key,
                        question=row.question,
                        answer=None if row.answer is None else msgspec.json.decode(row.answer),
                        reason=row.reason,
                        text=row.text,
                        finish_reason=row.finish_reason,
                        judge=row.judge,
                    )
                    for key, row in rows
                    if row is not None
                ),
                pages=tuple(
                    ReadPage(
                        url=page.url,
                        final_url=page.final_url,
                        status=page.status,
                        reason=page.reason,
                        title=page.title,
                        chars=len(page.text),
                    )
                    for page in read
                    if page is not None
                ),
                scales={metric.name: metric.scale for metric in metrics},
                decimals={metric.name: metric.decimals for metric in metrics},
                people={} if people is None else people.about(card),
                edited={} if people is None else people.edited(card),
            )
        )
    return found


def _not_there(run: Run, task: str, system: str) -> str:
    record = run.record
    if system not in record.systems:
        return f"system: {system!r} is not in this run; {nearest(system, record.systems)}"
    if task not in record.tasks:
        return f"task: {task!r} is not in this run; {nearest(task, record.tasks)}"
    return (
        f"task: run {record.run} has no scorecard of {system!r} for {task!r} in {run.place.uri}; "
        "choose a task that this system has a report for"
    )


def run(options: argparse.Namespace) -> int:
    """Print the evidence behind a score."""
    unfinished(options.run_folder)
    labels = None if options.labels is None else Path(options.labels)
    found = find_evidence(options.run_folder, options.task, options.system, labels)
    print_result(options, found, _print_evidence)
    if labels is not None and not any(item.people for item in found):
        _log.warning("labels: none in %s is for this report", labels)
    return DONE


def _print_evidence(found: Iterable[CardEvidence]) -> None:
    """Print scores, then every line of evidence, page and question."""
    console = out()
    for item in found:
        card = item.card
        console.print(
            f"\n{card.protocol}: {card.system}, task {card.task_id}, sample {card.sample}, repeat {card.repeat}",
            style="bold",
            markup=False,
        )
        if card.scores:
            print_table(_scores_table(item))
        if card.reason is not None:
            console.print(f"  {card.status} ({card.reason})", markup=False)
        for why in dict.fromkeys([*card.reasons.values(), *([card.reason] if card.reason else [])]):
            console.print(f"  {explained(why)}", markup=False)
        for n, line in enumerate(card.evidence, 1):
            source = f"  {line.url}" if line.url else ""
            reason = f" ({line.reason})" if line.reason else ""
            console.print(f"  - {line.what}\n    {line.outcome}{reason}{source}", markup=False)
            for said in item.people.get(n, ()):
                console.print(f"    people: {_in_words(said)}", markup=False)
            for name, text in (("reason given", line.note), ("quoted", line.quote)):
                if text:
                    console.print(f"    {name}: {text}", markup=False)
        for page in item.pages:
            state = f"{page.chars:,} characters" if page.reason is None else page.reason
            moved = "" if page.final_url == page.url else f" -> {page.final_url}"
            console.print(f"  page {page.url}{moved}: {state}", markup=False)
        for question in item.questions:
            answer = question.text if question.answer is None else question.answer
            reason = f" ({question.reason}{_fault(question)})" if question.reason else ""
            console.print(f"  {question.question} {question.key}{reason}: {answer}", markup=False)


def _in_words(said: Said) -> str:
    """A label, whose it is and why, and whether it is the judge's."""
    words = ", ".join(filter(None, (said.label, said.rater)))
    note = f" ({said.note})" if said.note else ""
    return f"{words}, {'as the judge' if said.agrees else 'differs from the judge'}{note}"


def _fault(asked: AskedQuestion) -> str:
    """What in an unreadable reply is wrong, behind the reason."""
    return f"; {asked.finish_reason}" if asked.reason == "judge_unparseable" and asked.finish_reason else ""


def _scores_table(found: CardEvidence) -> Table:
    """The scores of a scorecard, one line per metric: by people's overrides too, and what missing parts could make."""
    card, rows = found.card, []
    for name, value in card.scores.items():
        bounds = card.bounds.get(name)
        written = partial(number, scale=found.scales.get(name, 1.0), decimals=found.decimals.get(name, 2))
        shown = written(value) if value is not None else f"unscored: {card.reasons.get(name)}"
        could, parts = "", ""
        if bounds is not None and bounds.low != bounds.high:
            low, high = ("unbounded" if end is None else written(end) for end in (bounds.low, bounds.high))
            could, parts = f"{low} to {high}", f"{bounds.answered:,} of {bounds.parts:,}"
        edited = found.edited.get(name)
        rows.append((name, shown, "" if edited is None else written(edited), could, parts))
    columns = (
        Column("metric", words=True),
        Column("score"),
        Column("edited by people"),
        Column("could become"),
        Column("parts answered", spare=1),
    )
    kept = [at for at, column in enumerate(columns) if column.words or any(row[at] for row in rows)]
    return Table.of(
        columns=tuple(columns[at] for at in kept), blocks=[[tuple(row[at] for at in kept) for row in rows]]
    )
