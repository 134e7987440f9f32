"""RACE (DeepResearch Bench): report quality by weighted criteria, relative to a reference report.

    overall = target / (target + reference), where target = sum of W_d * dim_d

As in the published call, one question shows the task, the target, the reference and all criteria of the task, each with
its dimension and without its weight; each gets an analysis and a mark from 0 to 10 for both articles. `order:
reference_first` shows the reference first, so that all systems of a task share the longest possible prefix; it is the
paper's ablation `reversed_positions`, and its metrics are called `reference_first.NAME`. `both_orders` averages the
marks of the two orders.

Variants, as in the paper's ablation: `full`; `vanilla` (one mark from 0 to 10); `pointwise` (criteria, no reference,
/10); `static_criteria` (general criteria of our own); `no_criteria_weights`; `no_dimension_weights`; `no_weights`;
`reversed_positions`. `full` shares its questions with the weightless variants.

How the question differs from the published call:

- Marks come back under the criteria's numbers, not their texts; `match_weight` is for published replies.
- The articles are called A and B, without a hint which is the report and which the reference. Marks come in halves.
- Every criterion gets an analysis before its marks; the analyses of one question share one budget of characters.
- Reports (and references) are cleaned of citation marks by rules; by the judge only with `cleaning="judge"`.
- More than 80 criteria are asked in several questions.

The task and the first article are the context; article B and all criteria follow.

A question without an answer, cut off or too long for the judge, leaves its criteria without marks. The paper has marks
for all of them: a metric that lacks some has no value, and bounds with those marks at their worst and best.

The arithmetic below needs no judge.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import figures, terms
from adjudge.scoring.answers.numbered import Numbered
from adjudge.scoring.answers.parts import bounded
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.gold import DraftsFrom, GoldItems, GoldSource
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import MISSING, Evidence, Metric, Missing, Outcome, Scorecard, Value
from adjudge.scoring.deepresearch_bench.words import RACE
from adjudge.scoring.deepresearch_bench.yardstick import (
    DIMENSIONS,
    MOST,
    Criterion,
    RaceGold,
    Yardstick,
    frozen,
    yardstick,
)
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.blocks import lines
from adjudge.scoring.text.cleaning import clean_beside, clean_report, judge_clean

MAX_CRITERIA = 80

Mark = Annotated[float, msgspec.Meta(ge=0, le=10, multiple_of=0.5)]
Analysis = Annotated[str, msgspec.Meta(max_length=4_800, extra_json_schema={"shared": True})]


class Pair(Answer, frozen=True, kw_only=True):
    """The marks of both articles for one criterion."""

    analysis: Analysis = ""
    a: Mark
    b: Mark


class MarkedPair(Answer, frozen=True, kw_only=True):
    """The marks of both articles for each numbered criterion."""

    most_items: ClassVar[int] = MAX_CRITERIA

    items: dict[str, Pair]


class PairMarks(Numbered[MarkedPair], frozen=True, kw_only=True):
    """How do articles A (in the context) and B do by each criterion?"""

    words = "marks by criterion beside the reference"
    prompt = "race_pair"
    answer = MarkedPair
    listed = "criteria"

    criteria: tuple[str, ...]
    article_b: str

    def lexical(self) -> MarkedPair:
        """The lexical mark of each article, taken alone: the same in either order."""
        task, article_a = self.context["task"], self.context["article_a"]
        marks = [
            Pair(
                a=_lexical_mark(article_a, task, criterion), b=_lexical_mark(self.article_b, task, criterion)
            )
            for criterion in map(_unnamed, self.criteria)
        ]
        return MarkedPair(items=self.keyed(marks))


class Single(Answer, frozen=True, kw_only=True):
    """The article's mark for one criterion."""

    analysis: Analysis = ""
    mark: Mark


class MarkedArticle(Answer, frozen=True, kw_only=True):
    """The article's mark for each numbered criterion."""

    most_items: ClassVar[int] = MAX_CRITERIA

    items: dict[str, Single]


class ArticleMarks(Numbered[MarkedArticle], frozen=True, kw_only=True):
    """How does the article in the context do by each criterion, with nothing to compare it with?"""

    words = "marks by criterion"
    prompt = "race_point"
    answer = MarkedArticle
    listed = "criteria"

    criteria: tuple[str, ...]

    def lexical(self) -> MarkedArticle:
        """The lexical mark of the article."""
        task, article = self.context["task"], self.context["article"]
        marks = [
            Single(mark=_lexical_mark(article, task, criterion)) for criterion in map(_unnamed, self.criteria)
        ]
        return MarkedArticle(items=self.keyed(marks))


