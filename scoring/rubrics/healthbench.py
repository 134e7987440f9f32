"""HealthBench: physicians' criteria for the next turn of a conversation; the mean over examples is clipped."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.rubrics.criteria import Criterion, tags_of
from adjudge.scoring.rubrics.figures import ByCriteria, Figure
from adjudge.scoring.rubrics.measures import rubric_score
from adjudge.scoring.rubrics.words import HEALTHBENCH

__all__ = ["HealthBench"]


class HealthBench(ByCriteria, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a response by HealthBench: one question per criterion (gold `rubrics`, with the published tags).

    `score` is the points of the met criteria over all positive points, below 0 where penalties prevail; only the mean
    over examples is held between 0 and 1. `tag:NAME` is the same over the criteria with a tag (`tag:axis:accuracy`),
    for examples in which the tag has positive points.
    """

    name: ClassVar[str] = "healthbench"
    words: ClassVar = HEALTHBENCH

    def figures(self, criteria: Sequence[Criterion]) -> Iterator[Figure]:
        """The score over all criteria, then by tag."""
        yield Figure(Metric(name="score", headline=True, clip=(0.0, 1.0)), rubric_score)
        for tag in tags_of(criteria):
            if any(one.full for one in criteria if tag in one.tags):
                yield Figure(Metric(name=f"tag:{tag}", clip=(0.0, 1.0)), rubric_score, tag)
