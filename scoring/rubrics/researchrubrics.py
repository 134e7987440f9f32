"""ResearchRubrics: weighted criteria on axes, each satisfied or not, or also in part."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.rubrics.criteria import Criterion, tags_of
from adjudge.scoring.rubrics.figures import ByCriteria, Figure
from adjudge.scoring.rubrics.measures import rubric_score, tag_score
from adjudge.scoring.rubrics.words import RESEARCHRUBRICS

__all__ = ["ResearchRubrics"]


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
