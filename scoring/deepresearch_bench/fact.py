"""FACT (DeepResearch Bench): do the pages that a report cites support what it says?

Triplets (fact, ref_idx, url) -> grouped by URL, repeated statements dropped -> the page read -> supported, unsupported
or unknown -> arithmetic. Paper and code count differently, so both are here:

- `c_acc`, `e_cit` (paper): supported over all pairs of a task (0 without any), and supported; means over all tasks.
- `c_acc_code`, `e_cit_code` (code): supported / (supported + unsupported), pooled over tasks; supported over the tasks
  that cite anything. The published C. Acc. figures are this one.

A pair is one statement and one URL; without an answer it is missing on its own, and the others keep theirs:

- A page that the report chose and nobody could read (`unreachable`: gone, barred, empty, late, failing, of a kind that
  is not read, not among the pages there are, a malformed URL) stays in the paper's N_u, as does an unknown statement.
  The code drops the whole URL, as it does where the scrape failed. Either way the worst of a metric (`low`) counts such
  a pair as unsupported, and `high` as supported.
- If judge or network failed, or the page was never requested, the pair is missing in both, and `e_cit` has no value.
  The code judges the scraper's error text as if it were the page, a bug that is not copied.

The lowest `c_acc_code` also counts unknown pairs: a report that cites pages without content gains nothing.

With `pages` off (the run's `fetch: {mode: off}`) nothing is asked about pages: the pairs are listed and counted, each
statement and URL once word for word, and all of them are missing.

Beside the figures stand what they rest on: pairs whose page was read, distinct pages by where they ended and by their
text, the addresses that led there, pages that hold little but the report's own sentences (echoes), distinct statements;
`lost` of the report's `marks` and addresses that lead to no pair, addresses on which marks and judge do not agree;
and `c_acc_distinct`, in which each page counts once and an echo supports nothing.

The arithmetic below needs no judge.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Literal

import msgspec

from adjudge.fetchers.flight import together
from adjudge.fetchers.page import Page, address_of
from adjudge.fetchers.urls import NormalURL
from adjudge.judges import numbered
from adjudge.judges.plural import plural
from adjudge.scoring.answers.parts import ANY, EVERY, Answered, measured
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.labels import LabelKind, Labelled
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.reasons import CAUSES, Reason
from adjudge.scoring.contract.scorecard import (
    MISSING,
    Evidence,
    Metric,
    Missing,
    Outcome,
    OutcomeKind,
    Scorecard,
    Value,
    first_missing,
)
from adjudge.scoring.deepresearch_bench.fact_questions import (
    Repeats,
    Verdict,
    back,
    distinct,
    extract,
    same_words,
)
from adjudge.scoring.deepresearch_bench.uncited import UNCITED, check_uncited, uncited_of, without_pages
from adjudge.scoring.deepresearch_bench.words import FACT
from adjudge.scoring.text.accounted import Account, read_citations, said_of_lost
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.citation_marks import exact_url
from adjudge.scoring.text.citations import MAX_FACTS, MAX_MARKS, Triplet, url_key
from adjudge.scoring.text.integrity import Runs

__all__ = [
    "BY_MARKS",
    "CodeScores",
    "Fact",
    "Group",
    "Pair",
    "PaperScores",
    "Seen",
    "Tally",
    "citation_accuracy",
    "code_scores",
    "evidence_of",
    "evidence_of_unread",
    "group_by_url",
    "kept_statements",
    "known_accuracy",
    "paper_scores",
    "unmerged",
    "unread",
    "values_of",
]


def _count(name: str, lower_is_better: bool = False) -> Metric:
    return Metric(name=name, best=None, shown=False, kind="count", lower_is_better=lower_is_better)


def _each(name: str, above: str, below: str, scale: float = 1.0) -> Metric:
    return Metric(name=name, best=None, shown=False, kind="count", scale=scale, ratio=(above, below))


BY_MARKS = ("marks", "lost", "disputed")
"""Counts of what a report's text has, whatever extracts its statements."""
MAX_STATEMENTS = 20
_LEFT_OUT = Evidence(
    what=f"The report has more than {MAX_FACTS:,} facts or references, or {MAX_MARKS:,} marks; the rest was not read.",
    outcome=Outcome("note"),
)

