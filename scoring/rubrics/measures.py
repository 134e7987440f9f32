"""The arithmetic of rubrics: from the points that criteria were given to scores, shares and pass rates."""

from collections.abc import Callable, Iterable

from adjudge.scoring.answers.parts import Measure
from adjudge.scoring.rubrics.criteria import Criterion

__all__ = ["Given", "clipped", "held", "pass_rate", "rubric_score", "share", "tag_score"]

Given = Iterable[tuple[Criterion, float]]
"""Criteria, each with the points it was given."""


def rubric_score(given: Given) -> float | None:
    """Points given over all positive points: at most 1, below 0 where penalties prevail; None without any."""
    pairs = list(given)
    full = sum([criterion.full for criterion, _ in pairs])
    return sum([points for _, points in pairs]) / full if full else None


def tag_score(given: Given) -> float | None:
    """`rubric_score` of one tag's criteria; of penalties alone, the points over what there is to lose: -1 to 0."""
    pairs = list(given)
    score = rubric_score(pairs)
    if score is not None or not pairs:
        return score
    return sum(points for _, points in pairs) / -sum(criterion.worst for criterion, _ in pairs)


def share(given: Given) -> float | None:
    """How far the criteria with positive points are met, 0 to 1, each counting the same; None without any."""
    met = [points / criterion.full for criterion, points in given if criterion.full]
    return sum([one if one > 0.0 else 0.0 for one in met]) / len(met) if met else None


def pass_rate(given: Given) -> float | None:
    """The share of criteria that pass, each counting the same; None without any.

    A criterion passes with its best points: one with negative points passes when it does not apply.
    """
    passed = [points == criterion.best for criterion, points in given]
    return sum(passed) / len(passed) if passed else None


def held(score: float | None) -> float | None:
    """`score` between 0 and 1."""
    return None if score is None else min(max(score, 0.0), 1.0)


def clipped(measure: Callable[[Given], float | None]) -> Measure[Criterion]:
    """`measure`, held between 0 and 1 for each report."""
    return lambda given: held(measure(given))
