"""A question whose answer is one of a few numbers, with an analysis before it."""

from typing import Annotated

import msgspec

from adjudge.judges import Answer, Choice, Question


class Points(Answer, frozen=True, kw_only=True):
    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    points: Choice


class Rated(Question[Points], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Points
    values: tuple[float, ...] = (0.0, 1.0, 2.0)

    @property
    def options(self) -> tuple[float, ...]:
        return self.values