BACKING = LabelKind(
    name="backing",
    question="Does the page support the statement?",
    labels={"supported": 1.0, "unsupported": 0.0, "unknown": 0.0},
)


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The unique (statement, URL) pairs of one task by verdict; `unreachable` ones had no page to be judged by."""

    supported: int = 0
    unsupported: int = 0
    unknown: int = 0
    unreachable: int = 0

    @property
    def pairs(self) -> int:
        """N_u: all unique pairs."""
        return self.supported + self.unsupported + self.unknown + self.unreachable


class PaperScores(msgspec.Struct, frozen=True):
    """C. Acc. (0..1) and E. Cit. of a system by the paper's equations 3 and 4."""

    c_acc: float
    e_cit: float


class CodeScores(msgspec.Struct, frozen=True):
    """The reference code's figures over the tasks that cite anything.

    `c_acc` (0..1) is pooled, `e_cit` is supported pairs and `citations` supported and unsupported pairs, both per task.
    """

    c_acc: float
    e_cit: float
    citations: float


class _Beside(msgspec.Struct, frozen=True):
    """What a report's text has beside its pairs: an account without the addresses that the extraction found cited.

    `unfound` are addresses that a mark cites and the extraction does not, `unmarked` those of which the reverse holds.
    """

    account: Account
    unfound: tuple[str, ...]
    unmarked: tuple[str, ...]

    @property
    def counts(self) -> dict[str, Value]:
        """The values of `BY_MARKS`."""
        disputed = len(self.unfound) + len(self.unmarked)
        return {
            "marks": float(self.account.of),
            "lost": float(self.account.lost),
            "disputed": float(disputed),
        }

    def notes(self) -> Iterator[Evidence]:
        """What a reader of the report's figures should know of it."""
        said = list(said_of_lost([self.account]))
        for urls, why in (
            (self.unfound, "cited by its marks, but not as the judge reads it"),
            (self.unmarked, "cited as the judge reads it, but by no mark"),
        ):
            if urls:
                said.append(
                    f"{plural(len(urls), 'address is', 'addresses are')} {why}: {', '.join(urls[:5])}"
                )
        if said:
            yield Evidence(what="; ".join(said), outcome=Outcome("note"))


def _beside(found: Account, triplets: Sequence[Triplet]) -> _Beside:
    stated = {url_key(one.url): one.url for one in triplets}
    marked = {url_key(pair.url): pair.url for pair in found.pairs}
    unused = tuple(url for url in found.urls_unused if url_key(url) not in stated)
    return _Beside(
        account=msgspec.structs.replace(found, urls_unused=unused),
        unfound=tuple(url for key, url in marked.items() if key not in stated),
        unmarked=tuple(url for key, url in stated.items() if key not in marked),
    )


class Group(msgspec.Struct, frozen=True):
    """All facts of one URL in their order; `url` as it was first written, `address` a page if it is malformed.

    `others` are the first of its further spellings, which may lead to the page where the first does not.
    """

    url: str
    facts: tuple[str, ...]
    address: NormalURL | Page
    others: tuple[NormalURL, ...] = ()


def citation_accuracy(tally: Tally) -> float:
    """Acc_t = N_s / N_u over all unique pairs of a task, 0 if there are none (the paper's rule)."""
    return tally.supported / tally.pairs if tally.pairs else 0.0


def known_accuracy(tally: Tally) -> float:
    """Supported over supported and unsupported pairs of a task, 0 if there are none."""
    judged = tally.supported + tally.unsupported
    return tally.supported / judged if judged else 0.0


def paper_scores(tallies: Iterable[Tally]) -> PaperScores:
    """A system's scores over all tasks, those without citations included (the paper's equations 3 and 4)."""
    every = list(tallies)
    tasks = len(every) or 1
    accuracy = sum(citation_accuracy(tally) for tally in every) / tasks
    return PaperScores(accuracy, sum(tally.supported for tally in every) / tasks)


def code_scores(tallies: Iterable[Tally | None]) -> CodeScores:
    """A system's scores as the reference code counts; None is a task without triplets."""
    cited = [tally for tally in tallies if tally is not None]
    supported = sum(tally.supported for tally in cited)
    judged = supported + sum(tally.unsupported for tally in cited)
    tasks = len(cited) or 1
    return CodeScores(supported / judged if judged else 0.0, supported / tasks, judged / tasks)


