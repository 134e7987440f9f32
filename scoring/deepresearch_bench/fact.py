"""FACT (DeepResearch Bench): do the pages that a report cites support what it says?

Triplets (fact, ref_idx, url) -> grouped by URL, repeated statements dropped -> the page read -> supported, unsupported
or unknown -> arithmetic. Paper and code count differently, so both are here:

- `c_acc`, `e_cit` (paper): supported over all pairs of a task (0 without any), and supported; means over all tasks.
- `c_acc_code`, `e_cit_code` (code): supported / (supported + unsupported), pooled over tasks; supported over the tasks
  that cite anything. The published C. Acc. figures are this one.
- `_strict`: every page that cannot be retrieved is an unsupported citation.

A pair is one statement and one URL; without an answer it is missing on its own, and the others keep theirs:

- A page that is gone, blocked or barred, or a malformed URL (`unreachable`), stays in the paper's N_u, as does an
  unknown statement; the code drops the whole URL, as it does where the scrape failed.
- A page that failed otherwise (`page_timeout`, `page_server_error`) is missing in the paper's count and dropped from
  the code's; it too is `unreachable`, and unsupported in the strict forms.
- If judge, network or snapshot failed, the pair is missing in both, and the strict forms and `e_cit` have no value.
  The code judges the scraper's error text as if it were the page, a bug that is not copied.

With `pages` off (the run's `fetch: {mode: off}`) nothing is asked about pages, and every pair is missing.

The arithmetic below needs no judge.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from adjudge.scoring.deepresearch_bench.fact_questions import Repeats, Verdict, back, distinct, extract
from adjudge.scoring.deepresearch_bench.words import FACT
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.citation_marks import clean_url
from adjudge.scoring.text.citations import MAX_FACTS, Triplet, cited

__all__ = [
    "CodeScores",
    "Fact",
    "Group",
    "Pair",
    "PaperScores",
    "Tally",
    "citation_accuracy",
    "code_scores",
    "evidence_of",
    "group_by_url",
    "kept_statements",
    "known_accuracy",
    "paper_scores",
    "unmerged",
    "unread",
    "values_of",
]

_JUDGED = ("judged", "judged_strict", "supported_strict")


def _count(name: str) -> Metric:
    return Metric(name=name, best=None, shown=False, kind="count")


MAX_STATEMENTS = 20
_LEFT_OUT = Evidence(
    what=f"The report has more than {MAX_FACTS:,} facts or references; those after the limit were not read.",
    outcome=Outcome("note"),
)

BACKING = LabelKind(
    name="backing",
    question="Does the page support the statement?",
    labels={"supported": 1.0, "unsupported": 0.0, "unknown": 0.0},
)
_OTHERWISE = ("page_timeout", "page_server_error")  # what the paper's N_u does not hold


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


class Group(msgspec.Struct, frozen=True):
    """All facts of one URL in their order; `url` as it was first written, `address` a page if it is malformed."""

    url: str
    facts: tuple[str, ...]
    address: NormalURL | Page


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
    """Triplets by URL, in order of first use; URLs with the same normal form are one."""
    facts: dict[str, list[str]] = {}
    urls: dict[str, tuple[str, NormalURL | Page]] = {}
    for triplet in triplets:
        cleaned = clean_url(triplet.url)
        address = address_of(cleaned)
        key = cleaned if isinstance(address, Page) else address
        urls.setdefault(key, (triplet.url, address))
        facts.setdefault(key, []).append(triplet.fact)
    return [Group(url, tuple(facts[key]), address) for key, (url, address) in urls.items()]


def kept_statements(statements: Sequence[str], kept: Sequence[int]) -> tuple[str, ...]:
    """The statements that a deduplicating judge keeps, from its 1-based indices.

    All of them if there are no indices, one does not exist, or there are more indices than statements.
    """
    usable = 0 < len(kept) <= len(statements) and all(1 <= index <= len(statements) for index in kept)
    return tuple(statements[index - 1] for index in kept) if usable else tuple(statements)


class Pair(msgspec.Struct, frozen=True):
    """A unique pair: its verdict, or the reason it has none. `judgment` is a hex key.

    Where it is not known which statements are unique, all of a URL's are pairs, and `unique` is false.
    """

    fact: str
    url: str
    verdict: Verdict | None
    reason: Reason | None = None
    judgment: str = ""
    shown: str = ""  # how much of the page was shown, if not all
    unique: bool = True

    @property
    def unreachable(self) -> bool:
        """Whether the citation leads to nothing that anybody gets."""
        return self.reason is not None and CAUSES[self.reason] in ("source", "report")


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

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """By the paper's formulas, then by the code's (pooled); last the counts they are made of."""
        return (
            Metric(name="c_acc", scale=100, headline=True),
            Metric(name="e_cit", best=None),
            Metric(name="c_acc_code", scale=100, ratio=("supported", "judged")),
            Metric(name="e_cit_code", best=None, ratio=("supported", "cited")),
            Metric(name="c_acc_strict", scale=100, shown=False),
            Metric(
                name="c_acc_code_strict", scale=100, ratio=("supported_strict", "judged_strict"), shown=False
            ),
            *(_count(name) for name in ("pairs", "supported")),
            *(
                msgspec.structs.replace(_count(name), lower_is_better=True)
                for name in ("unsupported", "unknown", "unreachable", "unscored")
            ),
            *(_count(name) for name in _JUDGED),
            Metric(name="cited", shown=False),
        )

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Extract, group, deduplicate and read, ask what each page supports, count."""
        whole = await aside(cited, storable(case.report.text), case.report.citations)
        triplets = whole.triplets if self.extraction == "markers" else await extract(case, whole, tools)
        if isinstance(triplets, Missing):
            values = {metric.name: triplets for metric in self.metrics if metric.ratio is None}
            return Scorecard.of(self.name, case, values)
        groups = group_by_url(triplets)
        if not self.pages:
            pairs = [pair for group in groups for pair in unmerged(group, "page_not_in_snapshot")]
            return Scorecard.of(self.name, case, values_of(pairs, bool(groups)), unread(groups))
        checked = await asyncio.gather(*(_check(group, case.task.language, tools) for group in groups))
        pairs = [pair for found in checked for pair in found]
        evidence = [*evidence_of(checked), *([] if whole.complete else [_LEFT_OUT])]
        return Scorecard.of(self.name, case, values_of(pairs, bool(groups)), evidence)

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """The verdict on a pair, which `c_acc` counts; a page that cannot be retrieved counts as 0 without one."""
        if not line.url:
            return None
        kind = line.outcome.kind
        if kind == "unreachable":
            value = None if line.reason in _OTHERWISE else 0.0
            return Labelled(kind=BACKING, label="", metric="c_acc", value=value)
        return Labelled.of(BACKING, kind if kind in BACKING.labels else "", "c_acc")


