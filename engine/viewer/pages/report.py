"""A report with its cited statements marked by verdict, and one line of evidence with the page it rests on."""

import shlex
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

import msgspec
from markupsafe import Markup

from adjudge.engine.config.metrics import headlines
from adjudge.engine.runs.items import items_of_card, label_readers
from adjudge.engine.statistics.selection import explained
from adjudge.engine.tables.page import render
from adjudge.engine.viewer.data.index import KINDS
from adjudge.engine.viewer.data.open_run import OpenRun, reasons_given
from adjudge.engine.viewer.data.passages import Span, nearest
from adjudge.engine.viewer.data.query import EvidenceQuery, NotThere, QuestionQuery, ReportQuery, address
from adjudge.engine.viewer.pages.frame import PART_CHARS, Frame, part_of, writer
from adjudge.engine.viewer.pages.marked_report import Line, MarkedReport, lines_of, marked_report
from adjudge.fetchers.page import Page, address_of
from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Unread
from adjudge.scoring.contract.scorecard import Metric, Scorecard
from adjudge.scoring.text.aside import aside, storable

MAX_LINES = 1_000
_SHORT_PROMPT = 240
_AROUND = 200  # characters of a page before and after a passage that is shown alone


class Share(msgspec.Struct, frozen=True):
    """How many lines of evidence are of a kind, and its place in the stacked bar, in percent."""

    kind: str
    sign: str
    words: str
    count: int
    start: float
    width: float


class Score(msgspec.Struct, frozen=True):
    """A metric as it is shown: its value, or the reason there is none, and the bounds of one that misses parts.

    `first` ones are on the leaderboard too. `edited` is the value with people's overrides; "" without any.
    """

    name: str
    value: str
    bounds: str
    first: bool
    edited: str


async def report_page(run: OpenRun, frame: Frame, query: ReportQuery) -> str:
    """One report under one protocol."""
    cards = await run.find_cards(query)
    card = _chosen(cards, query.protocol)
    query = msgspec.structs.replace(query, protocol=card.protocol)
    lines = await _explained_lines(run, card, query)
    report, missing = None, ""
    try:
        report = await marked_report(run, query, lines)
    except NotThere as error:
        missing = f"{str(error)[:1].upper()}{str(error)[1:]}."
    shown = report.lines if report else tuple(lines)
    prompt = (await run.prompts()).get(query.task, "")
    return frame.show(
        "report.html.jinja",
        f"{query.system}: {query.task}",
        crumbs=report_crumbs(query)[:-1],
        query=query,
        card=card,
        protocols=[(one.protocol, _at(query, one), one is card) for one in cards],
        samples=_samples(run, query),
        scores=_scores(run, card),
        notes=_notes(card),
        prompt=prompt,
        long=len(prompt) > _SHORT_PROMPT,
        links=_links(frame, card, query),
        report=report,
        missing=missing,
        steps=_steps(query, report),
        other_text=address(
            "report", query, text="" if report and report.raw and not report.why else "raw", part=1
        ),
        statements=[line for line in shown[:MAX_LINES] if line.is_statement],
        criteria=[line for line in shown[:MAX_LINES] if not line.is_statement],
        unlisted=shown[MAX_LINES:],
        shares=_shares(lines),
        hosts=_counted(line.host for line in shown if line.host),
        groups=_counted(line.group for line in shown if line.group),
        people=_counted(line.by_people for line in shown if line.by_people),
        evidence={line.n: address("evidence", query, n=line.n, part=1, text="") for line in shown},
        questions={line.n: _question(query, line) for line in shown},
    )


async def _explained_lines(run: OpenRun, card: Scorecard, query: ReportQuery) -> list[Line]:
    """The lines of evidence; criteria with their explanations and the judge's reasons."""
    people = {} if run.people is None else run.people.about(card)
    lines = lines_of(card, people=people)
    criteria = [line.n for line in lines if not line.is_statement]
    if not criteria:
        return lines
    judgments, _ = await run.stores()
    silent = {n for n in criteria[:MAX_LINES] if not card.evidence[n - 1].note}
    reasons = await reasons_given(judgments, card.evidence, silent)
    return lines_of(card, await run.explained(query, card.protocol), reasons, people)


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
        ("Systems", address("./")),
        (query.system, address("system", system=query.system)),
        (f"Task {query.task}", address("task", task=query.task)),
        ("Report", address("report", query, part=1, text="", n="")),
    ]


