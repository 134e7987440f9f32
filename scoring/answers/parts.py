"""Metrics over many parts, some without an answer: the value, if enough is known, and always the bounds.

A part without an answer is missing on its own; the others keep theirs. `least` is the share of parts that a metric
needs: our own metrics need the run's `min_answered`, a published one what its paper or code says (`EVERY` if they say
nothing of missing parts). Parts decided without asking the judge give no value on their own; otherwise our failure
would turn them into the score. The bounds take every missing part at its worst and at its best; a value over fewer
parts never leaves them. A part lost by the report's own choice (a page that cannot be read) is not missing: it counts,
and only the bounds say what it could have been.

An item that the judge was asked about, alone or numbered among others, has its value or the reason it has none. A
published question is asked as often as its benchmark does, until a reply can be read. In precision, recall and F1
against gold, every empty denominator gives 0.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec

from adjudge.judges import Answer, Judgment, Question, numbered
from adjudge.judges.published import PublishedQuestion, UnreadableReply
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import MISSING, Bounds, Evidence, Missing, Outcome, Partial

__all__ = [
    "ANY",
    "EVERY",
    "Answered",
    "Measure",
    "MinAnswered",
    "Overlap",
    "Parts",
    "ReadReply",
    "ask_numbered",
    "ask_until_read",
    "bounded",
    "combined",
    "measured",
]

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A", bound=Answer)

MAX_ITEMS = 20


class Answered(msgspec.Struct, Generic[T], frozen=True):
    """An item that was asked about: its value, or why there is none, and the worst and best it could have had.

    `judgment` is the hex key of what was asked, "" if the value was known without asking. A value that is settled by
    the report's own choice states in `could` what it could have been otherwise.
    """

    item: T
    value: float | Missing
    worst: float
    best: float
    judgment: str = ""
    could: float | None = None

    @classmethod
    def of(
        cls, item: T, judgment: Judgment[A], read: Callable[[A], float], worst: float, best: float
    ) -> "Answered[T]":
        """The result of `read` for the answer of `judgment`."""
        answer = judgment.answer
        value = Missing(judgment.reason or "judge_unparseable") if answer is None else read(answer)
        return cls(item, value, worst, best, judgment.key.hex())

    def about(self, item: U) -> "Answered[U]":
        """The same answer about `item`."""
        return Answered(item, self.value, self.worst, self.best, self.judgment, self.could)

    def evidence(self, what: str, outcome: Callable[[float], Outcome], id: str = "") -> Evidence:
        """A line of evidence: what was asked about, by its `id` if it has one, and the outcome."""
        if isinstance(self.value, Missing):
            return Evidence(
                what=what, outcome=MISSING, judgment=self.judgment, reason=self.value.reason, id=id
            )
        return Evidence(
            what=what, outcome=outcome(self.value), judgment=self.judgment, id=id, value=self.value
        )


async def ask_numbered(
    items: Sequence[T],
    tools: Tools,
    question: Callable[[tuple[T, ...]], Question[A]],
    read: Callable[[A, str], float],
    worst: float,
    best: float,
    size: int = MAX_ITEMS,
) -> list[Answered[T]]:
    """Ask about `items`, up to `size` in one `question`; `read` takes the value of a key (c01, ...) from its answer."""
    batches = [tuple(items[start : start + size]) for start in range(0, len(items), size)]
    judgments = await tools.ask_all(question(batch) for batch in batches)
    return [
        Answered.of(item, judgment, lambda answer, key=key: read(answer, key), worst, best)  # type: ignore[misc]
        for batch, judgment in zip(batches, judgments, strict=True)
        for item, key in zip(batch, numbered(len(batch)), strict=True)
    ]


class ReadReply(msgspec.Struct, Generic[T], frozen=True):
    """A reply as read, and the hex key of its judgment."""

    value: T
    judgment: str


async def ask_until_read(tools: Tools, question: PublishedQuestion[T]) -> ReadReply[T] | Missing:
    """The first reply to `question` that can be read, after at most `question.attempts`.

    One that reads as None is followed by the next attempt too, but stands if it is the last. A judge that gave no reply
    is missing at once: that is not a reply that cannot be read.
    """
    for attempt in range(question.attempts):
        asked = msgspec.structs.replace(question, attempt=attempt)
        judgment = await tools.ask(asked)
        if judgment.answer is None:
            return Missing(judgment.reason or "judge_unparseable")
        try:
            value = asked.read(judgment.answer.text)
        except UnreadableReply:
            continue
        if value is not None or asked.is_last:
            return ReadReply(value, judgment.key.hex())
    return Missing("judge_unparseable")


class Overlap(msgspec.Struct, frozen=True):
    """Precision, recall and their harmonic mean; each in 0..1 unless weights say otherwise."""

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, precision: float, recall: float) -> "Overlap":
        """With the harmonic mean of the two."""
        return cls(precision, recall, f1(precision, recall))

    @classmethod
    def counted(cls, right: float, predicted: float, gold: float) -> "Overlap":
        """From `right` among so many predicted and so many gold."""
        return cls.of(right / predicted if predicted else 0.0, right / gold if gold else 0.0)


def f1(precision: float, recall: float) -> float:
    """The harmonic mean; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


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
        whole = len(present) == len(answers)
        if whole and all(answer.could is None for answer in answers):
            value = _defined(measure(present))
            return bounded(value, (value, value), len(answers), len(answers))
        low, high = sorted(
            _defined(measure([_end(answer, best) for answer in answers])) for best in (False, True)
        )
        if whole:
            return bounded(_defined(measure(present)), (low, high), len(answers), len(answers))
        asked = any(answer.judgment for answer in answers if not isinstance(answer.value, Missing))
        partial = measure(present) if asked and len(present) >= least * len(answers) - 1e-9 else None
        missing = next(answer.value for answer in answers if isinstance(answer.value, Missing))
        known = missing if partial is None else min(max(partial, low), high)
        return bounded(known, (low, high), len(present), len(answers))


def measured(answers: Sequence[Answered[T]], measure: Measure[T], least: float) -> float | Partial:
    """The one metric over `answers`, as `Parts.measured` gives it."""
    return Parts(answers).measured(measure, least)


def bounded(value: float | Missing, ends: Iterable[float], answered: int, parts: int) -> float | Partial:
    """`value` with its bounds, whichever of `ends` is the lower one; alone if it is one answered part and no more."""
    low, high = sorted(ends)
    if not isinstance(value, Missing) and answered == parts <= 1 and low == high:
        return value
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
    return answer.item, answer.could if best and answer.could is not None else answer.value


def _defined(value: float | None) -> float:
    if value is None:
        raise ValueError("the measure is not defined over all answers")
    return value
