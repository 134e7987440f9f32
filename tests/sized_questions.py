"""Questions whose answers are a few tokens, or hundreds, about reports of any length: for tests with a real model."""

from typing import Annotated, Any, Literal

import msgspec

from adjudge.judges import Answer, Asked, Choice, Context, Question, numbered
from adjudge.scoring.rubrics.asking import RubricPoints

REPORT = "Cargo bikes carried 12% of the parcels. Vans carried the rest, at a higher cost for each street. "


class Points(Answer, frozen=True, kw_only=True):
    points: Choice


class Quick(RubricPoints, frozen=True, kw_only=True):
    """A criterion whose answer is a few tokens."""

    answer = Points


class Essay(Answer, frozen=True, kw_only=True):
    text: Annotated[str, msgspec.Meta(min_length=1_500, max_length=2_000)]


class Long(Question[Essay], frozen=True, kw_only=True):
    """A question whose answer takes hundreds of tokens."""

    prompt = "probe"
    answer = Essay
    topic: str = ""


class Ready(Answer, frozen=True, kw_only=True):
    analysis: Annotated[str, msgspec.Meta(max_length=300)] = ""
    ready: Literal["yes", "no"]


class Check(Question[Ready], frozen=True, kw_only=True):
    """A question with an analysis that may be shortened."""

    prompt = "probe"
    answer = Ready


def report(name: str, repeats: int = 40) -> Context:
    return Context.of(report=f"Report {name}. {REPORT * repeats}")


def quick(context: Context, number: int, values: tuple[float, ...] = (0.0, 1.0, 2.0)) -> Quick:
    return Quick(context=context, task="Bikes?", criterion=f"It names fact number {number}.", values=values)


def asked(number: int = 0, **more: Any) -> Asked:
    return Asked(key=number.to_bytes(4, "big") * 4, **more)


def fits_schema(question: Question[Any], text: str) -> bool:
    """Whether `text` has the types, keys and options of an answer: all that a schema can require."""
    answer = msgspec.json.decode(text, type=question.answer)
    fields = [getattr(answer, name) for name in answer.__struct_fields__]
    keys = [list(field) for field in fields if isinstance(field, dict)]
    allowed = set(question.options) or {getattr(answer, "points", 0.0)}
    return all(found == list(numbered(question.count)) for found in keys) and (
        getattr(answer, "points", next(iter(allowed))) in allowed
    )
