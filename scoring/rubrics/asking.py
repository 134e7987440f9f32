"""Asking about criteria: each alone, or several in one question, all over the one context of the report."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import msgspec

from adjudge.judges import Context, Judgment, Question, numbered
from adjudge.scoring.answers.answered import Answered
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence
from adjudge.scoring.rubrics.criteria import Criterion
from adjudge.scoring.rubrics.questions import (
    MAX_ITEMS,
    Explained,
    ExplainedItems,
    Level,
    PointsGiven,
    RubricItems,
    RubricPoints,
)

__all__ = ["ItemAnswer", "ItemsAQuestion", "by_place", "give_points", "in_batches"]

ItemsAQuestion = Annotated[int, msgspec.Meta(ge=1, le=MAX_ITEMS)]
"""How many criteria share a question."""

Graded = tuple[Answered[Criterion], Evidence]


class ItemAnswer(msgspec.Struct, frozen=True):
    """What a question about several items says of one of them: its level, None with the judgment's reason."""

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
    batches = [batch for places in by_levels.values() for batch in in_batches(places, size)]

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
    judgments = await tools.ask_all([*questions, *map(several, batches)])
    graded = {
        place: _alone(criteria[place], one) for place, one in zip(alone, judgments[: len(alone)], strict=True)
    }
    together = by_place(batches, judgments[len(alone) :])
    graded |= {place: _among(criteria[place], one) for place, one in together.items()}
    ordered = [graded[place] for place in range(len(criteria))]
    return [answer for answer, _ in ordered], [line for _, line in ordered]


def by_place(batches: Sequence[Sequence[int]], judgments: Sequence[Judgment[Any]]) -> dict[int, ItemAnswer]:
    """The answers of one judgment a batch of places, by place."""
    return {
        place: ItemAnswer(judgment, judgment.answer and judgment.answer.items[key])
        for batch, judgment in zip(batches, judgments, strict=True)
        for place, key in zip(batch, numbered(len(batch)), strict=True)
    }


def in_batches(places: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    """`places` in their order, `size` at a time."""
    return (places[start : start + size] for start in range(0, len(places), size))


def _alone(criterion: Criterion, judgment: Judgment[PointsGiven]) -> Graded:
    return _graded(Answered.of(criterion, judgment, _points, criterion.worst, criterion.best))


def _among(criterion: Criterion, one: ItemAnswer) -> Graded:
    answer = one.answered(
        criterion, lambda level: criterion.levels[int(level)], criterion.worst, criterion.best
    )
    answer, line = _graded(answer)
    return answer, one.shown(line)


def _graded(answer: Answered[Criterion]) -> Graded:
    criterion = answer.item
    line = answer.evidence(
        criterion.criterion, lambda points: f"{points:g} of {criterion.best:g}", criterion.id
    )
    if criterion.worst < 0.0:
        line = msgspec.structs.replace(line, worst=criterion.worst)
    return answer, line


def _points(given: PointsGiven) -> float:
    return given.points
