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
from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec

from adjudge.judges import Answer, Context, Judgment, Question, numbered
from adjudge.judges.lexical import figures, terms
from adjudge.scoring.answers.parts import bounded
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import MISSING, Evidence, Metric, Missing, Outcome, Scorecard, Value
from adjudge.scoring.deepresearch_bench.signs import SIGNS, signs_of
from adjudge.scoring.deepresearch_bench.words import RACE
from adjudge.scoring.deepresearch_bench.yardstick import (
    DIMENSIONS,
    MOST,
    Criterion,
    MeasuredByGold,
    RaceGold,
    Yardstick,
    yardstick,
)
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.blocks import lines
from adjudge.scoring.text.cleaning import clean_report, judge_clean

__all__ = [
    "ArticleMarks",
    "OverallMark",
    "Pair",
    "PairMarks",
    "Race",
    "chunks",
    "dimension_score",
    "match_weight",
    "out_of_ten",
    "pointwise",
    "relative",
    "system_scores",
    "total",
]

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


class PairMarks(Question[MarkedPair], frozen=True, kw_only=True):
    """How do articles A (in the context) and B do by each criterion?"""

    words = "marks by criterion beside the reference"
    prompt = "race_pair"
    answer = MarkedPair

    criteria: tuple[str, ...]
    article_b: str

    @property
    def count(self) -> int:
        """One item per criterion."""
        return len(self.criteria)

    def lexical(self) -> MarkedPair:
        """The lexical mark of each article, taken alone: the same in either order."""
        task, article_a = self.context["task"], self.context["article_a"]
        marks = [
            Pair(
                a=_lexical_mark(article_a, task, criterion), b=_lexical_mark(self.article_b, task, criterion)
            )
            for criterion in map(_unnamed, self.criteria)
        ]
        return MarkedPair(items=dict(zip(numbered(len(marks)), marks, strict=True)))


class Single(Answer, frozen=True, kw_only=True):
    """The article's mark for one criterion."""

    analysis: Analysis = ""
    mark: Mark


class MarkedArticle(Answer, frozen=True, kw_only=True):
    """The article's mark for each numbered criterion."""

    most_items: ClassVar[int] = MAX_CRITERIA

    items: dict[str, Single]


class ArticleMarks(Question[MarkedArticle], frozen=True, kw_only=True):
    """How does the article in the context do by each criterion, with nothing to compare it with?"""

    words = "marks by criterion"
    prompt = "race_point"
    answer = MarkedArticle

    criteria: tuple[str, ...]

    @property
    def count(self) -> int:
        """One item per criterion."""
        return len(self.criteria)

    def lexical(self) -> MarkedArticle:
        """The lexical mark of the article."""
        task, article = self.context["task"], self.context["article"]
        marks = [
            Single(mark=_lexical_mark(article, task, criterion)) for criterion in map(_unnamed, self.criteria)
        ]
        return MarkedArticle(items=dict(zip(numbered(len(marks)), marks, strict=True)))


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


A = TypeVar("A", bound=Answer)

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
WITHOUT_REFERENCE = ("vanilla", "pointwise")
REFERENCE_FIRST = "reference_first."
"""Prefix of metric names when the reference comes first; its marks differ from those of the published order."""


def match_weight(scored: str, criteria: Sequence[Criterion]) -> float:
    """The weight of an item that a judge scored under the text `scored`.

    The criterion of equal text, stripped; else equal without regard to case; else the first, in criteria order, of
    which one text holds the other; else the mean weight of the dimension. 0 without criteria.
    """
    text = scored.strip()
    for criterion in criteria:
        if criterion.criterion.strip() == text:
            return criterion.weight
    for criterion in criteria:
        if criterion.criterion.strip().lower() == text.lower():
            return criterion.weight
    for criterion in criteria:
        known = criterion.criterion.strip().lower()
        if known in text.lower() or text.lower() in known:
            return criterion.weight
    return sum(criterion.weight for criterion in criteria) / len(criteria) if criteria else 0.0


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
    """target / (target + reference), 0 if the sum is 0."""
    return target / (target + reference) if target + reference else 0.0


def pointwise(score: float) -> float:
    """A score from 0 to 10 without a reference, as a share of 10, within 0..1."""
    return min(max(score / 10, 0.0), 1.0)