def _scores(run: OpenRun, card: Scorecard) -> list[Score]:
    metrics = {metric.name: metric for metric in run.record.metrics.get(card.protocol, ())}
    ranked = headlines(metrics.values())
    edited = {} if run.people is None else run.people.edited(card)
    return [
        _score(card, name, value, metric, edited.get(name), first=metric.shown or metric in ranked)
        for name, value in card.scores.items()
        for metric in [metrics.get(name, Metric(name=name))]
    ]


def _score(
    card: Scorecard, name: str, value: float | None, metric: Metric, edited: float | None, *, first: bool
) -> Score:
    text = writer(metric, [value])(value) if value is not None else str(card.reasons.get(name, "-"))
    by_people = "" if edited is None else writer(metric, [edited])(edited)
    found = card.bounds.get(name)
    if found is None or found.low == found.high:
        return Score(name, text, "", first, by_people)
    low, high = (writer(metric, [end])(end) for end in (found.low, found.high))
    bounds = f"{low} or more" if found.high is None else f"{low} to {high}"
    return Score(name, text, bounds, first, by_people)


def _notes(card: Scorecard) -> list[str]:
    lacking = dict.fromkeys([*card.reasons.values(), *([card.reason] if card.reason else [])])
    return [f"{explained(reason)}." for reason in lacking]


def _samples(run: OpenRun, query: ReportQuery) -> list[tuple[str, str, bool]]:
    """Text, address and whether it is this one, of all samples and repeats of the same system and task."""
    rows = run.scores.select(
        ["sample", "repeat"], system=query.system, task_id=query.task, protocol=query.protocol
    )
    others = sorted(set(zip(rows["sample"].to_pylist(), rows["repeat"].to_pylist(), strict=True)))
    return [
        (
            f"sample {sample}, repeat {repeat}",
            address("report", query, sample=sample, repeat=repeat, part=1),
            (sample, repeat) == (query.sample, query.repeat),
        )
        for sample, repeat in others
        if len(others) > 1
    ]


def _links(frame: Frame, card: Scorecard, query: ReportQuery) -> list[tuple[str, str]]:
    links = []
    if card.judgments:
        links.append((f"Questions ({len(card.judgments):,})", address("questions", query, part=1, text="")))
    if frame.other:
        links.append(("Difference to the other run", address("difference", query, part=1, text="")))
    return links


def _steps(query: ReportQuery, report: MarkedReport | None) -> list[tuple[str, str]]:
    """The parts of a long report beside this one."""
    if report is None:
        return []
    around = [part for part in (report.part - 1, report.part + 1) if 1 <= part <= report.parts]
    return [(f"Part {part}", address("report", query, part=part)) for part in around]


def _shares(lines: Sequence[Line]) -> list[Share]:
    counts = Counter(line.kind for line in lines if line.kind)
    total = sum(counts.values())
    shares, start = [], 0.0
    for kind, about in KINDS.items():
        if counts[kind]:
            width = round(100 * counts[kind] / total, 3)
            shares.append(Share(kind, about.sign, about.words, counts[kind], round(start, 3), width))
            start += width
    return shares


def _counted(names: Iterable[str]) -> list[tuple[str, int]]:
    """Each name and how often it occurs, the most frequent first."""
    return sorted(Counter(names).items(), key=lambda one: (-one[1], one[0]))


def _question(query: ReportQuery, line: Line) -> str:
    """The address of the question that the line rests on; empty if it rests on none."""
    return address("question", QuestionQuery.of(line.judgment, query)) if line.judgment else ""


async def evidence_page(run: OpenRun, frame: Frame, query: EvidenceQuery) -> str:
    """One line of evidence: the verdict, the question it answers, and the page with the passage nearest to it."""
    card = _chosen(await run.find_cards(query), query.protocol)
    _check_number(query.n, len(card.evidence))
    query = msgspec.structs.replace(query, protocol=card.protocol)
    (line,) = await _evidenced(run, card, query, (query.n,))
    return await _evidence_page(run, frame, query, line, len(card.evidence))