def group_by_url(triplets: Iterable[Triplet]) -> list[Group]:
    """Triplets by URL, in order of first use; URLs of one page (`url_key`) are one."""
    facts: dict[str, list[str]] = {}
    urls: dict[str, dict[str, None]] = {}
    for triplet in triplets:
        key = url_key(triplet.url)
        facts.setdefault(key, []).append(triplet.fact)
        urls.setdefault(key, {})[triplet.url] = None
    return [_group(tuple(urls[key]), tuple(facts[key])) for key in facts]


_SPELLINGS = 4  # of a URL that are tried


def _group(urls: tuple[str, ...], facts: tuple[str, ...]) -> Group:
    address, *others = dict.fromkeys(address_of(exact_url(url)) for url in urls[:_SPELLINGS])
    return Group(urls[0], facts, address, tuple(one for one in others if not isinstance(one, Page)))


def kept_statements(statements: Sequence[str], kept: Sequence[int]) -> tuple[str, ...]:
    """The statements that a deduplicating judge keeps, from its 1-based indices.

    All of them if there are no indices, one does not exist, or there are more indices than statements.
    """
    usable = 0 < len(kept) <= len(statements) and all(1 <= index <= len(statements) for index in kept)
    return tuple(statements[index - 1] for index in kept) if usable else tuple(statements)


class Seen(msgspec.Struct, frozen=True):
    """A page as it was read: where the redirects ended, its text, and whether it is an echo."""

    final_url: str
    text: str
    is_echo: bool

    @classmethod
    def of(cls, final_url: str, text: str, report: Runs) -> "Seen":
        """What a page is to a report with these runs of words."""
        return cls(final_url, text, report.is_echo(text))

    def is_at(self, other: "Seen") -> bool:
        """Whether both are one page: where they ended, or by their text."""
        return self.final_url == other.final_url or self.text == other.text


