"""Rubric benchmarks with their own arithmetic: DRACO, HealthBench and ResearchRubrics.

DRACO: expert criteria in sections, each met or not; the normalised score and the pass rate.

HealthBench: physicians' criteria for the next turn of a conversation; the mean over examples is clipped.

ResearchRubrics: weighted criteria on axes, each satisfied or not, or also in part.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import msgspec

from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Metric, Scorecard
from adjudge.scoring.rubrics.criteria import (
    DRACO,
    HEALTHBENCH,
    RESEARCHRUBRICS,
    Criterion,
    clipped,
    pass_rate,
    rubric_score,
    tag_score,
    tags_of,
)
from adjudge.scoring.rubrics.figures import ByCriteria, Figure


class Draco(ByCriteria, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by DRACO: one question per criterion (gold `rubrics`, whose tags are the sections).

    `score` is the weight of the met criteria over all positive weights, between 0 and 1 for each report; `pass_rate`
    the unweighted share that passes, a negative criterion when it is not met; both also by section. The paper averages
    five passes of the judge: `repeats: 5`.
    """

    name: ClassVar[str] = "draco"
    words: ClassVar = DRACO

    def figures(self, criteria: Sequence[Criterion]) -> Iterator[Figure]:
        """Both figures over all criteria, then both by section."""
        yield Figure(Metric(name="score", headline=True, scale=100), clipped(rubric_score))
        yield Figure(Metric(name="pass_rate", scale=100), pass_rate)
        for section in tags_of(criteria):
            if any(one.full for one in criteria if section in one.tags):
                yield Figure(Metric(name=f"score:{section}", scale=100), clipped(rubric_score), section)
            yield Figure(Metric(name=f"pass_rate:{section}", scale=100), pass_rate, section)


class HealthBench(ByCriteria, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a response by HealthBench: one question per criterion (gold `rubrics`, with the published tags).

    `score` is the points of the met criteria over all positive points, below 0 where penalties prevail; only the mean
    over examples is held between 0 and 1. `tag:NAME` is the same over the criteria with a tag (`tag:axis:accuracy`),
    for examples in which the tag has positive points.

    `score_length_adjusted` is due where the task's attribute `set` names a published set: an example's score less a
    rate for every 500 characters beyond 2,000, and more for those below. Neither it nor the score of an example is
    clipped. Rates: 0.0147 (professional), 0.0299 (regular), 0.0392 (hard), 0.0020 (consensus); the arithmetic is that
    of openai/simple-evals (pull request 108), the rates beside the first are given in MedARC-AI/medmarks (132).
    """

    name: ClassVar[str] = "healthbench"
    words: ClassVar = HEALTHBENCH

    def figures(self, criteria: Sequence[Criterion]) -> Iterator[Figure]:
        """The score over all criteria, then by tag."""
        yield Figure(Metric(name="score", headline=True, clip=(0.0, 1.0)), rubric_score)
        for tag in tags_of(criteria):
            if any(one.full for one in criteria if tag in one.tags):
                yield Figure(Metric(name=f"tag:{tag}", clip=(0.0, 1.0)), rubric_score, tag)

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """The metrics of this task: of a published set, its score adjusted for length too. Raises GoldError."""
        first, *others = super().metrics_of(case)
        rate = _RATES.get(case.task.attributes.get("set", ""))
        if rate is None:
            return (first, *others)
        best = 1.0 + rate * _CENTRE / _STEP
        adjusted = msgspec.structs.replace(first, name=_ADJUSTED, headline=False, best=best)
        return (first, adjusted, *others)

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """The criteria's figures; then, of a published set, the score adjusted for length."""
        card = await super().score(case, tools)
        rate = _RATES.get(case.task.attributes.get("set", ""))
        if rate is None:
            return card
        beyond = rate * (len(case.report.text) - _CENTRE) / _STEP
        return card.derived("score", _ADJUSTED, lambda score: score - beyond)


_RATES = {"professional": 0.0147, "regular": 0.0299, "hard": 0.0392, "consensus": 0.0020}
_CENTRE, _STEP = 2_000, 500  # characters
_ADJUSTED = "score_length_adjusted"


class ResearchRubrics(ByCriteria, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by ResearchRubrics: one question per criterion (gold `rubrics`, whose tags are the axes).

    `score` is the sum of weight times satisfaction over all positive weights, and `axis:NAME` the same on one axis.
    Satisfaction is 0 or 1 (`grading: binary`), or also 0.5 for what is met in part (`grading: ternary`).
    """

    name: ClassVar[str] = "researchrubrics"
    words: ClassVar = RESEARCHRUBRICS

    grading: Literal["binary", "ternary"] = "binary"
    """Two grades for each rubric, or three."""

    def criteria(self, case: Case) -> list[Criterion]:
        """The task's criteria, with halves where grading is ternary. Raises GoldError."""
        found = super().criteria(case)
        return found if self.grading == "binary" else [one.halved() for one in found]

    def figures(self, criteria: Sequence[Criterion]) -> Iterator[Figure]:
        """The score over all criteria, then by axis."""
        yield Figure(Metric(name="score", headline=True, scale=100), rubric_score)
        for axis in tags_of(criteria):
            yield Figure(Metric(name=f"axis:{axis}", scale=100), tag_score, axis)
