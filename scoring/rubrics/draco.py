"""DRACO: expert criteria in sections, each met or not; the normalised score and the pass rate."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.rubrics.criteria import Criterion, tags_of
from adjudge.scoring.rubrics.figures import ByCriteria, Figure
from adjudge.scoring.rubrics.measures import clipped, pass_rate, rubric_score
from adjudge.scoring.rubrics.words import DRACO

__all__ = ["Draco"]


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
