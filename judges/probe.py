"""The smallest question: is anybody there, and does it keep to the form?"""

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
        """The one probe there is."""
        return cls(context=Context.of(note="This is a test of the connection."))

    def lexical(self) -> Ready:
        """Always ready."""
        return Ready(ready="yes")
