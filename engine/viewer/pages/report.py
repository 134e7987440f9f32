"""A report with its cited statements marked by verdict, and one line of evidence with the page it rests on."""

import asyncio
import re
from collections.abc import Iterable, Sequence

import msgspec

from adjudge.engine.leaderboard.missing import explained
from adjudge.engine.rendering.cells import number
from adjudge.engine.rendering.markup import Markup, join, tag
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.passages import Span, nearest, said_at
from adjudge.engine.viewer.data.query import EvidenceQuery, NotThere, QuestionQuery, ReportQuery, address
from adjudge.engine.viewer.pages.frame import (
    Frame,
    facts,
    link_out,
    part_of,
    parts,
    verdict_of,
)
from adjudge.fetchers.page import Page
from adjudge.scoring.contract.case import Report, Unread
from adjudge.scoring.contract.scorecard import Evidence, Scorecard
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.references import url_key

__all__ = ["evidence_page", "page_text", "report_crumbs", "report_page"]

MAX_LINES = 500
_HEADING = re.compile(r"^ {0,3}#{1,6} .*$", re.MULTILINE)


class _Place(msgspec.Struct, frozen=True):
    """A passage of a report, and the lines of evidence about it, counted from 1."""

    span: Span
    lines: tuple[int, ...]


async def report_page(run: OpenRun, frame: Frame, query: ReportQuery) -> str:
    """One report under one protocol."""
    cards = await run.find_cards(query)
    card = _chosen(cards, query.protocol)
    query = msgspec.structs.replace(query, protocol=card.protocol)
    try:
        case = await run.case(query)
    except NotThere as error:
        text = tag("p", f"{str(error)[:1].upper()}{str(error)[1:]}.", class_="note")
    else:
        cited = _cited(card)
        report = case.report
        try:
            spans = await aside(
                said_at, storable(report.text), [line.what for _, line in cited], report.citations
            )
        except Unread:
            spans = [None] * len(cited)
        text = await asyncio.to_thread(_report_text, report, card, query, spans)
    tabs = [
        tag("li", tag("a", one.protocol, href=_at(query, one), aria_current="page" if one is card else None))
        for one in cards
    ]
    others = await asyncio.to_thread(_siblings, run, query)
    return frame.page(
        f"{query.system}: {query.task}",
        tag("nav", tag("ul", *tabs), aria_label="Protocols", class_="tabs"),
        _scores(run, card),
        others,
        tag(
            "p",
            tag("a", f"Questions ({len(card.judgments):,})", href=address("questions", query)),
            tag("a", "Difference to the other run", href=address("difference", query))
            if frame.other
            else None,
            class_="links",
        ),
        tag(
            "div",
            tag("section", tag("h2", "Report", id="report"), text, aria_labelledby="report"),
            tag(
                "section",
                tag("h2", "Evidence", id="evidence"),
                _lines(card, query),
                aria_labelledby="evidence",
            ),
            class_="beside",
        ),
        crumbs=report_crumbs(query)[:-1],
    )


def _at(query: ReportQuery, card: Scorecard) -> str:
    return address("report", query, protocol=card.protocol, part=1)


def _chosen(cards: Sequence[Scorecard], protocol: str) -> Scorecard:
    if not protocol:
        return cards[0]
    for card in cards:
        if card.protocol == protocol:
            return card
    raise NotThere(f"this report has no scorecard under {protocol!r}")


def report_crumbs(query: ReportQuery) -> list[tuple[str, str]]:
    """The pages above a page about a report: the system, the task, the report itself."""
    return [
        ("Systems", "./"),
        (query.system, address("system", system=query.system)),
        (f"Task {query.task}", address("task", task=query.task)),
        (
            "Report",
            address(
                "report",
                ReportQuery(
                    system=query.system,
                    task=query.task,
                    sample=query.sample,
                    repeat=query.repeat,
                    protocol=query.protocol,
                ),
            ),
        ),
    ]


def _scores(run: OpenRun, card: Scorecard) -> Markup:
    scales = {metric.name: metric.scale for metric in run.record.metrics.get(card.protocol, ())}
    values = [(name, _shown(card, name, value, scales.get(name, 1.0))) for name, value in card.scores.items()]
    status = card.status if card.reason is None else f"{card.status}: {card.reason}"
    figures = [*values, ("status", status), ("sample, repeat", f"{card.sample}, {card.repeat}")]
    lacking = dict.fromkeys([*card.reasons.values(), *([card.reason] if card.reason else [])])
    notes = [tag("p", f"{explained(reason)}.", class_="note") for reason in lacking]
    return join(facts(figures, "figures-row"), *notes)


