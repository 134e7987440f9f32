"""RACE's yardstick for a task: dimension weights and weighted criteria, given or made by the judge.

It is made once per task: the questions show nothing but the task, so every system's report gets the same answer from
the store.

The static criteria (`general_criteria.*.jsonl`) say what a good research report shows whatever its task, in our own
words, English and Chinese. The variant `static_criteria` uses them, and the lexical judge proposes them for tasks
without criteria.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.scoring.contract.case import NULL, Case, GoldError
from adjudge.scoring.contract.gold import GoldItem, GoldItems
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import Missing, first_missing

DIMENSIONS = ("comprehensiveness", "insight", "instruction_following", "readability")
DRAWS = 5
MOST = 10.0
FEWEST_CRITERIA, MOST_CRITERIA = 4, 10  # of a dimension, as in the published set
MAX_WEIGHT = 1e300  # of all together, so that the sum of what they weigh is finite
_BOUNDS = f"not all 0 and at most {MAX_WEIGHT:g} together"


class Criterion(msgspec.Struct, frozen=True):
    """A criterion of one dimension; the weights of a dimension sum to 1."""

    criterion: str
    explanation: str = ""
    weight: float = 0.0

    @property
    def text(self) -> str:
        """The text shown to a judge; never the weight."""
        return f"{self.criterion}: {self.explanation}" if self.explanation else self.criterion

    def named(self, dimension: str) -> str:
        """Its name in evidence."""
        return f"{dimension}: {self.criterion}"


class RaceGold(msgspec.Struct, frozen=True):
    """A task's gold as DeepResearch Bench publishes it; the judge makes what is missing, except the reference."""

    dimension_weight: dict[str, float] | None = None
    criterions: dict[str, tuple[Criterion, ...]] | None = None
    reference: str = ""

    @classmethod
    def of(cls, case: Case) -> "RaceGold":
        """The gold of the case's task, empty if it has none. Raises GoldError if it cannot be measured by."""
        if "race" not in case.task.gold:
            return cls()
        gold = case.gold("race", cls)
        flaw = gold._flaw()
        if flaw:
            raise GoldError("gold_invalid", f"task {case.task.id}: gold for race: {flaw}")
        return gold

    def as_items(self) -> GoldItems:
        """The criteria, and the weights that sum to 1."""
        criteria = {name: (self.criterions or {}).get(name, ()) for name in DIMENSIONS}
        weights = {
            f"criterions.{name}": tuple(one.weight for one in several) for name, several in criteria.items()
        }
        if self.dimension_weight is not None:
            weights["dimension_weight"] = tuple(self.dimension_weight[name] for name in DIMENSIONS)
        items = [
            GoldItem(
                part=name,
                item=one.criterion,
                explanation=one.explanation,
                kind="requirement",
                line=one.named(name),
                full=MOST,
            )
            for name, several in criteria.items()
            for one in several
        ]
        return GoldItems(
            items=tuple(items), weights={part: found for part, found in weights.items() if found}
        )

    def _flaw(self) -> str:
        weights, criteria = self.dimension_weight, self.criterions
        if weights is not None and not _positive([weights.get(name, -1.0) for name in DIMENSIONS]):
            return f"dimension_weight needs a weight for each of {', '.join(DIMENSIONS)}, {_BOUNDS}"
        for name in DIMENSIONS if criteria is not None else ():
            if not _positive([criterion.weight for criterion in (criteria or {}).get(name, ())]):
                return f"criterions.{name} needs criteria with weights, {_BOUNDS}"
        return ""


class Yardstick(msgspec.Struct, frozen=True):
    """Dimension weights, and each dimension's criteria."""

    weights: Mapping[str, float]
    criteria: Mapping[str, tuple[Criterion, ...]]

    @property
    def items(self) -> tuple[tuple[str, Criterion], ...]:
        """(dimension, criterion) of all criteria, dimension by dimension."""
        return tuple((name, criterion) for name in DIMENSIONS for criterion in self.criteria.get(name, ()))

    def explained(self) -> list[ExplainedCriterion]:
        """The criteria with what each weighs in the overall mark."""
        every = sum(self.weights.get(name, 0.0) for name in DIMENSIONS)
        sums = {name: sum(one.weight for one in several) for name, several in self.criteria.items()}
        return [
            ExplainedCriterion(
                what=one.named(name),
                explanation=one.explanation,
                weight=self.weights[name] / every * one.weight / sums[name],
            )
            for name, one in self.items
        ]

    def without_criteria_weights(self) -> "Yardstick":
        """The same with equal weights within each dimension."""
        criteria = {
            name: tuple(msgspec.structs.replace(one, weight=1 / len(several)) for one in several)
            for name, several in self.criteria.items()
        }
        return Yardstick(self.weights, criteria)

    def without_dimension_weights(self) -> "Yardstick":
        """The same with equal weights of the dimensions."""
        return Yardstick(dict.fromkeys(DIMENSIONS, 1 / len(DIMENSIONS)), self.criteria)


Percent = Annotated[int, msgspec.Meta(ge=5, le=70, multiple_of=5)]
Points = Annotated[int, msgspec.Meta(ge=1, le=10)]