class Overall(Answer, frozen=True, kw_only=True):
    """One mark for the whole article."""

    analysis: Annotated[str, msgspec.Meta(max_length=1600)] = ""
    mark: Mark


class OverallMark(Question[Overall], frozen=True, kw_only=True):
    """How good is the article in the context, all in all? No criteria, no reference."""

    words = "one mark for the whole report"
    prompt = "race_vanilla"
    answer = Overall

    def lexical(self) -> Overall:
        """The lexical mark with the task as the only criterion."""
        return Overall(mark=_lexical_mark(self.context["article"], self.context["task"], ""))


def named(dimension: str, criterion: Criterion) -> str:
    """A criterion as a judge is shown it: its dimension, its text, never its weight."""
    return f"{dimension} | {criterion.text}"


def _unnamed(shown: str) -> str:
    return shown.partition(" | ")[2]


def chunks(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """`criteria` in their order, in as few runs of at most 80 as possible, of even length."""
    runs = math.ceil(len(criteria) / MAX_CRITERIA)
    edges = [len(criteria) * run // runs for run in range(runs + 1)] if runs else [0]
    return [tuple(criteria[start:end]) for start, end in pairwise(edges)]


class _Signals(msgspec.Struct, frozen=True):
    counts: dict[str, int]
    length: float
    structure: float
    figures: float


@lru_cache(maxsize=64)
def _signals(article: str) -> _Signals:
    """An article as the lexical judge sees it; `length`, `structure` and `figures` rise towards 1 and saturate."""
    counts: dict[str, int] = {}
    for term in terms(article):
        counts[term] = counts.get(term, 0) + 1
    shaped = sum(line.kind in ("heading", "item", "row") for line in lines(article))
    stated = len(figures(article))
    return _Signals(
        counts,
        length=_saturated(sum(counts.values()), 800),
        structure=_saturated(shaped, 20),
        figures=_saturated(stated, 25),
    )


def _lexical_mark(article: str, task: str, criterion: str) -> float:
    """Mostly how often the article uses the words of the criterion and the task; a little length, shape and figures."""
    seen = _signals(article)
    if not seen.counts:
        return 0.0
    asked = 0.6 * _used(seen, criterion) + 0.4 * _used(seen, task) if criterion else _used(seen, task)
    raw = 0.6 * asked + 0.2 * seen.length + 0.1 * seen.structure + 0.1 * seen.figures
    return round(20 * raw) / 2


def _used(seen: _Signals, text: str) -> float:
    wanted = set(terms(text))
    return (
        sum(_saturated(seen.counts.get(term, 0), 2) for term in sorted(wanted)) / len(wanted)
        if wanted
        else 0.0
    )


def _saturated(value: float, half: float) -> float:
    return value / (value + half)


Variant = Literal[
    "full",
    "vanilla",
    "pointwise",
    "static_criteria",
    "no_criteria_weights",
    "no_dimension_weights",
    "no_weights",
    "reversed_positions",
]
REFERENCE_FIRST = "reference_first."
"""Prefix of metric names when the reference comes first; its marks differ from those of the published order."""


def match_weight(scored: str, criteria: Sequence[Criterion]) -> float:
    """The weight of an item that a judge scored under the text `scored`, by the reference code's rules.

    That of the criterion with this text (stripped; else without regard to case; else the first of which one text holds
    the other), else the mean weight of the dimension. 0 without criteria.
    """
    weights, text = {one.criterion: one.weight for one in criteria}, scored.strip()
    if text in weights:
        return weights[text]
    wanted = text.lower()
    lowered = [(known.lower(), weight) for known, weight in weights.items()]
    alike = [weight for known, weight in lowered if known == wanted]
    alike += [weight for known, weight in lowered if wanted in known or known in wanted]
    return alike[0] if alike else sum(weights.values()) / (len(weights) or 1)


def weighted_mean(items: Iterable[tuple[float, float]]) -> float:
    """The mean of (score, weight) pairs, over the weight that is there; 0 if there is none."""
    taken = list(items)
    weight = sum(weight for _, weight in taken)
    return sum(score * weight for score, weight in taken) / weight if weight else 0.0


def dimension_score(scored: Iterable[tuple[str, float]], criteria: Sequence[Criterion]) -> float:
    """A dimension's score from (criterion text, score) items: omitted ones renormalise, repeated ones count twice.

    Nothing is clipped.
    """
    return weighted_mean((score, match_weight(text, criteria)) for text, score in scored)


def total(dimensions: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Sum of W_d * dim_d over `dimensions`; the weights are not renormalised."""
    return sum(weights.get(name, 0.0) * score for name, score in dimensions.items())


def relative(target: float, reference: float) -> float:
    """target / (target + reference), 0 unless the sum is above 0."""
    return target / (target + reference) if target + reference > 0 else 0.0


def pointwise(score: float) -> float:
    """A score from 0 to 10 without a reference, as a share of 10, within 0..1."""
    return min(max(score / 10, 0.0), 1.0)


class _Marks(msgspec.Struct, frozen=True):
    """One criterion's marks for target and reference (0 if there is none), or why there are none."""

    target: float
    reference: float
    reason: Reason | None
    judgment: str


class _Item(msgspec.Struct, frozen=True):
    """One criterion with its marks, averaged over the orders that were asked."""

    dimension: str
    criterion: Criterion
    marks: _Marks


Found = tuple[dict[str, Value], list[Evidence]]
"""Every metric of a report, and a line of evidence for each mark."""


COPIED = Metric(name="reference_runs", scale=100, shown=False, kind="count")
"""The share of the report's wording that is the reference report's; it ranks nobody."""

_WITHOUT = " (the report to compare with); variant: pointwise and variant: vanilla need none"


class RaceProtocol(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """RACE under the task's gold `race` (`RaceGold`), in one of two voices: `Race` or `PublishedRace`.

    A voice cleans the report, makes the yardstick that gold lacks, and asks for marks in its own words.
    """

    name: ClassVar[str] = "race"
    words: ClassVar = RACE
    drafts_from: ClassVar[DraftsFrom] = "task"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Overall first, then the dimensions."""
        raise NotImplementedError

    @property
    def compares(self) -> bool:
        """Whether a report is shown beside the reference."""
        raise NotImplementedError

    async def cleaned(self, case: Case, tools: Tools) -> str | Missing:
        """The report without citations."""
        raise NotImplementedError

    async def yardstick(self, case: Case, gold: RaceGold, tools: Tools) -> Yardstick | Missing:
        """Weights and criteria: gold's, made by the judge where it has none."""
        raise NotImplementedError

    async def marked(
        self, case: Case, article: str, reference: str, measure: Yardstick, tools: Tools
    ) -> Found | Missing:
        """Every metric of the cleaned report, and a line of evidence for each mark."""
        raise NotImplementedError

    async def measured_by(self, case: Case, gold: RaceGold, tools: Tools) -> Yardstick | Missing:
        """The yardstick that marks are weighed by."""
        return await self.yardstick(case, gold, tools)

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics`, the same for every task. Raises GoldError."""
        self._gold(case)
        return self.metrics

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Clean the report, agree on criteria, ask for marks, weigh them. Raises GoldError."""
        found = await self._found(case, self._gold(case), tools)
        if isinstance(found, Missing):
            return Scorecard.of(self.name, case, {metric.name: found for metric in self.metrics})
        return Scorecard.of(self.name, case, *found)

    async def _found(self, case: Case, gold: RaceGold, tools: Tools) -> Found | Missing:
        article = await self.cleaned(case, tools)
        if isinstance(article, Missing):
            return article
        measure = await self.measured_by(case, gold, tools)
        if isinstance(measure, Missing):
            return measure
        return await self.marked(case, article, gold.reference, measure, tools)

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The criteria with their explanations and what they weigh in `overall`. Raises GoldError."""
        measure = await self.measured_by(case, self._gold(case), tools)
        return [] if isinstance(measure, Missing) else measure.explained()

    async def draft(
        self, case: Case, tools: Tools, sources: Sequence[GoldSource] = ()
    ) -> msgspec.Raw | Missing:
        """The task's gold with weights and criteria, made by the judge where it has none. Raises GoldError."""
        measure = await self.yardstick(case, RaceGold.of(case), tools)
        return measure if isinstance(measure, Missing) else frozen(case, measure)

    def gold_items(self, case: Case) -> GoldItems:
        """The criteria of the task's gold, and the weights that sum to 1. Raises GoldError."""
        return RaceGold.of(case).as_items()

    def _gold(self, case: Case) -> RaceGold:
        gold = RaceGold.of(case)
        if self.compares and not gold.reference.strip():
            raise GoldError("gold_missing", f"task {case.task.id}: gold for race has no reference{_WITHOUT}")
        return gold


class Race(RaceProtocol, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report under the task's gold `race` (`RaceGold`).

    Metrics: `overall` and the four dimensions (x 100), and `total`, the report's own mark from 0 to 10. `vanilla` has
    no dimensions. All of them are called `reference_first.NAME` if the reference comes first.
    """

    variant: Variant = "full"
    """`full`, or one of the paper's ablations."""
    order: Literal["target_first", "reference_first"] = "target_first"
    """`target_first` is the published order; `reference_first` puts the reference first, so systems share it; metric
    names get the prefix `reference_first.`."""
    both_orders: bool = False
    """Whether each report is judged in both orders, and the mean taken."""
    cleaning: Literal["rules", "judge"] = "rules"
    """How citations are taken out before judging: by `rules`, or by the `judge` as published."""

    def __post_init__(self) -> None:
        ordered = "both_orders" if self.both_orders else "order: reference_first"
        if not self.compares and (self.both_orders or self.order == "reference_first"):
            raise ValueError(f"{ordered} needs a second article, and the variant {self.variant} has none")
        if self.both_orders and self._reference_first:
            raise ValueError("both_orders asks in both orders; leave out order and reversed_positions")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Overall first, then the dimensions, then the report's own total."""
        dimensions = () if self.variant == "vanilla" else DIMENSIONS
        return (
            Metric(name=f"{self._prefix}overall", scale=100, headline=True),
            *(Metric(name=f"{self._prefix}{name}", scale=100) for name in dimensions),
            Metric(name=f"{self._prefix}total", best=10, shown=False),
            *(() if self.variant == "vanilla" else (COPIED,)),
        )

    @property
    def compares(self) -> bool:
        """Whether a report is shown beside the reference."""
        return self.variant not in ("vanilla", "pointwise")

    @property
    def _reference_first(self) -> bool:
        return self.order == "reference_first" or self.variant == "reversed_positions"

    @property
    def _prefix(self) -> str:
        return REFERENCE_FIRST if self._reference_first else ""

    async def cleaned(self, case: Case, tools: Tools) -> str | Missing:
        """The report without citations, by rules or by the judge."""
        if self.cleaning == "judge":
            return await judge_clean(case.report.text, case.task.language, tools)
        return await aside(clean_report, storable(case.report.text))

    async def yardstick(self, case: Case, gold: RaceGold, tools: Tools) -> Yardstick | Missing:
        """Weights and criteria: gold's, made by the judge where it has none."""
        return await yardstick(case, gold, tools)

    async def measured_by(self, case: Case, gold: RaceGold, tools: Tools) -> Yardstick | Missing:
        """The yardstick of the variant; `vanilla` has an empty one."""
        if self.variant == "vanilla":
            return Yardstick({}, {})
        measure = await yardstick(case, gold, tools, static=self.variant == "static_criteria")
        if isinstance(measure, Missing):
            return measure
        if self.variant in ("no_criteria_weights", "no_weights"):
            measure = measure.without_criteria_weights()
        if self.variant in ("no_dimension_weights", "no_weights"):
            measure = measure.without_dimension_weights()
        return measure

    async def marked(
        self, case: Case, article: str, reference: str, measure: Yardstick, tools: Tools
    ) -> Found | Missing:
        """Every metric, with bounds where marks are missing, and a line of evidence for each criterion."""
        if self.variant == "vanilla":
            context = Context.of(task=case.task.prompt, article=article)
            judgment = await tools.ask(OverallMark(context=context, language=case.task.language))
            if judgment.answer is None:
                return Missing(judgment.reason or "judge_unparseable")
            mark = judgment.answer.mark
            evidence = Evidence(what="overall", outcome=out_of_ten(mark), judgment=judgment.key.hex())
            return {"overall": pointwise(mark), "total": mark}, [evidence]
        reference, share = await aside(clean_beside, storable(case.report.text), storable(reference))
        ask = partial(self._asked, case, article, reference, [named(*item) for item in measure.items], tools)
        if self.both_orders:
            both = await asyncio.gather(ask(target_first=True), ask(target_first=False))
            marks = [
                _Marks(
                    (one.target + other.target) / 2,
                    (one.reference + other.reference) / 2,
                    one.reason or other.reason,
                    one.judgment if one.reason else other.judgment,
                )
                for one, other in zip(*both, strict=True)
            ]
        else:
            marks = await ask(target_first=not self._reference_first)
        items = [_Item(*item, found) for item, found in zip(measure.items, marks, strict=True)]
        return {COPIED.name: share} | self._values(items, measure), [
            mark_evidence(
                item.criterion.named(item.dimension),
                item.marks.target,
                item.marks.reference if self.compares else None,
                item.marks.judgment,
                item.marks.reason,
            )
            for item in items
        ]

    async def _asked(
        self,
        case: Case,
        target: str,
        reference: str,
        criteria: Sequence[str],
        tools: Tools,
        *,
        target_first: bool,
    ) -> list[_Marks]:
        """The marks for every criterion, in their order."""
        task, language = case.task.prompt, case.task.language
        asked: list[Question[Any]]
        if self.compares:
            first, second = (target, reference) if target_first else (reference, target)
            context = Context.of(task=task, article_a=first)
            asked = [
                PairMarks(context=context, language=language, criteria=chunk, article_b=second)
                for chunk in chunks(criteria)
            ]
        else:
            context = Context.of(task=task, article=target)
            asked = [
                ArticleMarks(context=context, language=language, criteria=chunk) for chunk in chunks(criteria)
            ]
        found = []
        for question, judgment in zip(asked, await tools.ask_all(asked), strict=True):
            reason = None if judgment.answer is not None else judgment.reason or "judge_unparseable"
            for key in numbered(question.count or 0):
                marks = (0.0, 0.0)
                if judgment.answer is not None:
                    item = judgment.answer.items[key]
                    marks = (item.a, item.b) if self.compares else (item.mark, 0.0)
                of_target, of_reference = marks if target_first else marks[::-1]
                found.append(_Marks(of_target, of_reference, reason, judgment.key.hex()))
        return found

    def _values(self, items: Sequence[_Item], measure: Yardstick) -> dict[str, Value]:
        """Every metric from the marks of all items; those that are missing leave bounds."""
        marks = [(item.marks.target, item.marks.reference) for item in items]
        figures = low = high = self._figures(marks, items, measure)
        if any(item.marks.reason for item in items):
            low, high = (
                self._figures(
                    [end if item.marks.reason else pair for item, pair in zip(items, marks, strict=True)],
                    items,
                    measure,
                )
                for end in ((0.0, MOST), (MOST, 0.0))
            )
        values: dict[str, Value] = {}
        for name, figure in figures.items():
            needed = [item.marks.reason for item in items if name in ("overall", "total", item.dimension)]
            reasons = [reason for reason in needed if reason]
            value = Missing(reasons[0]) if reasons else figure
            values[f"{self._prefix}{name}"] = bounded(
                value, (low[name], high[name]), len(needed) - len(reasons), len(needed)
            )
        return values

    def _figures(
        self, marks: Sequence[tuple[float, float]], items: Sequence[_Item], measure: Yardstick
    ) -> dict[str, float]:
        """Every metric, from the (target, reference) marks of all items."""
        targets, references = (
            {
                name: weighted_mean(
                    (pair[side], item.criterion.weight)
                    for pair, item in zip(marks, items, strict=True)
                    if item.dimension == name
                )
                for name in DIMENSIONS
            }
            for side in (0, 1)
        )
        target, reference = total(targets, measure.weights), total(references, measure.weights)
        shares = {name: share(targets[name], references[name], self.compares) for name in DIMENSIONS}
        return {"overall": share(target, reference, self.compares), **shares, "total": target}


def share(target: float, reference: float, compares: bool) -> float:
    """The report's share beside the reference, or of 10 where it is marked alone."""
    return relative(target, reference) if compares else pointwise(target)


def out_of_ten(mark: float, reference: float | None = None) -> Outcome:
    """A mark from 0 to 10, beside that of the reference report if there is one."""
    beside = "" if reference is None else f", reference {reference:g}"
    return Outcome("points", mark, 10.0, reference, f"{mark:g} of 10{beside}")


def mark_evidence(
    what: str, target: float, reference: float | None, judgment: str, reason: Reason | None = None
) -> Evidence:
    """A mark beside the reference's, or alone; why it is missing, if it is."""
    return Evidence(
        what=what,
        outcome=MISSING if reason else out_of_ten(target, reference),
        judgment=judgment,
        reason=reason or "",
        value=None if reason or reference is None else target,
    )
