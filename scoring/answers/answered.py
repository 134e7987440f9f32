"""An item that a judge was asked about, alone or numbered among others: its value, or the reason for having none."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from adjudge.judges import Answer, Judgment, Question, numbered
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Missing

__all__ = ["Answered", "ask_numbered"]

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A", bound=Answer)

MAX_ITEMS = 20


class Answered(msgspec.Struct, Generic[T], frozen=True):
    """An item that was asked about: its value, or why there is none, and the worst and best it could have had.

    `judgment` is the hex key of what was asked, "" if the value was known without asking.
    """

    item: T
    value: float | Missing
    worst: float
    best: float
    judgment: str = ""

    @classmethod
    def of(
        cls, item: T, judgment: Judgment[A], read: Callable[[A], float], worst: float, best: float
    ) -> "Answered[T]":
        """What `read` takes from the answer of `judgment`."""
        answer = judgment.answer
        value = Missing(judgment.reason or "judge_unparseable") if answer is None else read(answer)
        return cls(item, value, worst, best, judgment.key.hex())

    def about(self, item: U) -> "Answered[U]":
        """The same answer about `item`."""
        return Answered(item, self.value, self.worst, self.best, self.judgment)

    def evidence(self, what: str, outcome: Callable[[float], str], id: str = "") -> Evidence:
        """A line of evidence: what was asked about, by its `id` if it has one, and the outcome."""
        if isinstance(self.value, Missing):
            return Evidence(what=what, outcome="", judgment=self.judgment, reason=self.value.reason, id=id)
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
