"""A report with its statements marked, wherever a page shows one."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from markupsafe import Markup

from adjudge.engine.rendering.templates import render
from adjudge.engine.viewer.data.marked_text import PART_CHARS, Mark, MarkedText, marked_text
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.passages import Span, said_at
from adjudge.engine.viewer.data.placed_markdown import Source, source_of
from adjudge.engine.viewer.data.query import ReportQuery, address
from adjudge.engine.viewer.pages.lines import Line
from adjudge.scoring.contract.case import Citation, Unread
from adjudge.scoring.text.aside import aside, storable

__all__ = ["MarkedReport", "Piece", "marked_report"]


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
