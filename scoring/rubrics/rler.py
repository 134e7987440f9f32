"""The rubric part of DR Tulu's reward (RLER): rubrics that stay and rubrics that the trainer adapts."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import msgspec

from adjudge.scoring.answers.answered import Answered
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric
from adjudge.scoring.rubrics.asking import give_points
from adjudge.scoring.rubrics.criteria import Criterion
from adjudge.scoring.rubrics.figures import GOLD, MAX_CRITERIA, ByCriteria, Figure
from adjudge.scoring.rubrics.measures import Given
from adjudge.scoring.rubrics.words import RLER

__all__ = ["Rler", "kind_reward", "rubric_reward"]

PERSISTENT, ADAPTIVE = "persistent", "adaptive"


def rubric_reward(given: Given) -> float:
    """Points over all positive weights, or over 1 if those are less."""
    pairs = list(given)
    return sum(points for _, points in pairs) / max(sum(one.full for one, _ in pairs), 1.0)


def kind_reward(given: Given) -> float:
    """The reward over the rubrics of one kind: points over the sum of all its weights, or over 1 if that is less.

    Negative weights lower the denominator, as in the training code: it may lie above 1.
    """
    pairs = list(given)
    return sum(points for _, points in pairs) / max(sum(one.weight for one, _ in pairs), 1.0)


class Rler(ByCriteria, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Reward a report by DR Tulu's rubrics (gold `rubrics`): each scored 0, 1 or 2, halved.

    `rubric_reward` is over all rubrics, `persistent_rubric_reward` and `adaptive_rubric_reward` over those of a kind,
    as the training code divides them. Rubrics without a kind are persistent. The evidence holds each rubric's score,
    0 to 1.
    """

    name: ClassVar[str] = "rler"
    words: ClassVar = RLER

    def criteria(self, case: Case) -> list[Criterion]:
        """The task's rubrics, each with half its weight between none and all. Raises GoldError."""
        found = case.gold(GOLD, tuple[Criterion, ...])
        if not 0 < len(found) <= MAX_CRITERIA:
            raise GoldError(
                "gold_invalid", f"task {case.task.id}: {len(found):,} rubrics, 1 to {MAX_CRITERIA:,}"
            )
        return [_with_kind(one).halved() for one in found]

    def figures(self, criteria: Sequence[Criterion]) -> Iterator[Figure]:
        """Over all rubrics, over the persistent and over the adaptive ones."""
        yield Figure(Metric(name="rubric_reward", headline=True), rubric_reward)
        yield Figure(Metric(name="persistent_rubric_reward", best=None), kind_reward, PERSISTENT)
        yield Figure(Metric(name="adaptive_rubric_reward", best=None), kind_reward, ADAPTIVE)

    async def ask(
        self, criteria: Sequence[Criterion], case: Case, tools: Tools
    ) -> tuple[list[Answered[Criterion]], list[Evidence]]:
        """The points of every rubric, each asked alone; the evidence holds its score."""
        answers, evidence = await give_points(criteria, case, tools)
        return answers, [_scored(*pair) for pair in zip(criteria, evidence, strict=True)]


def _with_kind(rubric: Criterion) -> Criterion:
    if {PERSISTENT, ADAPTIVE} & {*rubric.tags}:
        return rubric
    return msgspec.structs.replace(rubric, tags=(*rubric.tags, PERSISTENT))


def _scored(rubric: Criterion, line: Evidence) -> Evidence:
    if line.value is None:
        return line
    score = line.value / rubric.weight + 0.0
    return msgspec.structs.replace(line, value=score, outcome=f"{score:g} of 1")
