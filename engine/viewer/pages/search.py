"""The search page: finds words in a run, stops after 0.2 s or fifty hits, and continues on request."""

import asyncio
import time
from collections.abc import Collection, Iterator
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.formats.dataset import Dataset
from adjudge.engine.store.journal import live_parts, open_part
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.pages import PAGES
from adjudge.engine.store.part import TableKind
from adjudge.engine.store.place import Place
from adjudge.engine.viewer.data.index import CardIndex
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import QuestionQuery, ReportQuery, SearchQuery, address
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.scoring.contract.scorecard import Evidence, Scorecard

AT_MOST = 50
SECONDS = 0.2
_AROUND = 160
_BATCH = 256

Steps = Iterator[tuple[int, "Find | None"]]
_WHERE = [
    ("statements", "statements and criteria"),
    ("answers", "raw answers"),
    ("pages", "pages"),
    ("reports", "reports"),
    ("tasks", "tasks"),
]


async def search_page(run: OpenRun, frame: Frame, query: SearchQuery) -> str:
    """The places where the words were found, and a link that continues the search."""
    found = None
    if query.q.strip():
        found = await asyncio.to_thread(found_of, await _steps(run, query))
    return frame.show(
        "search.html.jinja",
        f"Search: {query.q}" if found else "Search",
        words=query.q,
        here="search",
        query=query,
        where=_WHERE,
        found=found,
        more=address("search", query, after=found.after) if found else "",
    )


async def _steps(run: OpenRun, query: SearchQuery) -> Steps:
    if query.where == "statements":
        return in_statements(await run.cards(), query.q, query.after)
    if query.where == "answers":
        judges = frozenset(judge.fingerprint for judge in run.record.judging.each)
        return in_answers(run.run.place, judges, query.q, query.after)
    if query.where == "pages":
        return in_pages(run.run.place, run.record.pages, query.q, query.after)
    look = in_reports if query.where == "reports" else in_tasks
    return look(await run.dataset(), query.q, query.after)


class Find(msgspec.Struct, frozen=True):
    """A place where the words were found: its title, its address, and the text around the words."""

    title: str
    link: str
    before: str
    words: str
    after: str

    @classmethod
    def of(cls, title: str, link: str, text: str, words: str) -> "Find":
        """The first place of `words` in `text`."""
        at = text.lower().find(words.lower())
        start, end = max(0, at), max(0, at) + (len(words) if at >= 0 else 0)
        before = text[max(0, start - _AROUND) : start]
        return cls(title, link, before, text[start:end], text[end : end + _AROUND])


class Finds(msgspec.Struct, frozen=True):
    """The places found, and where to continue; None at the end."""

    finds: list[Find]
    after: int | None


def found_of(steps: Steps) -> Finds:
    """The finds of `steps` until there are fifty or the time is up."""
    began = time.monotonic()
    finds: list[Find] = []
    for place, find in steps:
        if find is not None:
            finds.append(find)
        if len(finds) >= AT_MOST or time.monotonic() - began > SECONDS:
            return Finds(finds, place)
    return Finds(finds, None)


def in_tasks(dataset: Dataset, words: str, after: int) -> Steps:
    """In ids and prompts of tasks."""
    for place, task in enumerate(list(dataset.tasks.values())[after:], after):
        text = f"{task.id} {task.prompt}"
        hit = words.lower() in text.lower()
        yield (
            place + 1,
            (Find.of(f"task {task.id}", address("task", task=task.id), text, words) if hit else None),
        )


def in_reports(dataset: Dataset, words: str, after: int) -> Steps:
    """In the texts of reports."""
    for place, located in enumerate(dataset.reports[after:], after):
        text = located.load().text
        if words.lower() not in text.lower():
            yield place + 1, None
            continue
        link = address(
            "report", ReportQuery(system=located.system, task=located.task_id, sample=located.sample)
        )
        yield place + 1, Find.of(f"{located.system}, task {located.task_id}", link, text, words)


def in_statements(cards: CardIndex, words: str, after: int) -> Steps:
    """In scorecards' evidence: statements, criteria, outcomes, URLs, and what the judge quotes."""
    inside = msgspec.json.encode(words.encode("utf-8", "replace").decode())[1:-1].decode()
    for place, card in cards.scan(after, inside):
        yield place, None if card is None else _statement(card, words)


def searched(line: Evidence) -> str:
    """All of a line of evidence that is searched."""
    return " · ".join(
        filter(None, (line.what, line.outcome.words, line.reason, line.url, line.note, line.quote))
    )


def _statement(card: Scorecard, words: str) -> Find | None:
    """The first line of evidence with `words`, and how many more there are."""
    texts = enumerate(map(searched, card.evidence), 1)
    lines = [(n, text) for n, text in texts if words.lower() in text.lower()]
    if not lines:
        return None
    number, text = lines[0]
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    title = f"{card.protocol}: {card.system}, task {card.task_id}, line {number}{more}"
    return Find.of(title, address("evidence", ReportQuery.of(card), n=number), text, words)


def in_answers(store: Place, judges: Collection[str], words: str, after: int) -> Steps:
    """In the raw replies of the judges with the fingerprints `judges`, for any run."""
    columns = ["key", "question", "text", "judge"]
    for place, row in _rows(store, JUDGMENTS, columns, ("text",), words, after):
        if row is None or row["judge"] not in judges:
            yield place, None
            continue
        key = row["key"].hex()
        link = address("question", QuestionQuery(key=key))
        yield place, Find.of(f"{row['question']} {key}", link, row["text"], words)


def in_pages(store: Place, source: str, words: str, after: int) -> Steps:
    """In URLs, titles and texts of the pages that were read from `source`."""
    columns = ["source", "url", "title", "text"]
    for place, row in _rows(store, PAGES, columns, ("url", "title", "text"), words, after):
        if row is None or row["source"] != source:
            yield place, None
            continue
        held = [row[name] for name in ("text", "title", "url") if words.lower() in row[name].lower()]
        yield (
            place,
            Find.of(
                row["title"] or row["url"], address("page", url=row["url"]), held[0] if held else "", words
            ),
        )


def _rows(
    store: Place, kind: TableKind[Any], columns: list[str], inside: tuple[str, ...], words: str, after: int
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """(place, row) for rows with `words` in a column of `inside`, and (place, None) in between."""
    place = store / kind.name
    part, first = after >> 32, after & 0xFFFFFFFF
    for number, name in enumerate(live_parts(place)[part:], part):
        file = open_part(place, kind, name)
        start = 0
        for group, rows in enumerate(file.groups):
            end = start + rows
            if number > part or end > first:
                at = start
                for batch in file.batches(group, columns, _BATCH):
                    for row in _holding(batch, inside, words):
                        if number > part or at + row >= first:
                            yield (number << 32) + at + row + 1, batch.slice(row, 1).to_pylist()[0]
                    at += len(batch)
                yield (number << 32) + end, None
            start = end


def _holding(rows: pa.RecordBatch, inside: tuple[str, ...], words: str) -> list[int]:
    wanted = words.encode("utf-8", "replace").decode()
    columns = (pc.match_substring(rows[name], wanted, ignore_case=True) for name in inside)
    found = reduce(pc.or_, columns)
    return [place for place, hit in enumerate(found.to_pylist()) if hit]