class Pair(msgspec.Struct, frozen=True):
    """A unique pair: its verdict, or the reason it has none. `judgment` is a hex key, `seen` its page, if read.

    Where it is not known which statements are unique, all of a URL's are pairs, and `unique` is false.
    """

    fact: str
    url: str
    verdict: Verdict | None
    reason: Reason | None = None
    judgment: str = ""
    shown: str = ""  # which part of the page was shown, if not all
    unique: bool = True
    seen: Seen | None = None

    @property
    def unreachable(self) -> bool:
        """Whether the URL that the report chose leads to nothing that can be read."""
        return self.reason is not None and CAUSES[self.reason] in ("source", "report")

    @property
    def asked(self) -> str:
        """The judgment that the verdict rests on, or the verdict where one was recorded without its judgment."""
        return self.judgment or self.verdict or ""

    @property
    def missing(self) -> Missing | None:
        """Why the pair has no answer, if that is not the report's own choice."""
        return None if self.reason is None or self.unreachable else Missing(self.reason)


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report's citations; needs no gold.

    `extraction`: the judge reads the report's statements and their sources, or its marks are parsed without a judge
    (`scoring.text.citations`). Metrics: see the module; beside them the counts they are made of. `cited` is 1 for a
    report with triplets, `unscored` how many pairs have no answer for a reason that is not the report's.
    """

    name: ClassVar[str] = "fact"
    words: ClassVar = FACT

    extraction: Literal["judge", "markers"] = "judge"
    """How statements are found: by the `judge` as published, or from citation `markers`."""
    pages: bool = True
    """Whether pages are read; follows from `fetch.mode`."""
    uncited: bool = False
    """Whether statements that cite nothing are checked against all cited pages."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """By the paper's formulas, then by the code's (pooled); last the counts they are made of."""
        return (
            Metric(name="c_acc", scale=100, headline=True),
            Metric(name="e_cit", best=None),
            Metric(name="c_acc_code", scale=100, ratio=("supported", "judged")),
            Metric(name="e_cit_code", best=None, ratio=("supported", "cited")),
            Metric(name="c_acc_distinct", scale=100, shown=False),
            *(_count(name) for name in ("pairs", "supported")),
            *(_count(name, True) for name in ("unsupported", "unknown", "unreachable", "unscored")),
            _count("judged"),
            Metric(name="cited", shown=False),
            *(_count(name) for name in ("read", "statements", "distinct_pages", "addresses")),
            _count("echoes", True),
            *(_count(name, name != "marks") for name in BY_MARKS),
            _each("lost_share", "lost", "marks", 100),
            _each("read_share", "read", "pairs", 100),
            _each("citations_per_statement", "pairs", "statements"),
            _each("addresses_per_page", "addresses", "distinct_pages"),
            *(UNCITED if self.uncited else ()),
        )

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Extract, group, deduplicate and read, ask what each page supports, count."""
        whole, own = await aside(read_citations, storable(case.report.text), case.report.citations)
        if self.extraction == "markers":
            triplets: tuple[Triplet, ...] | Missing = whole.triplets
        else:
            triplets = await extract(case, whole, own.urls_unused, tools)
        if isinstance(triplets, Missing):
            values = {metric.name: triplets for metric in self.metrics if metric.ratio is None}
            return Scorecard.of(self.name, case, values)
        groups = group_by_url(triplets)
        found = _beside(own, triplets)
        by_marks, notes = found.counts, list(found.notes())
        more, lines = await self._uncited(case, groups, tools)
        if not self.pages:
            pairs = unread(groups)
            evidence = [*evidence_of_unread(pairs), *notes, *lines]
            return Scorecard.of(self.name, case, values_of(pairs, bool(groups)) | by_marks | more, evidence)
        report = Runs(triplet.fact for triplet in triplets)
        checked = await asyncio.gather(
            *(_check(group, report, case.task.language, tools) for group in groups)
        )
        checked = list(_once(checked))
        pairs = [pair for found in checked for pair in found]
        evidence = [*evidence_of(checked), *notes, *([] if whole.complete else [_LEFT_OUT]), *lines]
        return Scorecard.of(self.name, case, values_of(pairs, bool(groups)) | by_marks | more, evidence)

    async def _uncited(
        self, case: Case, groups: Sequence[Group], tools: Tools
    ) -> tuple[dict[str, Value], list[Evidence]]:
        """What is asked about statements that cite nothing, if they are to be checked."""
        if not self.uncited:
            return {}, []
        claims = await aside(uncited_of, storable(case.report.text), case.report.citations)
        if not self.pages:
            return without_pages(claims)
        found = await asyncio.gather(*(_read(group, tools) for group in groups))
        return await check_uncited(claims, found, case.task.language, tools)

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """The verdict on a pair, which `c_acc` counts; a page that cannot be retrieved counts as 0 without one."""
        if not line.url:
            return None
        kind = line.outcome.kind
        if kind == "unreachable":
            return Labelled(kind=BACKING, label="", metric="c_acc", value=0.0)
        return Labelled.of(BACKING, kind if kind in BACKING.labels else "", "c_acc")


def values_of(pairs: Sequence[Pair], cited: bool) -> dict[str, Value]:
    """Every metric of one report, each by its own rule for pairs without a verdict (see the module)."""
    said = [same_words(pair.fact) for pair in pairs]
    backed = [_answered(pair, pair.verdict == "supported", pair.unreachable) for pair in pairs]
    verdicts = ("supported", "unsupported")
    judged = [_answered(pair, pair.verdict in verdicts, pair.verdict not in verdicts) for pair in pairs]
    return {
        "c_acc": measured(backed, _accuracy, ANY),
        "c_acc_distinct": measured(list(_distinct(pairs, said)), _accuracy, ANY),
        "e_cit": measured(backed, _sum, EVERY),
        "pairs": _number(pairs, lambda pair: True),
        "supported": measured(backed, _sum, ANY),
        **{
            kind: measured(
                [_answered(pair, pair.verdict == kind, pair.unreachable) for pair in pairs], _sum, EVERY
            )
            for kind in ("unsupported", "unknown")
        },
        "unreachable": _number(pairs, lambda pair: pair.unreachable),
        "unscored": _number(pairs, lambda pair: pair.missing is not None),
        "judged": measured(judged, _sum, ANY),
        "cited": float(cited),
        **_rests_on(pairs, said),
    }


