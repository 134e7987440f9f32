"""Metrics over many parts, some without an answer: the value, where enough is known, and the bounds, always.

A part without an answer is missing by itself; the others stand. How many of them a metric needs is `least`, the share
of its parts: our own metrics need the run's `min_answered`, a published one what its paper or code says (`EVERY` where
they say nothing of missing parts), and a strict form `EVERY` one. Whatever was known without asking makes no value
alone: what is a failure of ours must not leave it as the score. The bounds have every missing part at its worst and at
its best; a value over fewer parts never leaves them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec

from adjudge.scoring.answers.answered import Answered
from adjudge.scoring.contract.scorecard import Bounds, Missing, Partial

__all__ = ["ANY", "EVERY", "Measure", "MinAnswered", "Parts", "bounded", "combined", "measured"]

T = TypeVar("T")

MinAnswered = Annotated[float, msgspec.Meta(gt=0, le=1)]
"""The share of its parts that a metric of our own needs to have a value."""

EVERY, ANY = 1.0, 0.0

Measure = Callable[[Sequence[tuple[T, float]]], float | None]
"""A metric's arithmetic over (item, value) pairs; None where it is not defined for so few of them."""


class Parts(Generic[T]):
    """The answers that one or several metrics are over."""

    def __init__(self, answers: Sequence[Answered[T]]) -> None:
        self._answers = answers
        self._present = [(one.item, one.value) for one in answers if not isinstance(one.value, Missing)]

    def measured(self, measure: Measure[T], least: float) -> float | Partial:
        """The metric over the answers; without a value if fewer than the share `least`, or none asked, have one.

        `measure` must be defined over all of the answers, and rise or fall with every one of them.
        """
        answers, present = self._answers, self._present
        if len(present) == len(answers):
            value = _defined(measure(present))
            return bounded(value, (value, value), len(answers), len(answers))
        low, high = sorted(
            _defined(measure([_end(answer, best) for answer in answers])) for best in (False, True)
        )
        asked = any(answer.judgment for answer in answers if not isinstance(answer.value, Missing))
        partial = measure(present) if asked and len(present) >= least * len(answers) - 1e-9 else None
        missing = next(answer.value for answer in answers if isinstance(answer.value, Missing))
        known = missing if partial is None else min(max(partial, low), high)
        return bounded(known, (low, high), len(present), len(answers))


def measured(answers: Sequence[Answered[T]], measure: Measure[T], least: float) -> float | Partial:
    """The one metric over `answers`, as `Parts.measured` gives it."""
    return Parts(answers).measured(measure, least)


def bounded(value: float | Missing, ends: Iterable[float], answered: int, parts: int) -> float | Partial:
    """`value` with its bounds, whichever of `ends` is the lower one; as it is if there is but one part, answered."""
    if not isinstance(value, Missing) and answered == parts <= 1:
        return value
    low, high = sorted(ends)
    return Partial(value, Bounds(low, high, answered, parts))


def combined(
    values: Iterable[float | Partial], measure: Callable[[Sequence[float]], float]
) -> float | Partial:
    """The metric that `measure` makes of others and that rises with each of them; without a value if one has none."""
    every = [Partial(one, Bounds.whole(one)) if isinstance(one, float) else one for one in values]
    missing = next((one.value for one in every if isinstance(one.value, Missing)), None)
    known = [one.value for one in every if not isinstance(one.value, Missing)]
    ends = ([one.bounds.low for one in every], [one.bounds.high for one in every])
    return bounded(
        missing or measure(known),
        [measure([bound for bound in end if bound is not None]) for end in ends],
        sum(one.bounds.answered for one in every),
        sum(one.bounds.parts for one in every),
    )


def _end(answer: Answered[T], best: bool) -> tuple[T, float]:
    if isinstance(answer.value, Missing):
        return answer.item, answer.best if best else answer.worst
    return answer.item, answer.value


def _defined(value: float | None) -> float:
    if value is None:
        raise ValueError("the measure is not defined over all answers")
    return value
