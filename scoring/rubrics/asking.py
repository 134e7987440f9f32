"""Questions about criteria, alone or several in one question, all over the one context of the report."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from adjudge.judges import Answer, Choice, Context, Judgment, Question, numbered
from adjudge.judges.lexical import coverage, figures, rank, sentences, terms
from adjudge.judges.remembering import remembered
from adjudge.scoring.answers.numbered import Numbered, batches
from adjudge.scoring.answers.parts import Answered
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Outcome
from adjudge.scoring.rubrics.criteria import Criterion

A = TypeVar("A", bound=Answer)

MAX_ITEMS = 50

_SEEN = 0.4  # share of a criterion's words that a report must use for the embedded judge to call it met
_QUOTED = 2_000  # sentences of a report among which the embedded judge looks for the one to quote
_KEPT_CHARS = 2_000_000  # of the reports whose words are kept
# Words of criteria, not of reports: "Does the report name ...? Yes=2, No=0".
_OF_RUBRICS = re.compile(
    r"\w+\s{0,3}[=＝]\s{0,3}[+-]?\d+|\b(?:reports?|gives?|names?|says?|states?)\b|报告|是否|给出|说明|提到|指出",
    re.IGNORECASE,
)
# Numbers that a report need not repeat: a bound, or the mark of an item.
_LOOSE = re.compile(
    r"(?:\b(?:at least|at most|up to|no (?:more|fewer|less) than)|至少|最多|不少于|不超过)\s{0,3}\d[\d,.]*"
    r"|[(（]\d{1,3}[)）]",
    re.IGNORECASE,
)


# One criterion alone.


class PointsGiven(Answer, frozen=True, kw_only=True):
    """How many points a criterion gets: one of its allowed values."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    points: Choice


class RubricPoints(Question[PointsGiven], frozen=True, kw_only=True):
    """How many points does the report get for one criterion?"""

    words = "points for one rubric"
    prompt = "rubric_points"
    answer = PointsGiven

    task: str
    criterion: str
    values: tuple[float, ...]

    @property
    def options(self) -> tuple[float, ...]:
        """The criterion's allowed values."""
        return self.values

    def fields(self) -> dict[str, str]:
        """The task, the criterion, and its values from fewest to most."""
        return {
            "task": self.task,
            "criterion": self.criterion,
            "values": ", ".join(f"{v:g}" for v in self.values),
        }

    def lexical(self) -> PointsGiven:
        """More points (or more penalty) the more of the criterion's words the report uses."""
        ordered = sorted(self.values, key=abs)
        return PointsGiven(
            points=ordered[lexical_level(self.criterion, self.context["report"], len(ordered))]
        )


# Several criteria in one question.


class Level(Answer, frozen=True, kw_only=True):
    """How far one criterion applies: 0 not at all, the highest in full."""

    level: Choice


class ItemLevels(Answer, frozen=True, kw_only=True):
    """The level of each numbered criterion."""

    most_items: ClassVar[int] = MAX_ITEMS

    analysis: Annotated[str, msgspec.Meta(max_length=1_200)] = ""
    items: dict[str, Level]


class Items(Numbered[A], frozen=True, kw_only=True):
    """Base of the questions about several criteria."""

    listed = "items"

    task: str
    items: tuple[str, ...]
    levels: tuple[float, ...]

    @property
    def options(self) -> tuple[float, ...]:
        """The levels."""
        return self.levels

    def fields(self) -> dict[str, str]:
        """The task, the numbered criteria, and the levels."""
        shown = super().fields()
        return {**shown, "levels": ", ".join(f"{level:g}" for level in self.levels)}

    def lexical_levels(self) -> list[float]:
        """A higher level the more of a criterion's words the report uses."""
        report, levels = self.context["report"], [level for level in self.levels if level >= 0]
        return [levels[lexical_level(item, report, len(levels))] for item in self.items]


class RubricItems(Items[ItemLevels], frozen=True, kw_only=True):
    """How far does each of several criteria apply to the report, on the same levels?"""

    words = "levels of rubrics"
    prompt = "rubric_items"
    answer = ItemLevels

    def lexical(self) -> ItemLevels:
        """The lexical levels."""
        found = [Level(level=level) for level in self.lexical_levels()]
        return ItemLevels(items=self.keyed(found))


class Explained(Answer, frozen=True, kw_only=True):
    """A level with the reason for it, and the sentence of the report that it rests on."""

    analysis: Annotated[str, msgspec.Meta(max_length=2_500, extra_json_schema={"shared": True})] = ""
    evidence: Annotated[str, msgspec.Meta(max_length=4_000, extra_json_schema={"shared": True})]
    level: Choice


class ExplainedLevels(Answer, frozen=True, kw_only=True):
    """The level of each numbered criterion, with reason and evidence; those of one question share one budget."""

    most_items: ClassVar[int] = MAX_ITEMS

    items: dict[str, Explained]


class ExplainedItems(Items[ExplainedLevels], frozen=True, kw_only=True):
    """How far does each of several criteria apply to the report, why, and by which sentence of it?"""

    words = "levels of rubrics, with reasons and sentences"
    prompt = "rubric_explained"
    answer = ExplainedLevels

    def lexical(self) -> ExplainedLevels:
        """The lexical levels, each with the sentence that uses most of a criterion's words."""
        report, levels = self.context["report"], self.lexical_levels()
        found = [
            Explained(evidence=quoted(item, report), level=level)
            for item, level in zip(self.items, levels, strict=True)
        ]
        return ExplainedLevels(items=self.keyed(found))