def _answered(pair: Pair, counts: bool, could: bool) -> Answered[Pair]:
    """1 for a pair that `counts`, else 0, which another page `could` have made 1; missing for a failure of ours."""
    missing = pair.missing
    return Answered(pair, missing or float(counts), 0.0, 1.0, pair.asked, 1.0 if could else None)


def _number(pairs: Iterable[Pair], which: Callable[[Pair], bool]) -> Value:
    """How many unique pairs there are of those; no value if it is not known which are unique."""
    return _counted(
        (pair, float(which(pair)) if pair.unique else Missing(pair.reason or "judge_unparseable"))
        for pair in pairs
    )


def _counted(found: Iterable[tuple[Pair, float | Missing]]) -> Value:
    return measured([Answered(pair, value, 0.0, 1.0) for pair, value in found], _sum, EVERY)


def _sum(answers: Sequence[tuple[Pair, float]]) -> float:
    return sum(value for _, value in answers)


class _Places:
    """Tells pages apart: those that ended at one address, or have one text, are one."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}

    def of(self, pair: Pair) -> int:
        """The number of the pair's page; that of its URL alone if it was not read."""
        names = [("url", pair.url)]
        if pair.seen is not None:
            names = [("url", pair.seen.final_url), ("text", pair.seen.text)]
        found = next((self._known[name] for name in names if name in self._known), len(self._known))
        for name in names:
            self._known.setdefault(name, found)
        return found


def _distinct(pairs: Sequence[Pair], said: Sequence[str]) -> Iterator[Answered[Pair]]:
    """Each statement with each page once, whatever address led to it; an echo supports nothing."""
    places, counted = _Places(), set[tuple[str, int]]()
    for pair, fact in zip(pairs, said, strict=True):
        name = fact, places.of(pair)
        if name not in counted or not pair.unique:
            counted.add(name)
            is_echo = pair.seen is not None and pair.seen.is_echo
            yield _answered(pair, pair.verdict == "supported" and not is_echo, pair.unreachable)


def _once(checked: Iterable[tuple[Pair, ...]]) -> Iterator[tuple[Pair, ...]]:
    """The pairs of each URL without those that a URL with or without "www." had, where both lead to one page."""
    known: dict[tuple[str, str], Seen] = {}
    for pairs in checked:
        kept = []
        for pair in pairs:
            seen, name = pair.seen, (same_words(pair.fact), url_key(pair.url).replace("//www.", "//", 1))
            other = known.setdefault(name, seen) if seen else None
            if not seen or not other or other is seen or not other.is_at(seen):
                kept.append(pair)
        yield tuple(kept)


def _rests_on(pairs: Sequence[Pair], said: Sequence[str]) -> dict[str, Value]:
    """What the figures rest on: how much was read, of how many statements, pages and addresses."""
    places = _Places()
    first: dict[str, tuple[Pair, bool]] = {}
    numbers, words = set[int](), set[str]()
    stated: list[tuple[Pair, float | Missing]] = []
    for pair, fact in zip(pairs, said, strict=True):
        if pair.url not in first:
            number = places.of(pair)
            first[pair.url] = pair, number not in numbers
            numbers.add(number)
        lacking = None if pair.unique else Missing(pair.reason or "judge_unparseable")
        stated.append((pair, lacking or float(fact not in words)))
        words.add(fact)
    return {
        "read": _counted((pair, _read_of(pair)) for pair in pairs),
        "statements": _counted(stated),
        "addresses": _counted((pair, _read_of(pair)) for pair, _ in first.values()),
        "distinct_pages": _counted(
            (pair, _read_of(pair) if is_new else 0.0) for pair, is_new in first.values()
        ),
        "echoes": _counted(
            (pair, _read_of(pair, pair.seen is not None and pair.seen.is_echo)) for pair, _ in first.values()
        ),
    }


def _read_of(pair: Pair, counts: bool = True) -> float | Missing:
    """1 if the pair's page was read and `counts`, 0 if it cannot be; missing if it is not known."""
    if pair.seen is not None or pair.verdict is not None:
        return float(counts)
    return pair.missing or 0.0


def _accuracy(answers: Sequence[tuple[Pair, float]]) -> float:
    supported = sum(value == 1 for _, value in answers)
    return citation_accuracy(Tally(supported=supported, unsupported=len(answers) - supported))


