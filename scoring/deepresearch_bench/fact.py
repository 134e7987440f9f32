"""FACT (DeepResearch Bench): do the pages that a report cites support what it says?

Triplets (fact, ref_idx, url) -> grouped by URL, repeated statements dropped -> the page read -> supported,
unsupported or unknown -> arithmetic. Paper and code count differently, so both are here:

- `c_acc`, `e_cit` (paper): supported over all pairs of a task (0 without any), and supported; means over all tasks.
- `c_acc_code`, `e_cit_code` (code): supported / (supported + unsupported), pooled over tasks; supported over the tasks
  that cite anything. The published C. Acc. figures are this one.
- `_strict`: a citation that is the report's own fault (dead, blocked, malformed) is an unsupported one. The paper's
  rule has every pair in its denominator already, so `c_acc_strict` equals `c_acc`; the code's has not.

A pair is one statement and one URL. If its page fails through the report's own fault it has no valid content for the
published rules, and counts as `unreachable`; if the page or the judge fails otherwise, every metric that needs the
pair is unscored. The code judges the scraper's error text as if it were the page, a bug that is not copied.

The arithmetic below needs no judge.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Literal

import msgspec

from adjudge.fetchers.page import Page, address_of
from adjudge.fetchers.urls import NormalURL
from adjudge.judges import numbered
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools, minimum
from adjudge.scoring.contract.reasons import CAUSES, Reason
from adjudge.scoring.contract.scorecard import Evidence, Metric, Missing, Scorecard, Value, first_missing
from adjudge.scoring.deepresearch_bench.fact_extraction import extract
from adjudge.scoring.deepresearch_bench.fact_support import Repeats, Verdict, back, same_words
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.citation_marks import clean_url
from adjudge.scoring.text.citations import MAX_FACTS, Triplet, parse

__all__ = [
    "CodeScores",
    "Fact",
    "Group",
    "PaperScores",
    "Tally",
    "citation_accuracy",
    "code_scores",
    "group_by_url",
    "kept_statements",
    "known_accuracy",
    "paper_scores",
]

MAX_STATEMENTS = 20
_LEFT_OUT = Evidence(
    what=f"The report has more than {MAX_FACTS:,} facts or references; those after the limit were not read.",
    outcome="",
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


class _Pair(msgspec.Struct, frozen=True):
    """A unique pair: its verdict, or the reason it has none. `judgment` is a hex key."""

    fact: str
    url: str
    verdict: Verdict | None
    reason: Reason | None = None
    judgment: str = ""
    shown: str = ""  # how much of the page was shown, if not all

    @property
    def own_doing(self) -> bool:
        """Whether the report itself is the reason for the missing verdict."""
        return self.reason is not None and CAUSES[self.reason] == "report"


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report's citations; needs no gold.

    `extraction`: the judge reads the report's statements and their sources, or its marks are parsed without a judge
    (`scoring.text.citations`). Metrics: see the module; beside them the counts they are made of. `cited` is 1 for a
    report with triplets, `unscored` how many pairs the infrastructure failed.
    """

    name: ClassVar[str] = "fact"

    extraction: Literal["judge", "markers"] = "judge"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The paper's accuracy first; the pooled ones last."""
        return (
            Metric(name="c_acc", scale=100, headline=True),
            Metric(name="c_acc_strict", scale=100),
            Metric(name="e_cit", best=None),
            *(Metric(name=name, best=None, shown=False) for name in ("pairs", "supported")),
            *(
                Metric(name=name, best=None, lower_is_better=True, shown=False)
                for name in ("unsupported", "unknown", "unreachable", "unscored")
            ),
            *(Metric(name=name, best=None, shown=False) for name in ("judged", "judged_strict")),
            Metric(name="cited", shown=False),
            Metric(name="c_acc_code", scale=100, ratio=("supported", "judged")),
            Metric(name="c_acc_code_strict", scale=100, ratio=("supported", "judged_strict")),
            Metric(name="e_cit_code", best=None, ratio=("supported", "cited")),
        )

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Extract, group, deduplicate and read, ask what each page supports, count."""
        whole = await aside(parse, storable(case.report.text), case.report.citations)
        triplets = whole.triplets if self.extraction == "markers" else await extract(case, whole, tools)
        if isinstance(triplets, Missing):
            return self._without(case, triplets)
        groups = group_by_url(triplets)
        checked = await asyncio.gather(*(_check(group, case.task.language, tools) for group in groups))
        card = self._scorecard(case, groups, checked)
        if whole.complete:
            return card
        return msgspec.structs.replace(card, evidence=(*card.evidence, _LEFT_OUT))

    def _without(self, case: Case, missing: Missing) -> Scorecard:
        if CAUSES[missing.reason] == "report":
            return minimum(self, case, missing.reason)
        values = {metric.name: missing for metric in self.metrics if metric.ratio is None}
        return Scorecard.of(self.name, case, values)

    def _scorecard(
        self, case: Case, groups: Sequence[Group], checked: Sequence[tuple[_Pair, ...] | Missing]
    ) -> Scorecard:
        pairs = [pair for found in checked if not isinstance(found, Missing) for pair in found]
        unmerged = next((found for found in checked if isinstance(found, Missing)), None)
        failed = [pair for pair in pairs if pair.reason is not None and not pair.own_doing]
        missing = unmerged or next((Missing(pair.reason) for pair in failed if pair.reason is not None), None)
        tally = _tally(pairs)
        judged = tally.supported + tally.unsupported
        values: dict[str, Value] = {
            "c_acc": missing or citation_accuracy(tally),
            "c_acc_strict": missing or citation_accuracy(tally),
            "e_cit": missing or tally.supported,
            "pairs": unmerged or len(pairs),
            "supported": missing or tally.supported,
            "unsupported": missing or tally.unsupported,
            "unknown": missing or tally.unknown,
            "unreachable": unmerged or tally.unreachable,
            "unscored": unmerged or len(failed),
            "judged": missing or judged,
            "judged_strict": missing or judged + tally.unreachable,
            "cited": bool(groups),
        }
        return Scorecard.of(self.name, case, values, [*map(_evidence, pairs), *_unmerged(groups, checked)])


async def _check(group: Group, language: str, tools: Tools) -> tuple[_Pair, ...] | Missing:
    """The unique pairs of one URL with their verdicts; Missing if it is not known which statements are unique."""
    statements, page = await asyncio.gather(_unique(group, language, tools), _read(group.address, tools))
    if isinstance(statements, Missing):
        return statements
    if isinstance(page, Missing):
        return tuple(_Pair(fact, group.url, None, page.reason) for fact in statements)
    if not page.text.strip():
        return tuple(_Pair(fact, page.url, "unknown") for fact in statements)
    batches = [
        statements[start : start + MAX_STATEMENTS] for start in range(0, len(statements), MAX_STATEMENTS)
    ]
    answered = await asyncio.gather(*(back(tools, page, batch, language) for batch in batches))
    found = []
    for batch, (judgment, shown) in zip(batches, answered, strict=True):
        for key, fact in zip(numbered(len(batch)), batch, strict=True):
            verdict = judgment.answer.items[key] if judgment.answer else None
            reason = None if judgment.answer else judgment.reason or "judge_unparseable"
            found.append(_Pair(fact, page.url, verdict, reason, judgment.key.hex(), shown))
    return tuple(found)


async def _unique(group: Group, language: str, tools: Tools) -> tuple[str, ...] | Missing:
    """The statements of a group without repeats; those equal word for word need no judge."""
    statements = tuple({same_words(fact): fact for fact in reversed(group.facts)}.values())[::-1]
    if len(statements) < 2:
        return statements
    asked = Repeats.about(statements, language)
    judgments = await tools.ask_all(asked)
    missing = first_missing(judgments)
    if missing:
        return statements if CAUSES[missing.reason] == "report" else missing
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


def _tally(pairs: Iterable[_Pair]) -> Tally:
    counts = Counter("unreachable" if pair.own_doing else pair.verdict for pair in pairs)
    return Tally(
        supported=counts["supported"],
        unsupported=counts["unsupported"],
        unknown=counts["unknown"],
        unreachable=counts["unreachable"],
    )


def _evidence(pair: _Pair) -> Evidence:
    outcome: str = "unreachable" if pair.own_doing else pair.verdict or ""
    if pair.shown:
        outcome = f"{outcome} ({pair.shown})"
    return Evidence(
        what=pair.fact, outcome=outcome, judgment=pair.judgment, url=pair.url, reason=pair.reason or ""
    )


def _unmerged(groups: Sequence[Group], checked: Sequence[tuple[_Pair, ...] | Missing]) -> Iterator[Evidence]:
    """A line for every URL of which it is not known which statements are unique."""
    for group, found in zip(groups, checked, strict=True):
        if isinstance(found, Missing):
            what = f"{len(group.facts)} statements, repeats included"
            yield Evidence(what=what, outcome="", url=group.url, reason=found.reason)
