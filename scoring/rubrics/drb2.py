"""DeepResearch Bench II: items of recall, analysis and presentation, and the source that no report may rest on."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from adjudge.judges import Context, Question
from adjudge.scoring.answers.numbered import batches
from adjudge.scoring.answers.parts import EVERY, Answered, measured
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.labels import MET_LABELS, MET_OR_NOT, Labelled
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Outcome, Scorecard, Value
from adjudge.scoring.rubrics.asking import (
    MAX_ITEMS,
    Explained,
    ExplainedItems,
    ItemAnswer,
    ItemsAQuestion,
    by_place,
)
from adjudge.scoring.rubrics.criteria import DRB2
from adjudge.scoring.rubrics.figures import MAX_CRITERIA
from adjudge.scoring.rubrics.links import Blocked, Traces, traces
from adjudge.scoring.text.aside import aside, storable

Dimension = Literal["info_recall", "analysis", "presentation"]
DIMENSIONS: tuple[Dimension, ...] = ("info_recall", "analysis", "presentation")

MET, NOT_MET, RESTS_ON_BLOCKED = 1.0, 0.0, -1.0
_OUTCOMES = {
    MET: Outcome("met", words="met"),
    NOT_MET: Outcome("unmet", words="not met"),
    RESTS_ON_BLOCKED: Outcome("blocked", words="met, but rests on a blocked source"),
}

Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class Gold(msgspec.Struct, frozen=True):
    """The benchmark's gold for a task: the items by dimension, and the blocked source."""

    rubric: dict[Dimension, tuple[Text, ...]]
    blocked: Blocked | None = None


class Item(msgspec.Struct, frozen=True):
    """One item of a dimension."""

    dimension: Dimension
    text: str


Verdicts = Sequence[tuple[Item, float]]


def share_met(verdicts: Verdicts) -> float | None:
    """The share of items that are met without resting on the blocked source."""
    return _share(verdicts, MET)


def blocked_rate(verdicts: Verdicts) -> float | None:
    """The share of items that are met, but rest on the blocked source."""
    return _share(verdicts, RESTS_ON_BLOCKED)


def _share(verdicts: Verdicts, wanted: float) -> float | None:
    return sum(verdict == wanted for _, verdict in verdicts) / len(verdicts) if verdicts else None


class BlockedItems(ExplainedItems, frozen=True, kw_only=True):
    """Which items does the report meet, and which of them by text that rests on the blocked source?"""

    words = "levels of rubrics, with reasons and blocked sources"
    prompt = "drb2_items"

    blocked: str


class DeepResearchBench2(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by DeepResearch Bench II (gold `drb2`: `rubric` and `blocked`, as published).

    An item is met (1), not met (0), or met by text that rests on the blocked source (-1). `total` is the share of 1
    over all items of the task; `info_recall`, `analysis` and `presentation` the same by dimension; `blocked_rate` the
    share of -1. Up to `items_a_question` items share a question, each with its reason and the sentence it rests on.

    A report without a trace of the blocked source (`blocked.traces`) cannot get -1 and is not asked about it. Where it
    has one, an item whose quoted sentence cites the source is -1 by that; of other items the judge decides.
    """

    name: ClassVar[str] = "drb2"
    words: ClassVar = DRB2

    items_a_question: ItemsAQuestion = MAX_ITEMS
    """How many items the judge gets in one question."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The columns of the paper's tables, then the blocked rate."""
        return (
            *(Metric(name=name, scale=100, gold=name) for name in DIMENSIONS),
            Metric(name="total", headline=True, scale=100),
            Metric(name="blocked_rate", worst=1.0, best=0.0, scale=100, lower_is_better=True),
        )

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics` without the dimensions that the task has no items of. Raises GoldError."""
        gold = self._gold(case)
        asked = {name for name in DIMENSIONS if gold.rubric.get(name)}
        return tuple(one for one in self.metrics if not one.gold or one.gold in asked)

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Find the blocked source's traces; ask for the items; shares over all of them and by dimension."""
        gold = self._gold(case)
        blocked = gold.blocked or Blocked()
        items = [Item(name, text) for name in DIMENSIONS for text in gold.rubric.get(name, ())]
        found = await aside(traces, storable(case.report.text), case.report.citations, blocked)
        places = batches(range(len(items)), self.items_a_question)
        context, language = Context.of(report=case.report.text), case.task.language

        def question(batch: Sequence[int]) -> Question[Any]:
            task, texts = case.task.prompt, tuple(items[n].text for n in batch)
            if not found.any:
                return ExplainedItems(
                    context=context, language=language, task=task, items=texts, levels=(NOT_MET, MET)
                )
            return BlockedItems(
                context=context,
                language=language,
                task=task,
                items=texts,
                levels=(RESTS_ON_BLOCKED, NOT_MET, MET),
                blocked=blocked.described(),
            )

        questions = list(map(question, places))
        told = by_place(places, await tools.ask_all(questions))
        answers = [_answered(item, told[place], found) for place, item in enumerate(items)]

        scores: dict[str, Value] = {
            name: measured([one for one in answers if one.item.dimension == name], share_met, EVERY)
            for name in DIMENSIONS
            if gold.rubric.get(name)
        }
        scores["total"] = measured(answers, share_met, EVERY)
        scores["blocked_rate"] = measured(answers, blocked_rate, EVERY)
        evidence = [
            told[place].shown(one.evidence(f"{one.item.dimension}: {one.item.text}", _OUTCOMES.__getitem__))
            for place, one in enumerate(answers)
        ]
        return Scorecard.of(self.name, case, scores, evidence)

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The items, which all weigh the same in `total`. Raises GoldError."""
        rubric = self._gold(case).rubric
        items = [f"{name}: {text}" for name in DIMENSIONS for text in rubric.get(name, ())]
        return [ExplainedCriterion(what=what, weight=1 / len(items)) for what in items]

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """Whether an item is met (`total`); one that rests on a blocked source counts as 0, without a label."""
        kind = line.outcome.kind
        if kind == "blocked":
            return Labelled(kind=MET_OR_NOT, label="", metric="total", value=0.0)
        return Labelled.of(MET_OR_NOT, MET_LABELS.get(kind, ""), "total")

    def _gold(self, case: Case) -> Gold:
        gold = case.gold(self.name, Gold)
        count = sum(map(len, gold.rubric.values()))
        if not 0 < count <= MAX_CRITERIA:
            raise GoldError("gold_invalid", f"task {case.task.id}: {count:,} items, 1 to {MAX_CRITERIA:,}")
        return gold


def _answered(item: Item, one: ItemAnswer, found: Traces) -> Answered[Item]:
    """The item's verdict: that of the judge, and -1 where what it quotes cites the blocked source."""
    quote = one.found.evidence if isinstance(one.found, Explained) else ""

    def verdict(level: float) -> float:
        return RESTS_ON_BLOCKED if level == MET and found.hold(quote) else level

    return one.answered(item, verdict, RESTS_ON_BLOCKED if found.any else NOT_MET, MET)
