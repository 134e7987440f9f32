"""Metrics over many answers, some of them missing: no value by default, partial values with bounds on request.

A metric that misses an answer it needs has no value. With `min_answered` below 1 it still has none, but three more
metrics stand beside it: `NAME.partial` over the answers there are, and `NAME.partial_low` and `NAME.partial_high` with
every missing answer at its worst and at its best. Nothing else ever leaves a denominator.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeVar

import msgspec

from adjudge.scoring.answers.answered import Answered
from adjudge.scoring.contract.scorecard import Metric, Missing, Value

__all__ = ["Measure", "MinAnswered", "measured", "with_partials"]

T = TypeVar("T")

MinAnswered = Annotated[float, msgspec.Meta(gt=0, le=1)]
"""The share of its answers from which a metric also has its `.partial` form; 1: never."""

Measure = Callable[[Sequence[tuple[T, float]]], float | None]
"""A metric's arithmetic over (item, value) pairs; None where it is not defined for so few of them."""


def measured(
    name: str, answers: Sequence[Answered[T]], measure: Measure[T], min_answered: float = 1.0
) -> dict[str, Value]:
    """The metric `name` over `answers`, with its partial forms if `min_answered` is below 1.

    `measure` must be defined over all of the answers, and rise or fall with every one of them.
    """
    present = [(answer.item, answer.value) for answer in answers if not isinstance(answer.value, Missing)]
    missing = next((answer.value for answer in answers if isinstance(answer.value, Missing)), None)
    exact: Value = missing or _defined(measure(present))
    if min_answered == 1:
        return {name: exact}
    partial = measure(present) if len(present) >= min_answered * len(answers) else None
    if missing and partial is None:
        return dict.fromkeys((name, *_partial_names(name)), missing)
    ends = [_defined(measure([_ends(answer)[end] for answer in answers])) for end in (0, 1)]
    forms: tuple[Value, ...] = (exact, _defined(partial), min(ends), max(ends))
    return dict(zip((name, *_partial_names(name)), forms, strict=True))


def with_partials(metrics: Iterable[Metric], min_answered: float) -> tuple[Metric, ...]:
    """`metrics`, each followed by its partial forms if `min_answered` is below 1."""
    found: list[Metric] = []
    for metric in metrics:
        found.append(metric)
        if min_answered < 1:
            plain = msgspec.structs.replace(metric, headline=False)
            found.extend(msgspec.structs.replace(plain, name=name) for name in _partial_names(metric.name))
    return tuple(found)


def _partial_names(name: str) -> tuple[str, str, str]:
    return f"{name}.partial", f"{name}.partial_low", f"{name}.partial_high"


def _ends(answer: Answered[T]) -> tuple[tuple[T, float], tuple[T, float]]:
    """The answer at its worst and at its best; the same where it is known."""
    if isinstance(answer.value, Missing):
        return (answer.item, answer.worst), (answer.item, answer.best)
    return (answer.item, answer.value), (answer.item, answer.value)


def _defined(value: float | None) -> float:
    if value is None:
        raise ValueError("the measure is not defined over all answers")
    return value