def system_scores(rows: Iterable[Mapping[str, float | None]]) -> dict[str, float]:
    """A system's score for each metric: the mean over the tasks that are scored for it.

    `rows` are its tasks' scores; None is unscored and out of the mean. Reported x 100.
    """
    scored: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if value is not None:
                scored.setdefault(name, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in scored.items()}


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


class Race(MeasuredByGold, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report under the task's gold `race` (`RaceGold`).

    Metrics: `overall` and the four dimensions (x 100), and `total`, the report's own mark from 0 to 10. `vanilla` has
    no dimensions. All of them are called `reference_first.NAME` if the reference comes first.
    """

    name: ClassVar[str] = "race"
    words: ClassVar = RACE

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
        if self.variant in WITHOUT_REFERENCE and (self.both_orders or self.order == "reference_first"):
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
            *(() if self.variant == "vanilla" else SIGNS),
        )

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics`, the same for every task. Raises GoldError."""
        self._gold(case)
        return self.metrics

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Clean the report, agree on criteria, ask for marks, weigh them. Raises GoldError."""
        gold = self._gold(case)
        article = await self._cleaned(case, tools)
        if isinstance(article, Missing):
            return self._unscored(case, article)
        if self.variant == "vanilla":
            return await self._vanilla(case, article, tools)
        measure = await self._measure(case, gold, tools)
        if isinstance(measure, Missing):
            return self._unscored(case, measure)
        reference = await aside(clean_report, storable(gold.reference))
        marks = await self._marks(case, article, reference, measure, tools)
        items = [_Item(*item, marks) for item, marks in zip(measure.items, marks, strict=True)]
        criteria = tuple(storable(item.criterion.criterion) for item in items)
        signs = await aside(signs_of, storable(case.report.text), storable(gold.reference), criteria)
        return self._scorecard(case, items, measure, signs)

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The criteria with their explanations and what they weigh in `overall`. Raises GoldError."""
        if self.variant == "vanilla":
            return []
        measure = await self._measure(case, self._gold(case), tools)
        return [] if isinstance(measure, Missing) else measure.explained()

    @property
    def _reference_first(self) -> bool:
        return self.order == "reference_first" or self.variant == "reversed_positions"

    @property
    def _prefix(self) -> str:
        return REFERENCE_FIRST if self._reference_first else ""

    def _gold(self, case: Case) -> RaceGold:
        gold = RaceGold.of(case)
        if self.variant not in WITHOUT_REFERENCE and not gold.reference.strip():
            raise GoldError("gold_missing", f"task {case.task.id}: gold for race has no reference")
        return gold

    async def _cleaned(self, case: Case, tools: Tools) -> str | Missing:
        if self.cleaning == "judge":
            return await judge_clean(case.report.text, case.task.language, tools)
        return await aside(clean_report, storable(case.report.text))

    async def _measure(self, case: Case, gold: RaceGold, tools: Tools) -> Yardstick | Missing:
        measure = await yardstick(case, gold, tools, static=self.variant == "static_criteria")
        if isinstance(measure, Missing):
            return measure
        if self.variant in ("no_criteria_weights", "no_weights"):
            measure = measure.without_criteria_weights()
        if self.variant in ("no_dimension_weights", "no_weights"):
            measure = measure.without_dimension_weights()
        return measure

    async def _vanilla(self, case: Case, article: str, tools: Tools) -> Scorecard:
        context = Context.of(task=case.task.prompt, article=article)
        judgment = await tools.ask(OverallMark(context=context, language=case.task.language))
        if judgment.answer is None:
            return self._unscored(case, Missing(judgment.reason or "judge_unparseable"))
        mark = judgment.answer.mark
        evidence = Evidence(what="overall", outcome=out_of_ten(mark), judgment=judgment.key.hex())
        return Scorecard.of(self.name, case, {"overall": pointwise(mark), "total": mark}, [evidence])

    async def _marks(
        self, case: Case, target: str, reference: str, measure: Yardstick, tools: Tools
    ) -> list[_Marks]:
        """The marks for every criterion, in their order."""
        criteria = [named(*item) for item in measure.items]
        if self.variant == "pointwise":
            return await _mark_alone(case, target, criteria, tools)
        ask = partial(_mark_pair, case, target, reference, criteria, tools)
        if not self.both_orders:
            return await ask(target_first=not self._reference_first)
        both = await asyncio.gather(ask(target_first=True), ask(target_first=False))
        return [_averaged(*pair) for pair in zip(*both, strict=True)]

    def _scorecard(
        self, case: Case, items: Sequence[_Item], measure: Yardstick, signs: Mapping[str, float]
    ) -> Scorecard:
        """The scorecard from the marks of all items, those that are missing leave bounds, and the report's `signs`."""
        figures = self._figures([(item.marks.target, item.marks.reference) for item in items], items, measure)
        low = high = figures
        if any(item.marks.reason for item in items):
            low, high = (
                self._figures(
                    [
                        end if item.marks.reason else (item.marks.target, item.marks.reference)
                        for item in items
                    ],
                    items,
                    measure,
                )
                for end in ((0.0, MOST), (MOST, 0.0))
            )
        values: dict[str, Value] = dict(signs)
        for name, figure in figures.items():
            needed = [item.marks.reason for item in items if name in ("overall", "total", item.dimension)]
            reasons = [reason for reason in needed if reason]
            value = Missing(reasons[0]) if reasons else figure
            values[f"{self._prefix}{name}"] = bounded(
                value, (low[name], high[name]), len(needed) - len(reasons), len(needed)
            )
        evidence = [_evidence(item, self.variant == "pointwise") for item in items]
        return Scorecard.of(self.name, case, values, evidence)

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
        shares = {name: self._share(targets[name], references[name]) for name in DIMENSIONS}
        return {"overall": self._share(target, reference), **shares, "total": target}

    def _share(self, target: float, reference: float) -> float:
        return pointwise(target) if self.variant == "pointwise" else relative(target, reference)

    def _unscored(self, case: Case, missing: Missing) -> Scorecard:
        return Scorecard.of(self.name, case, {metric.name: missing for metric in self.metrics})


async def _mark_alone(case: Case, article: str, criteria: Sequence[str], tools: Tools) -> list[_Marks]:
    context = Context.of(task=case.task.prompt, article=article)
    asked = [
        ArticleMarks(context=context, language=case.task.language, criteria=chunk)
        for chunk in chunks(criteria)
    ]
    judgments = await tools.ask_all(asked)
    found = []
    for question, judgment in zip(asked, judgments, strict=True):
        for key in numbered(question.count):
            mark = judgment.answer.items[key].mark if judgment.answer else 0.0
            found.append(_Marks(mark, 0.0, _reason(judgment), judgment.key.hex()))
    return found


async def _mark_pair(
    case: Case, target: str, reference: str, criteria: Sequence[str], tools: Tools, *, target_first: bool
) -> list[_Marks]:
    first, second = (target, reference) if target_first else (reference, target)
    context = Context.of(task=case.task.prompt, article_a=first)
    asked = [
        PairMarks(context=context, language=case.task.language, criteria=chunk, article_b=second)
        for chunk in chunks(criteria)
    ]
    judgments = await tools.ask_all(asked)
    found = []
    for question, judgment in zip(asked, judgments, strict=True):
        for key in numbered(question.count):
            pair = judgment.answer.items[key] if judgment.answer else Pair(a=0, b=0)
            of_target, of_reference = (pair.a, pair.b) if target_first else (pair.b, pair.a)
            found.append(_Marks(of_target, of_reference, _reason(judgment), judgment.key.hex()))
    return found


def _reason(judgment: Judgment[A]) -> Reason | None:
    return None if judgment.answer is not None else judgment.reason or "judge_unparseable"


def _averaged(one: _Marks, other: _Marks) -> _Marks:
    failed = one if one.reason else other
    return _Marks(
        (one.target + other.target) / 2, (one.reference + other.reference) / 2, failed.reason, failed.judgment
    )


def out_of_ten(mark: float, reference: float | None = None) -> Outcome:
    """A mark from 0 to 10, beside that of the reference report if there is one."""
    beside = "" if reference is None else f", reference {reference:g}"
    return Outcome("points", mark, 10.0, reference, f"{mark:g} of 10{beside}")


def _evidence(item: _Item, alone: bool) -> Evidence:
    marks = item.marks
    return Evidence(
        what=item.criterion.named(item.dimension),
        outcome=MISSING if marks.reason else out_of_ten(marks.target, None if alone else marks.reference),
        judgment=marks.judgment,
        reason=marks.reason or "",
        value=None if marks.reason or alone else marks.target,
    )