def lexical_level(criterion: str, report: str, levels: int) -> int:
    """The level, from 0, that the embedded judge gives: by the criterion's words that `report` uses.

    A report that lacks some of the criterion's figures does not get the highest level; one that lacks all of them
    gets 0.
    """
    wanted = _OF_RUBRICS.sub(" ", criterion)
    seen = coverage(terms(wanted), _vocabulary(report))
    level = rank(seen, tuple(_SEEN + (1 - _SEEN) * step / (levels - 1) for step in range(levels - 1)))
    stated = figures(_LOOSE.sub(" ", wanted))
    missing = stated - _figures(report)
    if not missing:
        return level
    return min(level, levels - 2) if len(missing) < len(stated) else 0


def quoted(criterion: str, report: str) -> str:
    """The sentence of `report` that uses most of the criterion's words; empty if none uses any."""
    wanted = terms(_OF_RUBRICS.sub(" ", criterion))
    found = max(_sentences(report), key=lambda one: coverage(wanted, one[1]), default=("", frozenset[str]()))
    return found[0][:150] if coverage(wanted, found[1]) else ""


@lru_cache(maxsize=64)
def _vocabulary(text: str) -> frozenset[str]:
    return frozenset(terms(text))


@lru_cache(maxsize=64)
def _figures(text: str) -> frozenset[float]:
    return figures(text)


@remembered(_KEPT_CHARS)
def _sentences(text: str) -> list[tuple[str, frozenset[str]]]:
    return [(one, frozenset(terms(one))) for _, one in zip(range(_QUOTED), sentences(text), strict=False)]


ItemsAQuestion = Annotated[int, msgspec.Meta(ge=1, le=MAX_ITEMS)]
"""How many criteria share a question."""

Graded = tuple[Answered[Criterion], Evidence]


class ItemAnswer(msgspec.Struct, frozen=True):
    """The answer about one of several items in a question: its level, or None with the judgment's reason."""

    judgment: Judgment[Any]
    found: Level | Explained | None

    def answered(self, item: Any, read: Callable[[float], float], worst: float, best: float) -> Answered[Any]:
        """The value that `read` makes of the level."""
        found = self.found
        return Answered.of(item, self.judgment, lambda _: read(found.level if found else 0.0), worst, best)

    def shown(self, line: Evidence) -> Evidence:
        """`line` with the judge's quotation and reason, where it gave them."""
        if not isinstance(self.found, Explained):
            return line
        return msgspec.structs.replace(line, quote=self.found.evidence, note=self.found.analysis)


async def give_points(
    criteria: Sequence[Criterion], case: Case, tools: Tools, size: int = 1, explained: bool = False
) -> tuple[list[Answered[Criterion]], list[Evidence]]:
    """Ask for the criteria: answers and evidence, in their order.

    Each is asked alone, or up to `size` together: those with as many levels, in their order; `explained` wants a reason
    and a quotation for each. What has points on both sides of 0 has no levels and is asked alone.
    """
    report, task, language = Context.of(report=case.report.text), case.task.prompt, case.task.language
    shared = size > 1 or explained
    kind = ExplainedItems if explained else RubricItems
    alone = [place for place, one in enumerate(criteria) if not shared or not one.levels]
    by_levels: dict[int, list[int]] = {}
    for place in sorted(set(range(len(criteria))) - set(alone)):
        by_levels.setdefault(len(criteria[place].levels), []).append(place)
    shared_by = [batch for places in by_levels.values() for batch in batches(places, size)]

    def several(batch: Sequence[int]) -> Question[Any]:
        items = tuple(criteria[place].criterion for place in batch)
        levels = tuple(map(float, range(len(criteria[batch[0]].levels))))
        return kind(context=report, language=language, task=task, items=items, levels=levels)

    questions: list[Question[Any]] = [
        RubricPoints(
            context=report, language=language, task=task, criterion=one.criterion, values=one.options
        )
        for one in (criteria[place] for place in alone)
    ]
    judgments = await tools.ask_all([*questions, *map(several, shared_by)])
    graded: dict[int, Graded] = {}
    for place, judgment in zip(alone, judgments[: len(alone)], strict=True):
        one = criteria[place]
        graded[place] = _graded(Answered.of(one, judgment, lambda given: given.points, one.worst, one.best))
    for place, told in by_place(shared_by, judgments[len(alone) :]).items():
        one = criteria[place]
        answer, line = _graded(
            told.answered(one, lambda level, one=one: one.levels[int(level)], one.worst, one.best)  # type: ignore[misc]
        )
        graded[place] = answer, told.shown(line)
    ordered = [graded[place] for place in range(len(criteria))]
    return [answer for answer, _ in ordered], [line for _, line in ordered]


def by_place(batches: Sequence[Sequence[int]], judgments: Sequence[Judgment[Any]]) -> dict[int, ItemAnswer]:
    """The answers of one judgment a batch of places, by place."""
    return {
        place: ItemAnswer(judgment, judgment.answer and judgment.answer.items[key])
        for batch, judgment in zip(batches, judgments, strict=True)
        for place, key in zip(batch, numbered(len(batch)), strict=True)
    }


def _graded(answer: Answered[Criterion]) -> Graded:
    criterion = answer.item
    line = answer.evidence(
        criterion.criterion, lambda points: Outcome.graded(points, criterion.best), criterion.id
    )
    if criterion.worst < 0.0:
        line = msgspec.structs.replace(line, worst=criterion.worst)
    return answer, line
