"""A report's questions: all of them, one with its rendered prompt and raw answer, and the pages that were read."""

import asyncio
import time

import msgspec

from adjudge.engine.store.judgments import JudgmentRow
from adjudge.engine.viewer.data.index import CardIndex
from adjudge.engine.viewer.data.open_run import AskedQuestion, OpenRun
from adjudge.engine.viewer.data.query import (
    NotThere,
    PageQuery,
    QuestionQuery,
    QuestionsQuery,
    ReportQuery,
    address,
)
from adjudge.engine.viewer.pages.frame import Column, Frame, Listing, Row
from adjudge.engine.viewer.pages.report import page_text, report_crumbs
from adjudge.judges.question import words_of

MAX_SHOWN = 1_000_000
_CLIPPED = 160


async def questions_page(run: OpenRun, frame: Frame, query: QuestionsQuery) -> str:
    """Every question about a report under one protocol."""
    cards = {card.protocol: card for card in await run.find_cards(query.report)}
    protocol = query.protocol or next(iter(cards))
    if protocol not in cards:
        raise NotThere(f"this report has no scorecard under {protocol!r}")
    query = msgspec.structs.replace(query, protocol=protocol)
    note = None
    try:
        replayed = await run.questions(query.report, protocol)
    except NotThere as error:
        replayed, note = {}, str(error)
    keys = dict.fromkeys([*replayed, *cards[protocol].judgments])
    columns = [Column("question"), Column("about", long=True), Column("outcome"), Column("answer", long=True)]
    listing = Listing.of(
        columns, [{"key": key} for key in keys], "questions", query, at_once=frame.rows, noun="question"
    )
    rows = tuple(
        [await _row(run, row["key"], replayed.get(row["key"]), query.report) for row in listing.rows]
    )
    return frame.show(
        "questions.html.jinja",
        f"Questions about {query.system}: {query.task}",
        crumbs=report_crumbs(query.report),
        note=note,
        listing=msgspec.structs.replace(listing, rows=rows),
    )


async def _row(run: OpenRun, key: str, asked: AskedQuestion | None, query: ReportQuery) -> Row:
    row = await _stored(run, key)
    kind = words_of(asked.question) if asked else row.question if row else "question"
    return {
        "hidden": False,
        "kind": kind,
        "to": address("question", QuestionQuery.of(key, query)),
        "about": _clipped("; ".join(asked.question.fields().values())) if asked else "-",
        "outcome": "not in the store" if row is None else row.reason or row.status,
        "answer": "-" if row is None else _clipped(row.answer or row.text),
    }


def _clipped(text: str) -> str:
    return text if len(text) <= _CLIPPED else f"{text[:_CLIPPED]}…"


async def _stored(run: OpenRun, key: str) -> JudgmentRow | None:
    judgments, _ = await run.stores()
    return await judgments.raw(bytes.fromhex(key))


async def question_page(run: OpenRun, frame: Frame, query: QuestionQuery) -> str:
    """One question: its prompt as sent to a chat model, and the answer."""
    row = await _stored(run, query.key)
    report = query.report or await asyncio.to_thread(_owner, await run.cards(), query.key, row)
    if row is None and report is None:
        raise NotThere(f"the store holds no judgment {query.key}, and no scorecard of this run names it")
    asked, why = await _asked(run, query.key, report)
    messages, note = await _prompt(run, asked) if asked else ([], why)
    return frame.show(
        "question.html.jinja",
        words_of(asked.question).capitalize() if asked else row.question if row else "Question",
        crumbs=report_crumbs(report) if report else (),
        about=(f"{report.system}: {report.task}", address("report", report)) if report else None,
        row=row,
        facts=_facts(row) if row else [],
        raw=_long(row.text if row else ""),
        no_raw=("The answer is the reply itself." if row is not None and row.answer is not None else "None."),
        understood=_long(_pretty(row.answer) if row and row.answer else ""),
        messages=messages,
        note=note,
    )


def _owner(cards: CardIndex, key: str, row: JudgmentRow | None) -> ReportQuery | None:
    """A report of the run whose scorecard names `key`."""
    card = cards.naming(key, row.written_at if row else 0)
    return None if card is None else ReportQuery.of(card)


async def _asked(run: OpenRun, key: str, report: ReportQuery | None) -> tuple[AskedQuestion | None, str]:
    """The question with `key`, or why it is not known."""
    if report is None:
        return None, "Another run with this store asked it; open that run to see its prompt."
    try:
        asked = (await run.questions(report, report.protocol)).get(key)
    except NotThere as error:
        return None, f"The prompt cannot be shown: {error}."
    return asked, "" if asked else (
        "The prompt cannot be shown: the same report leads to other questions now. Its prompts, input or adjudge "
        "changed since the run, or the judge is a panel and this is one member's answer."
    )


async def _prompt(run: OpenRun, asked: AskedQuestion) -> tuple[list[tuple[str, tuple[str, int]]], str]:
    """The messages by role, and what must be said about them."""
    rendered = (await run.replayer()).rendered(asked)
    sent = [(message["role"], _long(message["content"])) for message in rendered]
    judge = asked.judge.name
    return sent, f"As sent to a chat model; the judge {judge} reads no prompt." if judge == "lexical" else ""


def _facts(row: JudgmentRow) -> list[tuple[str, str | None]]:
    tokens = (row.prompt_tokens, row.cached_tokens, row.completion_tokens)
    return [
        ("Status", row.status if row.reason is None else f"{row.status}: {row.reason}"),
        ("Finish reason", row.finish_reason),
        ("Judge", row.judge),
        ("Tokens", f"{tokens[0]:,} of the prompt, {tokens[1]:,} of them cached; {tokens[2]:,} generated"),
        ("Seconds", f"{row.seconds:.3f}"),
        (
            "Written",
            f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(row.written_at / 1e6))} UTC by {row.engine}",
        ),
        ("Key", row.key.hex()),
        ("Context", row.group.hex()),
    ]


def _pretty(answer: str) -> str:
    try:
        return msgspec.json.format(answer.encode("utf-8", "replace"), indent=2).decode()
    except msgspec.MsgspecError:
        return answer


def _long(text: str) -> tuple[str, int]:
    """The shown part of a text, and the number of characters left out."""
    return text[:MAX_SHOWN], max(0, len(text) - MAX_SHOWN)


async def page_page(run: OpenRun, frame: Frame, query: PageQuery) -> str:
    """A page as it was read."""
    _, pages = await run.stores()
    page = await pages.get(query.url)
    if page is None:
        raise NotThere(f"this run's store holds no page {query.url!r}")
    body = page_text(page, query.part, "page", query)
    return frame.show("plain.html.jinja", page.title or page.url, body=body)