def values_of(pairs: Sequence[Pair], cited: bool) -> dict[str, Value]:
    """Every metric of one report, each by its own rule for pairs without a verdict (see the module)."""
    dropped = [pair for pair in pairs if not pair.unreachable]
    supported, judged = ("supported",), ("supported", "unsupported")
    return {
        "c_acc": measured(_counted(pairs, supported, missing=_OTHERWISE), _accuracy, ANY),
        "c_acc_strict": measured(_counted(pairs, supported), _accuracy, EVERY),
        "e_cit": measured(_counted(pairs, supported), _sum, EVERY),
        "pairs": _number(pairs, lambda pair: True),
        "supported": measured(_counted(dropped, supported), _sum, ANY),
        "unsupported": measured(_counted(pairs, ("unsupported",)), _sum, EVERY),
        "unknown": measured(_counted(pairs, ("unknown",)), _sum, EVERY),
        "unreachable": _number(pairs, lambda pair: pair.unreachable),
        "unscored": _number(pairs, lambda pair: pair.reason is not None and not pair.unreachable),
        "judged": measured(_counted(dropped, judged), _sum, ANY),
        "supported_strict": measured(_counted(pairs, supported), _sum, EVERY),
        "judged_strict": measured(_counted(pairs, judged, unreachable=1.0), _sum, EVERY),
        "cited": float(cited),
    }


def _counted(
    pairs: Iterable[Pair],
    verdicts: Collection[str],
    *,
    unreachable: float = 0.0,
    missing: Collection[str] = (),
) -> list[Answered[Pair]]:
    """1 for each pair with one of `verdicts`, else 0; `unreachable` without a page, if the reason is not `missing`."""
    found = []
    for pair in pairs:
        value: float | Missing = float(pair.verdict in verdicts)
        if pair.reason is not None:
            known = pair.unreachable and pair.reason not in missing
            value = unreachable if known else Missing(pair.reason)
        found.append(Answered(pair, value, 0.0, 1.0, pair.judgment))
    return found


def _number(pairs: Iterable[Pair], which: Callable[[Pair], bool]) -> Value:
    """How many unique pairs there are of those; no value if it is not known which are unique."""
    return measured(
        [
            Answered(
                pair,
                float(which(pair)) if pair.unique else Missing(pair.reason or "judge_unparseable"),
                0.0,
                1.0,
            )
            for pair in pairs
        ],
        _sum,
        EVERY,
    )


def _sum(answers: Sequence[tuple[Pair, float]]) -> float:
    return sum(value for _, value in answers)


def _accuracy(answers: Sequence[tuple[Pair, float]]) -> float:
    supported = sum(value == 1 for _, value in answers)
    return citation_accuracy(Tally(supported=supported, unsupported=len(answers) - supported))


async def _check(group: Group, language: str, tools: Tools) -> tuple[Pair, ...]:
    """The unique pairs of one URL with their verdicts."""
    statements, reading = distinct(group.facts), _read(group.address, tools)
    if len(statements) < 2:
        page = await reading
    else:
        unique, page = await asyncio.gather(_unique(statements, language, tools), reading)
        if isinstance(unique, Missing):
            return unmerged(group, unique.reason)
        statements = unique
    if isinstance(page, Missing):
        return tuple(Pair(fact, group.url, None, page.reason) for fact in statements)
    if not page.text.strip():
        return tuple(Pair(fact, page.url, "unknown") for fact in statements)
    batches = [statements[at : at + MAX_STATEMENTS] for at in range(0, len(statements), MAX_STATEMENTS)]
    answered = await together(*(back(tools, page, batch, language) for batch in batches))
    found = []
    for batch, (judgment, shown) in zip(batches, answered, strict=True):
        for key, fact in zip(numbered(len(batch)), batch, strict=True):
            verdict = judgment.answer.items[key] if judgment.answer else None
            reason = None if judgment.answer else judgment.reason or "judge_unparseable"
            found.append(Pair(fact, page.url, verdict, reason, judgment.key.hex(), shown))
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


async def _read(address: NormalURL | Page, tools: Tools) -> Page | Missing:
    page = address if isinstance(address, Page) else await tools.page(address)
    return page if page.reason is None else Missing(page.reason)


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


def unread(groups: Sequence[Group]) -> Iterator[Evidence]:
    """One line in place of the pairs of a report whose pages are not read."""
    if groups:
        facts = sum(len(group.facts) for group in groups)
        what = f"{plural(facts, 'statement')} on {plural(len(groups), 'page')}, not read: "
        what += "fetch is off; set fetch: mode: to read them"
        yield Evidence(what=what, outcome=MISSING, reason="page_not_in_snapshot")
