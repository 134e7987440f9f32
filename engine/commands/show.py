"""`adjudge show`: the evidence behind a score, every question, answer, page and reason of one report in one run."""

import argparse
import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.notices import unfinished
from adjudge.engine.commands.output import out, print_result, print_table
from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.selection import explained
from adjudge.engine.store.cards import StoredCard, stored
from adjudge.engine.tables.cells import number
from adjudge.engine.tables.table import Column, Table
from adjudge.scoring.contract.scorecard import Scorecard


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

    `scales` are what tables multiply its scores by, `decimals` how many they write.
    """

    card: StoredCard
    questions: tuple[AskedQuestion, ...]
    pages: tuple[ReadPage, ...]
    scales: dict[str, float] = {}
    decimals: dict[str, int] = {}


def find_evidence(run: str, task: str, system: str) -> list[CardEvidence]:
    """The evidence for `system`'s reports to `task` in the run folder `run`, by protocol, sample and repeat.

    Raises UsageError if the run has no such report, StoreError if its store cannot be read.
    """
    opened = Run.open(run)
    cards = opened.cards_of(system, task)
    if not cards:
        raise UsageError(_not_there(opened, task, system))
    return asyncio.run(_with_rows(opened, cards))


async def _with_rows(run: Run, cards: list[Scorecard]) -> list[CardEvidence]:
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
    found = find_evidence(options.run_folder, options.task, options.system)
    print_result(options, found, _print_evidence)
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
        for line in card.evidence:
            source = f"  {line.url}" if line.url else ""
            reason = f" ({line.reason})" if line.reason else ""
            console.print(f"  - {line.what}\n    {line.outcome}{reason}{source}", markup=False)
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


def _fault(asked: AskedQuestion) -> str:
    """What in an unreadable reply is wrong, behind the reason."""
    return f"; {asked.finish_reason}" if asked.reason == "judge_unparseable" and asked.finish_reason else ""


def _scores_table(found: CardEvidence) -> Table:
    """The scores of a scorecard, one line per metric, and what those with missing parts could become."""
    card, rows = found.card, []
    for name, value in card.scores.items():
        bounds = card.bounds.get(name)
        written = partial(number, scale=found.scales.get(name, 1.0), decimals=found.decimals.get(name, 2))
        shown = written(value) if value is not None else f"unscored: {card.reasons.get(name)}"
        could, parts = "", ""
        if bounds is not None and bounds.low != bounds.high:
            low, high = ("unbounded" if end is None else written(end) for end in (bounds.low, bounds.high))
            could, parts = f"{low} to {high}", f"{bounds.answered:,} of {bounds.parts:,}"
        rows.append((name, shown, could, parts))
    columns = (
        Column("metric", words=True),
        Column("score"),
        Column("could become"),
        Column("parts answered", spare=1),
    )
    shown_columns = columns if any(row[2] for row in rows) else columns[:2]
    return Table.of(columns=shown_columns, blocks=[[row[: len(shown_columns)] for row in rows]])
