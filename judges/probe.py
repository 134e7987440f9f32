"""The smallest question: does the judge answer, and in the required form?"""

from typing import Literal

from adjudge.judges.question import Answer, Context, Question

__all__ = ["Probe", "Ready"]


class Ready(Answer, frozen=True, kw_only=True):
    """Yes or no."""

    ready: Literal["yes", "no"]


class Probe(Question[Ready], frozen=True, kw_only=True):
    """Asks a judge whether it can read the context."""

    prompt = "probe"
    answer = Ready

    @classmethod
    def make(cls) -> "Probe":
        """The only probe."""
        return cls(context=Context.of(note="This is a test of the connection."))

    def lexical(self) -> Ready:
        """Always ready."""
        return Ready(ready="yes")
