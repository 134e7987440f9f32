"""For any page: a report with its statements marked, and lines of evidence (statements, criteria with points)."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import msgspec
from markupsafe import Markup

from adjudge.engine.runs.people import Said
from adjudge.engine.tables.cells import number
from adjudge.engine.tables.page import render
from adjudge.engine.viewer.data.index import KINDS
from adjudge.engine.viewer.data.marked_text import (
    PART_CHARS,
    Mark,
    MarkedText,
    Source,
    marked_text,
    source_of,
)
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.passages import Span, said_at
from adjudge.engine.viewer.data.query import ReportQuery, address
from adjudge.scoring.contract.case import Citation, Unread
from adjudge.scoring.contract.protocol import ExplainedCriterion
from adjudge.scoring.contract.scorecard import Evidence, Outcome, Scorecard
from adjudge.scoring.text.aside import aside, storable

MAX_WHAT = 400


_STATEMENTS = frozenset({"supported", "unsupported", "unknown", "unreachable"})
_GROUP = re.compile(r"([a-z][a-z_ ]{2,39}): ")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Line `n` of a scorecard's evidence, counted from 1.

    `kind` is the outcome's if that is one of KINDS, else empty, `group` what several criteria belong to (a dimension, a
    tag), `weight` the share of the whole in percent, `host` the source's. `looked_for` is what to find in the report,
    empty if nothing is. `people` is what people said of it.
    """

    n: int
    what: str
    said: str
    outcome: Outcome
    kind: str
    sign: str
    group: str = ""
    reason: str = ""
    note: str = ""
    quote: str = ""
    url: str = ""
    host: str = ""
    judgment: str = ""
    explanation: str = ""
    weight: str = ""
    looked_for: str = ""
    people: tuple[Said, ...] = ()

    @property
    def clipped(self) -> str:
        """The judged text, cut if it is long."""
        return self.what if len(self.what) <= MAX_WHAT else f"{self.what[:MAX_WHAT]}…"

    @property
    def is_statement(self) -> bool:
        """Whether it is a statement of the report, not a criterion."""
        return bool(self.looked_for) and not self.quote

    @property
    def has_bar(self) -> bool:
        """Whether its points are drawn as a bar: some of so many, none of them taken away."""
        points, most = self.outcome.points, self.outcome.most
        return points is not None and points >= 0.0 and bool(most)

    @property
    def by_people(self) -> str:
        """Whether people "agree" with the judge, or at least one "differs"; empty without labels."""
        if not self.people:
            return ""
        return "agree" if all(one.agrees for one in self.people) else "differ"

    @property
    def label(self) -> str:
        """The text a screen reader reads for its sign and number."""
        return f"{self.n}: {self.said or 'no outcome'}"


def lines_of(
    card: Scorecard,
    explained: Iterable[ExplainedCriterion] = (),
    reasons: Mapping[int, str] = MappingProxyType({}),
    people: Mapping[int, tuple[Said, ...]] = MappingProxyType({}),
    numbers: Iterable[int] | None = None,
) -> list[Line]:
    """The lines of `card`, or those with these `numbers` (from 1), with what is known of its criteria.

    `reasons` are the judge's by the line's number, `people` what people said of it.
    """
    numbers = range(1, len(card.evidence) + 1) if numbers is None else numbers
    known = {one.what: one for one in explained}
    stated = any(line.outcome.kind in _STATEMENTS for line in card.evidence)
    groups = _groups(card.evidence)
    lines = []
    for n in numbers:
        line = card.evidence[n - 1]
        shown = _line(n, line, known.get(line.what), groups, stated, reasons.get(n, ""))
        lines.append(msgspec.structs.replace(shown, people=people[n]) if n in people else shown)
    return lines


def _line(
    n: int, line: Evidence, known: ExplainedCriterion | None, groups: set[str], stated: bool, reason: str
) -> Line:
    kind = line.outcome.kind
    about = KINDS.get(kind)
    begun = _GROUP.match(line.what)
    group = begun[1] if begun and begun[1] in groups else ""
    what = line.what[len(group) + 2 :] if group else line.what
    statement = kind in _STATEMENTS or (kind == "missing" and bool(stated or line.url))
    extra: dict[str, Any] = {}
    if known is not None:
        weight = "" if known.weight is None else f"{number(known.weight, 100)} %"
        extra = {"explanation": known.explanation, "weight": weight}
        group = group or ", ".join(known.tags)
    return Line(
        n=n,
        what=what,
        said=_said(line),
        kind=kind if about else "",
        sign=about.sign if about else "",
        group=group.replace("_", " "),
        reason=line.reason,
        note=line.note or reason,
        quote=line.quote,
        url=line.url,
        host=_host(line.url),
        judgment=line.judgment,
        outcome=line.outcome,
        looked_for=line.quote or (what if statement else ""),
        **extra,
    )


def _said(line: Evidence) -> str:
    """The outcome in words; of what can only cost points, whether it did."""
    outcome = line.outcome
    if outcome.points is not None and outcome.most == 0.0:
        return f"{-outcome.points:g} points taken away" if outcome.points else "no points taken away"
    return outcome.words or line.reason