def _shown(card: Scorecard, name: str, value: float | None, scale: float) -> str:
    """A value or the reason there is none, and the bounds of what misses parts."""
    text = number(value, scale) if value is not None else str(card.reasons.get(name, "-"))
    found = card.bounds.get(name)
    if found is None or found.low == found.high:
        return text
    return f"{text} ({number(found.low, scale)} to {number(found.high, scale)})"


def _siblings(run: OpenRun, query: ReportQuery) -> Markup | None:
    """Links to the other samples and repeats of the same system and task."""
    rows = run.scores.select(
        ["sample", "repeat"], system=query.system, task_id=query.task, protocol=query.protocol
    )
    others = sorted(set(zip(rows["sample"].to_pylist(), rows["repeat"].to_pylist(), strict=True)))
    if len(others) < 2:
        return None
    links = [
        tag(
            "li",
            tag(
                "a",
                f"sample {sample}, repeat {repeat}",
                href=address("report", query, sample=sample, repeat=repeat, part=1),
                aria_current="page" if (sample, repeat) == (query.sample, query.repeat) else None,
            ),
        )
        for sample, repeat in others
    ]
    return tag("nav", tag("ul", *links), aria_label="Samples and repeats", class_="tabs")


def _cited(card: Scorecard) -> list[tuple[int, Evidence]]:
    """The lines of evidence that have a verdict, with their numbers from 1."""
    return [(n, line) for n, line in enumerate(card.evidence, 1) if verdict_of(line.outcome, line.reason)[1]]


def _report_text(report: Report, card: Scorecard, query: ReportQuery, spans: Sequence[Span | None]) -> Markup:
    """The report's text with its statements marked."""
    if not report.text.strip():
        return tag("p", "The report is empty.", class_="note")
    places = _merged(zip(spans, (n for n, _ in _cited(card)), strict=True))
    start, end = part_of(report.text, query.part)
    shown = [_Place(Span(max(p.span.start, start), min(p.span.end, end)), p.lines) for p in places]
    shown = [place for place in shown if place.span.start < place.span.end]
    lost = sum(span is None for span in spans)
    return join(
        tag("p", f"{lost} statements were not found in the text; they are in the list.", class_="quiet")
        if lost
        else None,
        parts(report.text, query.part, "report", query),
        tag("div", *_marked(report.text, start, end, shown, card, query), class_="text report", dir="auto"),
    )


def _merged(found: Iterable[tuple[Span | None, int]]) -> list[_Place]:
    """Places in the order of the text; those that overlap are one."""
    places: list[_Place] = []
    for span, line in sorted((span, line) for span, line in found if span is not None):
        if places and span.start < places[-1].span.end:
            last = places.pop()
            span = Span(last.span.start, max(last.span.end, span.end))
            places.append(_Place(span, (*last.lines, line)))
        else:
            places.append(_Place(span, (line,)))
    return places


def _marked(
    text: str, start: int, end: int, places: Sequence[_Place], card: Scorecard, query: ReportQuery
) -> Iterable[Markup | str]:
    at = start
    for place in places:
        yield from _plain(text[at : place.span.start])
        kinds = {
            verdict_of(card.evidence[n - 1].outcome, card.evidence[n - 1].reason)[1] for n in place.lines
        }
        kind = kinds.pop() if len(kinds) == 1 else "mixed"
        yield tag("mark", text[place.span.start : place.span.end], class_=f"v-{kind}")
        for n in place.lines:
            yield _chip(card.evidence[n - 1], n, query, anchor=True)
        at = place.span.end
    yield from _plain(text[at:end])


def _plain(text: str) -> Iterable[str]:
    """Text with its Markdown headings in bold."""
    at = 0
    for heading in _HEADING.finditer(text):
        yield text[at : heading.start()]
        yield tag("strong", heading[0])
        at = heading.end()
    yield text[at:]


def _chip(line: Evidence, n: int, query: ReportQuery, anchor: bool = False) -> Markup:
    """The sign and number of a line of evidence, linked to it."""
    sign, kind = verdict_of(line.outcome, line.reason)
    said = line.outcome or line.reason or "no outcome"
    return tag(
        "a",
        f"{sign}{n}",
        href=address("evidence", query, n=n, part=1),
        class_=f"chip v-{kind}" if kind else "chip",
        id=f"s{n}" if anchor else None,
        data_panel=True,
        aria_label=f"{n}: {said}",
    )