async def evidence_pages(
    run: OpenRun, frame: Frame, card: Scorecard, query: ReportQuery
) -> Callable[[EvidenceQuery], Awaitable[str]]:
    """What makes `evidence_page` of any line of one scorecard, whose lines are read once."""
    lines = await _evidenced(run, card, query, range(1, len(card.evidence) + 1))

    async def page(asked: EvidenceQuery) -> str:
        _check_number(asked.n, len(lines))
        return await _evidence_page(run, frame, asked, lines[asked.n - 1], len(lines))

    return page


def _check_number(n: int, count: int) -> None:
    if n > count:
        raise NotThere(f"this scorecard has {plural(count, 'line')} of evidence")


async def _evidenced(
    run: OpenRun, card: Scorecard, query: ReportQuery, numbers: Collection[int]
) -> list[Line]:
    """The lines of `card` with these `numbers`, with explanations and the judge's reasons."""
    judgments, _ = await run.stores()
    silent = {n for n in numbers if not card.evidence[n - 1].note}
    reasons = await reasons_given(judgments, card.evidence, silent) if silent else {}
    people = {} if run.people is None else run.people.about(card)
    return lines_of(card, await run.explained(query, card.protocol), reasons, people, numbers)


async def _override(run: OpenRun, frame: Frame, query: EvidenceQuery) -> str:
    """The command that overrides the verdict; "" for what people cannot label, and in published pages."""
    read = label_readers([query.protocol]).get(query.protocol)
    if frame.still or read is None:
        return ""
    item = items_of_card(_chosen(await run.find_cards(query), query.protocol), read).get(query.n)
    if item is None or not item.labelled.label:
        return ""
    return f"adjudge label {shlex.quote(str(run.folder))} --out labels.jsonl --edit {item.id}"


async def _evidence_page(run: OpenRun, frame: Frame, query: EvidenceQuery, line: Line, count: int) -> str:
    return frame.show(
        "evidence.html.jinja",
        f"Evidence {query.n:,} of {count:,}",
        crumbs=report_crumbs(query),
        line=line,
        verdict=KINDS[line.kind].words if line.kind else "",
        question=_question(query, line),
        override=await _override(run, frame, query),
        steps=[
            (text, address("evidence", query, n=n, part=1))
            for text, n in (("Previous", query.n - 1), ("Next", query.n + 1))
            if 1 <= n <= count
        ],
        source=await _source(run, frame, line, query) if line.url else "",
    )


async def _source(run: OpenRun, frame: Frame, line: Line, query: EvidenceQuery) -> Markup:
    _, pages = await run.stores()
    address = address_of(line.url)
    page = address if isinstance(address, Page) else await pages.get(address)
    if page is None:
        return Markup(render("page_text.html.jinja", __package__, page=None))
    try:
        window = await aside(nearest, storable(page.visible), storable(line.what))
    except Unread:
        window = None
    return page_text(page, query.part, "evidence", query, window, whole=frame.sources)


def page_text(
    page: Page,
    part: int,
    path: str,
    query: msgspec.Struct,
    window: Span | None = None,
    *,
    whole: bool = True,
) -> Markup:
    """A page's facts and all its text, `window` marked; the first part shown is the one that holds it.

    Unless `whole`, no more of the text than `window` and a few words around it.
    """
    page = msgspec.structs.replace(page, text=page.visible, beside="")
    if not whole:
        page, window = _passage(page, window)
    if window is not None and part == 1:
        part = 1 + window.start // PART_CHARS
    start, end = part_of(page.text, part)
    low, high = (end, end) if window is None else (max(window.start, start), min(window.end, end))
    if low >= high:
        low = high = end
    count = max(1, -(-len(page.text) // PART_CHARS))
    part = min(part, count)
    return Markup(
        render(
            "page_text.html.jinja",
            __package__,
            page=page,
            part_number=part,
            parts=count,
            steps=[
                (f"Part {one}", address(path, query, part=one))
                for one in (part - 1, part + 1)
                if 1 <= one <= count
            ],
            window=window is not None,
            whole=whole,
            before=page.text[start:low],
            inside=page.text[low:high],
            after=page.text[high:end],
        )
    )


def _passage(page: Page, window: Span | None) -> tuple[Page, Span | None]:
    """`page` with the text around `window`, and the window's new position."""
    if window is None:
        return msgspec.structs.replace(page, text=""), None
    start, end = max(0, window.start - _AROUND), window.end + _AROUND
    cut = msgspec.structs.replace(page, text=page.text[start:end])
    return cut, Span(window.start - start, window.end - start)
