"""What protocols that give points for criteria share, so that each defines only its figures."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

import msgspec

from adjudge.scoring.answers.parts import EVERY, Answered, Measure, Parts
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.labels import Labelled, labelled_points
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Scorecard, Value
from adjudge.scoring.rubrics.asking import give_points
from adjudge.scoring.rubrics.criteria import Criterion, explained_criteria, tags_of

GOLD = "rubrics"
"""The gold that holds a task's criteria, whichever of the protocols scores them."""

MAX_CRITERIA = 2_000
MAX_TAGS = 200


class Figure(msgspec.Struct, frozen=True):
    """A metric, its arithmetic, and the answers that it is over: all, or those of criteria with `tag`."""

    metric: Metric
    measure: Measure[Criterion]
    tag: str | None = None

    def least(self, criteria: Sequence[Criterion]) -> "Figure":
        """The figure with the least that it can be over `criteria` as its worst; 0 where it is not defined."""
        pairs = [(one, one.worst) for one in criteria if self.tag is None or self.tag in one.tags]
        return msgspec.structs.replace(
            self, metric=msgspec.structs.replace(self.metric, worst=self.measure(pairs) or 0.0)
        )


class ByCriteria(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the protocols that give points for a task's criteria, found in its gold `rubrics`.

    A published figure needs an answer to every criterion; without one it has bounds.
    """

    name: ClassVar[str]

    def figures(self, criteria: Sequence[Criterion]) -> Iterable[Figure]:
        """The figures over `criteria`, in the order of the paper's columns; those of every task for no criteria."""
        raise NotImplementedError

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of every task; tags and penalties of a task's own criteria add to them."""
        return tuple(one.metric for one in self._figures(()))

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """The metrics of this task, its tags and its lowest score included. Raises GoldError."""
        return tuple(one.metric for one in self._figures(self.criteria(case)))

    def criteria(self, case: Case) -> list[Criterion]:
        """The task's criteria. Raises GoldError if there are none, too many, or none has positive points."""
        return checked(case, list(case.gold(GOLD, tuple[Criterion, ...])))

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Ask for the criteria; then every figure over what was answered."""
        criteria = self.criteria(case)
        answers, evidence = await self.ask(criteria, case, tools)
        figures = self._figures(criteria)
        over = {
            tag: Parts([one for one in answers if tag is None or tag in one.item.tags])
            for tag in dict.fromkeys(one.tag for one in figures)
        }
        scores: dict[str, Value] = {
            one.metric.name: over[one.tag].measured(one.measure, self.needed) for one in figures
        }
        return Scorecard.of(self.name, case, scores, evidence)

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The criteria with their tags and their share of the positive points. Raises GoldError."""
        return explained_criteria(self.criteria(case))

    @property
    def needed(self) -> float:
        """The share of its criteria that a figure needs answers to."""
        return EVERY

    async def ask(
        self, criteria: Sequence[Criterion], case: Case, tools: Tools
    ) -> tuple[list[Answered[Criterion]], list[Evidence]]:
        """The points of every criterion, each asked alone, and the evidence."""
        return await give_points(criteria, case, tools)

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """How far a criterion is met, which `score` counts by its points."""
        return labelled_points(line, "score")

    def _figures(self, criteria: Sequence[Criterion]) -> tuple[Figure, ...]:
        return _figures(self, tuple(criteria))


@lru_cache(maxsize=64)  # the reports of a task have the same criteria
def _figures(protocol: ByCriteria, criteria: tuple[Criterion, ...]) -> tuple[Figure, ...]:
    return tuple(figure.least(criteria) for figure in protocol.figures(criteria))


def checked(case: Case, criteria: list[Criterion]) -> list[Criterion]:
    """`criteria`, if a score can be made of them. Raises GoldError."""
    trouble = _trouble(tuple(criteria))
    if trouble:
        raise GoldError("gold_invalid", f"task {case.task.id}: {trouble}")
    return criteria


@lru_cache(maxsize=64)
def _trouble(criteria: tuple[Criterion, ...]) -> str:
    """Why no score can be made of `criteria`; empty if one can."""
    if len(criteria) > MAX_CRITERIA:
        return f"{len(criteria):,} criteria, at most {MAX_CRITERIA:,} for a task"
    if (tags := len(tags_of(criteria))) > MAX_TAGS:
        return f"{tags:,} different tags, at most {MAX_TAGS:,} for a task"
    return "" if sum(criterion.full for criterion in criteria) else "no criterion has positive points"