def _groups(lines: Sequence[Evidence]) -> set[str]:
    """The words before a colon with which several lines begin."""
    begun = Counter(found[1] for line in lines if (found := _GROUP.match(line.what)))
    return {name for name, count in begun.items() if count > 1}


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.") or url[:100]
    except ValueError:
        return url[:100]


class Piece(msgspec.Struct, frozen=True):
    """Characters of a text as it was written, marked or not."""

    text: str
    mark: Mark | None = None

    @property
    def chips(self) -> Markup:
        """The chips of its mark, which are HTML."""
        return Markup(self.mark.chips if self.mark else "")


class MarkedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a report's text as HTML with marks and chips, or as it was written (`raw`).

    `lines` are those of the evidence in the order of the text: those about this part, then those that were not found in
    it. `elsewhere` counts those about other parts, `lost` those not found. `why` says why an unrendered text is raw.
    """

    html: Markup
    raw: bool
    why: str
    part: int
    parts: int
    lines: tuple[Line, ...]
    elsewhere: int
    lost: int


async def marked_report(
    run: OpenRun, query: ReportQuery, lines: Sequence[Line], *, anchors: bool = True
) -> MarkedReport:
    """The report of `query` with the `lines` of its evidence (`lines_of`) marked in it. Raises NotThere.

    Chips lead to the pages of evidence. With `anchors` they have ids (`s` and the line's number), which a page that
    shows two reports cannot have.
    """
    report = (await run.case(query)).report
    text = source_of(storable(report.text))
    found = await _found(text, lines, report.citations)
    marks = [
        _mark(span, about, query, anchors) for span, about in _merged(text, found)
    ]  # fmt: skip
    shown, why = await _shown(text, marks, query)
    if shown.html is None:
        pieces = list(_pieces(text, shown.start, shown.end, marks))
        html = await asyncio.to_thread(render, "raw_text.html.jinja", __package__, pieces=pieces)
    else:
        html = shown.html
    start, end = shown.start, shown.end
    here = [line for span, line in found if span is not None and start <= span.start < end]
    lost = [line for span, line in found if span is None]
    looked_for = {line.n for _, line in found}
    return MarkedReport(
        html=Markup(html),
        raw=shown.html is None,
        why=why,
        part=shown.part,
        parts=shown.parts,
        lines=(*here, *lost, *(line for line in lines if line.n not in looked_for)),
        elsewhere=len(found) - len(here) - len(lost),
        lost=len(lost),
    )


async def _found(
    text: str, lines: Sequence[Line], handed: tuple[Citation, ...]
) -> list[tuple[Span | None, Line]]:
    """The lines that are about something in the text, where it is, in the order of the text; those not found last."""
    wanted = [line for line in lines if line.looked_for]
    try:
        spans = await aside(said_at, text, [line.looked_for for line in wanted], handed) if wanted else []
    except Unread:
        spans = [None] * len(wanted)
    end = Span(len(text), len(text))
    return sorted(zip(spans, wanted, strict=True), key=lambda one: (one[0] or end, one[1].n))


async def _shown(text: Source, marks: list[Mark], query: ReportQuery) -> tuple[MarkedText, str]:
    """The part of the text that is shown, and why it is not rendered, if that is not what was asked for."""
    rendered = query.text != "raw"
    try:
        shown = await aside(marked_text, text, marks, query.part, rendered)
    except Unread as error:
        parts = max(1, -(-len(text) // PART_CHARS))
        part = min(query.part, parts)
        start = (part - 1) * PART_CHARS
        return MarkedText(None, part, parts, start, min(start + PART_CHARS, len(text))), str(error)
    if not rendered or shown.html is not None:
        return shown, ""
    return shown, "its Markdown is too long or too deeply nested to be rendered"


def _merged(text: str, found: Iterable[tuple[Span | None, Line]]) -> list[tuple[Span, list[Line]]]:
    """Passages in the order of the text, with the lines about them; those that overlap are one."""
    passages: list[tuple[Span, list[Line]]] = []
    for span, line in found:
        if span is None:
            continue
        if passages and span.start < passages[-1][0].end:
            last, about = passages.pop()
            passages.append((Span(last.start, max(last.end, span.end)), [*about, line]))
        else:
            passages.append((span, [line]))
    return passages


def _mark(span: Span, about: list[Line], query: ReportQuery, anchors: bool) -> Mark:
    kinds = {line.kind or "quoted" for line in about}
    chips = render(
        "chips.html.jinja",
        __package__,
        chips=[(line, address("evidence", query, n=line.n, part=1, text="")) for line in about],
        anchors=anchors,
    )
    numbers = " ".join(str(line.n) for line in about)
    return Mark(span.start, span.end, kinds.pop() if len(kinds) == 1 else "mixed", numbers, chips.strip())


def _pieces(text: str, start: int, end: int, marks: Iterable[Mark]) -> Iterator[Piece]:
    at = start
    for mark in marks:
        low, high = max(mark.start, at), min(mark.end, end)
        if low < high:
            yield Piece(text[at:low])
            yield Piece(text[low:high], mark)
            at = high
    yield Piece(text[at:end])
