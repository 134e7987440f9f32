"""RACE's yardstick for a task: dimension weights and weighted criteria, given or made by the judge.

It is made once per task: the questions show nothing but the task, so every system's report gets the same answer from
the store.

The static criteria say what a good research report shows whatever its task, in our own words, English and Chinese. The
variant `static_criteria` uses them, and the lexical judge proposes them for tasks without criteria.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.scoring.contract.case import NULL, Case, GoldError
from adjudge.scoring.contract.gold import GoldItem, GoldItems
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import Missing, first_missing

# Dimension: (criterion, explanation, weight); the weights of a dimension sum to 1.
_EN = {
    "comprehensiveness": (
        (
            "Covers every part of the question",
            "Each sub-question, region, period or group that the task names is treated.",
            0.3,
        ),
        (
            "Gives the necessary background",
            "Terms, history and conditions without which the findings cannot be understood.",
            0.15,
        ),
        (
            "Supports its statements with data and cases",
            "Figures with units and dates, named examples, concrete findings.",
            0.25,
        ),
        (
            "Shows more than one perspective",
            "Competing views, affected parties and counter-evidence have their place.",
            0.15,
        ),
        (
            "Draws on different kinds of sources",
            "Primary data, research, official and independent voices; not one single source.",
            0.15,
        ),
    ),
    "insight": (
        (
            "Explains causes and mechanisms",
            "Says why things are as they are and how one leads to another, beyond description.",
            0.3,
        ),
        ("Weighs the evidence", "Tells strong from weak evidence, and says what contradicts what.", 0.2),
        (
            "Connects findings into conclusions of its own",
            "Compares, ranks or combines what was found into something no source states.",
            0.2,
        ),
        (
            "Looks ahead with reasons",
            "Trends, risks and consequences follow from the analysis and name their conditions.",
            0.15,
        ),
        (
            "Is useful for a decision",
            "Recommendations are specific, justified and ordered by importance.",
            0.15,
        ),
    ),
    "instruction_following": (
        (
            "Answers the question that was asked",
            "The core of the task has a direct answer that is easy to find.",
            0.35,
        ),
        ("Respects the limits of the task", "Time, place, subject and exclusions are kept.", 0.2),
        (
            "Delivers the requested form",
            "Tables, lists, comparisons, length or structure are as the task wants them.",
            0.2,
        ),
        ("Treats all listed points", "Nothing that the task enumerates is left out or only named.", 0.15),
        ("Stays on topic", "No sections that the task has no use for.", 0.1),
    ),
    "readability": (
        ("Has a clear structure", "Headings and order lead the reader; each section has one purpose.", 0.3),
        (
            "Is written clearly and correctly",
            "Plain, precise sentences without errors or empty phrases.",
            0.25,
        ),
        ("Presents data well", "Tables, lists and figures where they help, with units and labels.", 0.2),
        (
            "Explains its terms",
            "Technical words are defined or evident for the reader the task implies.",
            0.1,
        ),
        ("Is concise and consistent", "No repetition, no contradiction, the same names throughout.", 0.15),
    ),
}

_ZH = {
    "comprehensiveness": (
        ("覆盖问题的各个部分", "任务提到的每个子问题、地区、时期或群体都有论述。", 0.3),
        ("交代必要的背景", "说明理解结论所需的概念、历史和条件。", 0.15),
        ("以数据和案例支撑论述", "给出带单位和日期的数字、有名有姓的例子和具体发现。", 0.25),
        ("呈现不止一种视角", "不同观点、相关各方和反面证据都有位置。", 0.15),
        ("采用多种类型的资料", "兼用一手数据、研究成果、官方与独立来源，而非单一来源。", 0.15),
    ),
    "insight": (
        ("解释原因与机制", "不止于描述，说明为何如此、如何一步步导致结果。", 0.3),
        ("权衡证据的强弱", "区分可靠与薄弱的证据，指出相互矛盾之处。", 0.2),
        ("把发现归纳成自己的结论", "通过比较、排序或综合，得出任何单一来源都没有直接给出的判断。", 0.2),
        ("有依据地展望未来", "趋势、风险和后果由分析推出，并写明前提条件。", 0.15),
        ("对决策有用", "建议具体、有理由，并按重要程度排列。", 0.15),
    ),
    "instruction_following": (
        ("正面回答所提的问题", "任务的核心有直接而醒目的答案。", 0.35),
        ("遵守任务限定的范围", "时间、地域、对象和排除项都得到遵守。", 0.2),
        ("按要求的形式交付", "表格、清单、对比、篇幅或结构符合任务要求。", 0.2),
        ("逐一处理列出的要点", "任务列举的内容没有遗漏，也不是一笔带过。", 0.15),
        ("不偏离主题", "没有与任务无关的章节。", 0.1),
    ),
    "readability": (
        ("结构清晰", "标题和顺序引导读者，每一节只有一个目的。", 0.3),
        ("语言清楚准确", "句子通顺、精确，没有错误和空话。", 0.25),
        ("数据呈现得当", "在有帮助之处使用表格、列表和图示，并注明单位和名称。", 0.2),
        ("解释术语", "专业词语有定义，或对目标读者不言自明。", 0.1),
        ("简洁一致", "没有重复和自相矛盾，名称前后统一。", 0.15),
    ),
}

GENERAL_CRITERIA: Mapping[str, Mapping[str, tuple[tuple[str, str, float], ...]]] = {"en": _EN, "zh": _ZH}
"""Language (en, zh), then dimension, to (criterion, explanation, weight)."""


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


def static_criteria(language: str) -> dict[str, tuple[Criterion, ...]]:
    """The general criteria of every dimension in `language`, English where it has none."""
    general = GENERAL_CRITERIA.get(language, GENERAL_CRITERIA["en"])
    return {name: tuple(Criterion(*one) for one in general[name]) for name in DIMENSIONS}


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
