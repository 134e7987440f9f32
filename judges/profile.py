"""What the profile of a judge means, for every judge alike.

=========================  ============================  ============================================================
                           exact                         fast
=========================  ============================  ============================================================
one enumerated value       an analysis, then the value   no analysis; the expected value (adjudge.judges.expected)
any other answer           as its type says              the same
tokens for an answer       what its schema allows        what 99 of 100 took; an answer cut off there is asked again
                                                         with what its schema allows
questions at the judge     `max_in_flight`               those about the texts that its cache can hold, if it says
cache of our own engine    of the model's type           fp8, if the GPU computes in fp8
=========================  ============================  ============================================================

The two may answer differently, so a judge that is not exact has its profile in every key.
"""

from bisect import insort
from typing import TypeVar

from adjudge.judges.expected import labels_of
from adjudge.judges.judgment import Profile, Reply
from adjudge.judges.question import Answer, Question
from adjudge.judges.schema import Schema, schema_of

__all__ = ["TokensSeen", "asked_schema", "sampling_of"]

A = TypeVar("A", bound=Answer)

_ENOUGH = 100  # answers
_MOST_SEEN = 1_000
_SHARE = 0.99


def sampling_of(profile: Profile) -> str:
    """The profile as part of a judge's sampling; nothing for exact."""
    return "" if profile == "exact" else f" profile={profile}"


def asked_schema(question: Question[A], analysis: bool, profile: Profile) -> Schema:
    """The schema that a judge answers `question` in, which analyses by itself or not (`analysis`)."""
    if profile == "fast" and labels_of(verdict := schema_of(question, analysis=False)) is not None:
        return verdict
    return schema_of(question, analysis)


class TokensSeen:
    """The tokens that answers took, by answer type, count and options. One event loop."""

    def __init__(self) -> None:
        self._sorted: dict[tuple[type[Answer], int, tuple[float, ...]], list[int]] = {}

    def _of(self, question: Question[A]) -> list[int]:
        return self._sorted.setdefault((question.answer, question.count, question.options), [])

    def take(self, question: Question[A], reply: Reply[A]) -> None:
        """Note what the answer to `question` took."""
        seen = self._of(question)
        if reply.answer is not None and reply.usage.completion_tokens and len(seen) < _MOST_SEEN:
            insort(seen, reply.usage.completion_tokens)

    def budget(self, question: Question[A], most: int) -> int:
        """The tokens that 99 of 100 answers took, at most `most`; that, before enough answers were seen."""
        seen = self._of(question)
        return most if len(seen) < _ENOUGH else min(most, seen[int(_SHARE * len(seen))])

    def mean(self, question: Question[A], otherwise: float) -> float:
        """The mean of the tokens that answers took; `otherwise`, before enough answers were seen."""
        seen = self._of(question)
        return otherwise if len(seen) < _ENOUGH else sum(seen) / len(seen)