class WeightDraw(Answer, frozen=True, kw_only=True):
    """One draw of the dimension weights, in percent; they need not sum to 100."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    comprehensiveness: Percent
    insight: Percent
    instruction_following: Percent
    readability: Percent


class DimensionWeights(Question[WeightDraw], frozen=True, kw_only=True):
    """How much does each dimension matter for the task in the context? `draw` numbers the draws, which are averaged."""

    words = "weights of the dimensions"
    prompt = "race_weights"
    answer = WeightDraw

    draw: int

    def lexical(self) -> WeightDraw:
        """The same for every task: a lexical judge cannot tell."""
        return WeightDraw(comprehensiveness=30, insight=35, instruction_following=20, readability=15)


class Draft(Answer, frozen=True, kw_only=True):
    """A proposed criterion; weights are in points and become shares of the dimension."""

    criterion: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    explanation: Annotated[str, msgspec.Meta(max_length=300)]
    weight: Points


class CriteriaDraft(Answer, frozen=True, kw_only=True):
    """The criteria of one dimension."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    criteria: Annotated[list[Draft], msgspec.Meta(min_length=FEWEST_CRITERIA, max_length=MOST_CRITERIA)]


class DimensionCriteria(Question[CriteriaDraft], frozen=True, kw_only=True):
    """By which criteria, as many as the task needs, should a report on it be judged in one dimension?"""

    words = "criteria of a dimension"
    prompt = "race_criteria"
    answer = CriteriaDraft

    dimension: str

    def lexical(self) -> CriteriaDraft:
        """The general criteria of the dimension."""
        general = static_criteria(self.language)[self.dimension]
        drafts = [
            Draft(criterion=one.criterion, explanation=one.explanation, weight=max(1, round(one.weight * 20)))
            for one in general
        ]
        return CriteriaDraft(criteria=drafts)


@lru_cache(maxsize=2)
def static_criteria(language: str) -> dict[str, tuple[Criterion, ...]]:
    """The general criteria of every dimension in `language`, English where it has none."""
    shipped = "zh" if language == "zh" else "en"
    lines = Path(__file__).with_name(f"general_criteria.{shipped}.jsonl").read_bytes().splitlines()
    rows = list(map(msgspec.json.decode, lines))
    return {
        name: tuple(msgspec.convert(row, Criterion) for row in rows if row["dimension"] == name)
        for name in DIMENSIONS
    }


def average_weights(draws: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Dimension weights from several draws: averaged, normalised, rounded to 2 decimals, the remainder to readability.

    Raises ValueError if there is no draw or all weights are 0.
    """
    taken = list(draws)
    sums = {name: sum(draw[name] for draw in taken) for name in DIMENSIONS}
    total = sum(sums.values())
    if not total > 0:
        raise ValueError("no weights to average")
    rounded = {name: round(value / len(taken) / (total / len(taken)), 2) for name, value in sums.items()}
    rounded["readability"] = round(rounded["readability"] + 1 - sum(rounded.values()), 2)
    return rounded


def frozen(case: Case, measure: Yardstick) -> msgspec.Raw:
    """The gold of the case's task with `measure` in it; whatever else it holds stays."""
    raw = case.task.gold.get("race")
    gold = msgspec.json.decode(raw, type=dict[str, msgspec.Raw]) if raw is not None else {}
    for name, made in (("dimension_weight", measure.weights), ("criterions", measure.criteria)):
        if bytes(gold.get(name, NULL)) == bytes(NULL):
            gold[name] = msgspec.Raw(msgspec.json.encode(made))
    return msgspec.Raw(msgspec.json.encode(gold))


async def yardstick(case: Case, gold: RaceGold, tools: Tools, *, static: bool = False) -> Yardstick | Missing:
    """The yardstick of the case's task: its gold, else (or if `static`, the criteria) the general or made ones."""
    given = static_criteria(case.task.language) if static else gold.criterions
    if gold.dimension_weight is not None and given is not None:
        return Yardstick(gold.dimension_weight, given)
    task, language = Context.of(task=case.task.prompt), case.task.language
    weights, criteria = await asyncio.gather(
        _weights(gold, task, language, tools), _criteria(given, task, language, tools)
    )
    if isinstance(weights, Missing):
        return weights
    return criteria if isinstance(criteria, Missing) else Yardstick(weights, criteria)


async def _weights(
    gold: RaceGold, task: Context, language: str, tools: Tools
) -> Mapping[str, float] | Missing:
    if gold.dimension_weight is not None:
        return gold.dimension_weight
    asked = [DimensionWeights(context=task, language=language, draw=draw) for draw in range(1, DRAWS + 1)]
    judgments = await tools.ask_all(asked)
    draws = [judgment.answer for judgment in judgments if judgment.answer is not None]
    return first_missing(judgments) or average_weights(
        {name: getattr(draw, name) for name in DIMENSIONS} for draw in draws
    )


async def _criteria(
    given: Mapping[str, tuple[Criterion, ...]] | None, task: Context, language: str, tools: Tools
) -> Mapping[str, tuple[Criterion, ...]] | Missing:
    if given is not None:
        return given
    asked = [DimensionCriteria(context=task, language=language, dimension=name) for name in DIMENSIONS]
    judgments = await tools.ask_all(asked)
    missing = first_missing(judgments)
    if missing:
        return missing
    made = {}
    for name, judgment in zip(DIMENSIONS, judgments, strict=True):
        drafts = judgment.answer.criteria if judgment.answer else []
        points = sum(draft.weight for draft in drafts)
        made[name] = tuple(
            Criterion(draft.criterion, draft.explanation, draft.weight / points) for draft in drafts
        )
    return made


def _positive(weights: list[float]) -> bool:
    return all(weight >= 0 for weight in weights) and 0 < sum(weights) <= MAX_WEIGHT
