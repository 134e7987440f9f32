"""The evidence behind a score: every question, answer, page and reason of one report in one run."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.records.record import RunRecord
from adjudge.engine.store import JudgmentStore, PageStore, Place
from adjudge.engine.store.scorecards import find_cards
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["AskedQuestion", "CardEvidence", "ReadPage", "find_evidence"]


class AskedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A stored judgment: `answer` is its JSON, or None with the reason."""

    key: str
    question: str
    answer: Any
    reason: str | None
    text: str
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

    `scales` are what tables multiply its scores by.
    """

    card: Scorecard
    questions: tuple[AskedQuestion, ...]
    pages: tuple[ReadPage, ...]
    scales: dict[str, float] = {}


def find_evidence(run: str, task: str, system: str) -> list[CardEvidence]:
    """The evidence for `system`'s reports to `task` in the run folder `run`, by protocol, sample and repeat.

    Raises UsageError if the run has no such report, StoreError if its store cannot be read.
    """
    record = RunRecord.read(Path(run)).found_from_here(Path(run))
    place = Place.of(record.config.store)
    cards = find_cards(place, record.run, system, task)
    if not cards:
        raise UsageError(_not_there(record, task, system, place))
    return asyncio.run(_with_rows(place, record, cards))


async def _with_rows(place: Place, record: RunRecord, cards: list[Scorecard]) -> list[CardEvidence]:
    judgments, pages = JudgmentStore(place), PageStore(place, record.pages)
    await judgments.open(every=True)
    await pages.open(every=True)
    found = []
    for card in cards:
        rows = [(key, await judgments.raw(bytes.fromhex(key))) for key in card.judgments]
        read = [await pages.get(url) for url in card.pages]
        found.append(
            CardEvidence(
                card=card,
                questions=tuple(
                    AskedQuestion(
                        key=key,
                        question=row.question,
                        answer=None if row.answer is None else msgspec.json.decode(row.answer),
                        reason=row.reason,
                        text=row.text,
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
                scales={metric.name: metric.scale for metric in record.metrics.get(card.protocol, ())},
            )
        )
    return found


def _not_there(record: RunRecord, task: str, system: str, place: Place) -> str:
    if system not in record.systems:
        return f"system: {system!r} is not in this run; {nearest(system, record.systems)}"
    if task not in record.tasks:
        return f"task: {task!r} is not in this run; {nearest(task, record.tasks)}"
    return (
        f"task: run {record.run} has no scorecard of {system!r} for {task!r} in {place.uri}; "
        "choose a task that this system has a report for"
    )