async def _check(group: Group, report: Runs, language: str, tools: Tools) -> tuple[Pair, ...]:
    """The unique pairs of one URL with their verdicts; `report` has the runs of words of all statements."""
    statements, reading = distinct(group.facts), _read(group, tools)
    if len(statements) < 2:
        page = await reading
    else:
        unique, page = await asyncio.gather(_unique(statements, language, tools), reading)
        if isinstance(unique, Missing):
            return unmerged(group, unique.reason)
        statements = unique
    if isinstance(page, Missing):
        return tuple(Pair(fact, group.url, None, page.reason) for fact in statements)
    seen = Seen.of(page.final_url, page.text, report)
    if page.beside and report.is_echo(page.visible):
        seen = msgspec.structs.replace(seen, is_echo=True)
    batches = [statements[at : at + MAX_STATEMENTS] for at in range(0, len(statements), MAX_STATEMENTS)]
    answered = await together(*(back(tools, page, batch, language) for batch in batches))
    found: list[Pair] = []
    for batch, backings in zip(batches, answered, strict=True):
        found += [Pair(fact, page.url, *one, seen=seen) for fact, one in zip(batch, backings, strict=True)]
    return tuple(found)


async def _unique(statements: Sequence[str], language: str, tools: Tools) -> tuple[str, ...] | Missing:
    """`statements` without those that the judge finds repeated."""
    asked = Repeats.about(statements, language)
    judgments = await tools.ask_all(asked)
    if missing := first_missing(judgments):
        return missing
    kept = [
        question.first + place
        for question, judgment in zip(asked, judgments, strict=True)
        for place, key in enumerate(numbered(question.count))
        if judgment.answer is not None and judgment.answer.items[key] == "new"
    ]
    return kept_statements(statements, kept)


async def _read(group: Group, tools: Tools) -> Page | Missing:
    """The page of a URL by the first of its spellings that leads to one, or why the first has nothing to be read."""
    first = await _read_at(group.address, tools)
    if isinstance(first, Missing):
        for address in group.others:
            page = await _read_at(address, tools)
            if not isinstance(page, Missing):
                return page
    return first


async def _read_at(address: NormalURL | Page, tools: Tools) -> Page | Missing:
    page = address if isinstance(address, Page) else await tools.page(address)
    if page.reason is not None:
        return Missing(page.reason)
    return page if page.text.strip() else Missing("page_empty")


def unmerged(group: Group, reason: Reason) -> tuple[Pair, ...]:
    """All statements of a URL, without verdicts, where it is not known which of them are unique."""
    return tuple(Pair(fact, group.url, None, reason, unique=False) for fact in group.facts)


def evidence_of(checked: Iterable[tuple[Pair, ...]]) -> Iterator[Evidence]:
    """A line for each pair; one for each URL of which it is not known what is unique."""
    for pairs in checked:
        if all(pair.unique for pair in pairs):
            yield from map(_line, pairs)
        else:
            what = f"{plural(len(pairs), 'statement')}, repeats included"
            yield Evidence(what=what, outcome=MISSING, url=pairs[0].url, reason=pairs[0].reason or "")


def _line(pair: Pair) -> Evidence:
    kind: OutcomeKind = "unreachable" if pair.unreachable else pair.verdict or "missing"
    words = "" if kind == "missing" else kind
    return Evidence(
        what=pair.fact,
        outcome=Outcome(kind, words=f"{words} ({pair.shown})".strip() if pair.shown else words),
        judgment=pair.judgment,
        url=pair.url,
        reason=pair.reason or "",
    )


def unread(groups: Sequence[Group]) -> list[Pair]:
    """The pairs of a report whose pages are not read: those equal word for word once."""
    return [Pair(fact, group.url, None, "pages_off") for group in groups for fact in distinct(group.facts)]


def evidence_of_unread(pairs: Sequence[Pair]) -> Iterator[Evidence]:
    """A note that pages are not read, and a line for each pair."""
    if pairs:
        pages = len({pair.url for pair in pairs})
        what = f"{plural(len(pairs), 'statement')} on {plural(pages, 'page')}, not read: "
        what += "fetch is off; set fetch: mode: to read them"
        yield Evidence(what=what, outcome=Outcome("note"))
    yield from map(_line, pairs)