def _lines(card: Scorecard, query: ReportQuery) -> Markup:
    if not card.evidence:
        return tag("p", "No evidence.", class_="quiet")
    lines = []
    for n, line in enumerate(card.evidence[:MAX_LINES], 1):
        said = " ".join(filter(None, (line.outcome, f"({line.reason})" if line.reason else "")))
        lines.append(
            tag(
                "li",
                _chip(line, n, query),
                " ",
                tag("span", line.what if len(line.what) <= 400 else f"{line.what[:400]}…", dir="auto"),
                tag("br"),
                tag("span", said, class_="quiet"),
                tag("span", " ", link_out(line.url), class_="quiet") if line.url else None,
                *(
                    tag("span", tag("br"), f"{name}: {text}", class_="quiet", dir="auto")
                    for name, text in (("reason given", line.note), ("quoted", line.quote))
                    if text
                ),
            )
        )
    more = len(card.evidence) - MAX_LINES
    return join(
        tag("ul", *lines, class_="evidence"),
        tag(
            "p",
            f"{more:,} more lines: ",
            tag("a", "the next", href=address("evidence", query, n=MAX_LINES + 1)),
        )
        if more > 0
        else None,
    )


async def evidence_page(run: OpenRun, frame: Frame, query: EvidenceQuery) -> str:
    """One line of evidence: the verdict, the question it answers, and the page with the passage nearest to it."""
    card = _chosen(await run.find_cards(query), query.protocol)
    query = msgspec.structs.replace(query, protocol=card.protocol)
    if query.n > len(card.evidence):
        raise NotThere(f"this scorecard has {len(card.evidence)} lines of evidence")
    line = card.evidence[query.n - 1]
    sign, kind = verdict_of(line.outcome, line.reason)
    question = QuestionQuery(
        key=line.judgment or "0" * 32, system=query.system, task=query.task, sample=query.sample,
        repeat=query.repeat, protocol=query.protocol,
    )  # fmt: skip
    asked = tag("a", "question and answer", href=address("question", question))
    steps = [("Previous", query.n - 1), ("Next", query.n + 1)]
    return frame.page(
        f"Evidence {query.n} of {len(card.evidence)}",
        tag("blockquote", line.what, dir="auto", class_="text"),
        facts(
            [
                (
                    "Verdict",
                    tag("span", f"{sign} {line.outcome or 'none'}", class_=f"v-{kind}" if kind else None),
                ),
                ("Reason", line.reason),
                ("Reason given", line.note),
                ("Quoted", line.quote),
                ("Source", link_out(line.url) if line.url else None),
                ("Question", asked if line.judgment else None),
            ]
        ),
        tag(
            "nav",
            *(
                tag("a", text, href=address("evidence", query, n=n, part=1), data_panel=True)
                for text, n in steps
                if 1 <= n <= len(card.evidence)
            ),
            aria_label="Lines of evidence",
            class_="pager",
        ),
        await _source(run, line, query) if line.url else None,
        crumbs=report_crumbs(query),
    )


async def _source(run: OpenRun, line: Evidence, query: EvidenceQuery) -> Markup:
    _, pages = await run.stores()
    page = await pages.get(url_key(line.url))
    if page is None:
        return tag("p", "The store does not hold this page.", class_="note")
    try:
        window = await aside(nearest, storable(page.text), storable(line.what))
    except Unread:
        window = None
    return page_text(page, query.part, "evidence", query, window)


def page_text(page: Page, part: int, path: str, query: msgspec.Struct, window: Span | None = None) -> Markup:
    """A page's facts and text, `window` marked; the first part shown is the one that holds it."""
    about = facts(
        [
            ("Title", page.title),
            ("Led to", link_out(page.final_url) if page.final_url != page.url else None),
            ("Status", page.status if page.reason is None else f"{page.status}: {page.reason}"),
            ("What happened", page.detail),
            ("Type", page.content_type),
            ("Characters", f"{len(page.text):,}"),
            ("SHA-256", tag("code", page.sha256) if page.sha256 else None),
        ]
    )
    if window is not None and part == 1:
        part = 1 + window.start // 100_000
    start, end = part_of(page.text, part)
    shown: list[str] = [page.text[start:end]]
    if window is not None and window.start < end and window.end > start:
        low, high = max(window.start, start), min(window.end, end)
        shown = [
            page.text[start:low],
            tag("mark", page.text[low:high], class_="window", id="window", tabindex="-1"),
            page.text[high:end],
        ]
    return tag(
        "section",
        tag("h2", "Page", id="page-title"),
        about,
        tag("p", "Marked: the passage nearest to the statement, by its words and figures.", class_="quiet")
        if window
        else None,
        parts(page.text, part, path, query),
        tag("div", *shown, class_="text page", dir="auto", tabindex="0")
        if page.text
        else tag("p", "This page has no text.", class_="note"),
        aria_labelledby="page-title",
    )
