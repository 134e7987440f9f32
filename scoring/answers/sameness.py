"""Whether a candidate and numbered references are the same thing: the question under every judged matching.

A protocol defines "the same" with a prompt of its own, in a subclass of `SameAs`.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from adjudge.judges import Answer, Judgment, numbered
from adjudge.judges.lexical import coverage, figures, terms
from adjudge.scoring.answers.numbered import Numbered, batches
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Missing, Outcome, first_missing

_MAX_SHOWN = 2_000
_AGREED = 0.8


class Sameness(Answer, frozen=True, kw_only=True):
    """For each numbered reference, whether the candidate is the same."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    items: dict[str, Literal["same", "different"]]


class SameAs(Numbered[Sameness], frozen=True, kw_only=True):
    """Which of at most 20 `references` are the same as `candidate`."""

    words = "which reference answers an answer equals"
    answer = Sameness
    listed = "references"

    candidate: str
    references: tuple[str, ...]

    def lexical(self) -> Sameness:
        """The same if either side's words cover the other's and no figure differs."""
        keyed = zip(numbered(self.count), self.references, strict=True)
        return Sameness(
            items={
                key: "same" if _alike(self.candidate, reference) else "different" for key, reference in keyed
            }
        )


def same_text(one: str, other: str) -> bool:
    """Equal after lower case and strip; an empty text equals nothing (the rule of LiveDRBench's SciFacts)."""
    return bool(one.strip()) and one.strip().lower() == other.strip().lower()


def clipped(text: str) -> str:
    """`text` as far as a judge is shown it: at most 2,000 characters."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]} [...]"


def matched(references: str) -> Outcome:
    """What a candidate was found to be the same as; no match where that is empty."""
    return Outcome("matched" if references else "unmatched", words=clipped(references) or "no match")


class Verdicts(NamedTuple):
    """For each reference, whether it is the same as the candidate; and the judgments that say so."""

    same: list[bool]
    judgments: list[Judgment[Sameness]]

    @property
    def first(self) -> int | None:
        """The first reference that is the same."""
        return next((place for place, same in enumerate(self.same) if same), None)

    def evidence(self, candidate: str, references: Sequence[str]) -> Evidence:
        """The line of evidence that says what `candidate` was found to be the same as."""
        found = [reference for reference, same in zip(references, self.same, strict=True) if same]
        key = self.judgments[0].key.hex() if self.judgments else ""
        return Evidence(
            what=clipped(candidate), outcome=matched("; ".join(found)), judgment=key, value=float(bool(found))
        )


async def same_as(
    tools: Tools, ask: Callable[[tuple[str, ...]], SameAs], references: Sequence[str]
) -> Verdicts | Missing:
    """Which of `references` are the same as the candidate that `ask` puts beside at most 20 of them at a time.

    `Missing` if one of the judgments is unscored. No references, no question.
    """
    judgments = await tools.ask_all(ask(batch) for batch in batches(references))
    missing = first_missing(judgments)
    if missing is not None:
        return missing
    answers = [judgment.answer.items for judgment in judgments if judgment.answer is not None]
    return Verdicts([items[key] == "same" for items in answers for key in numbered(len(items))], judgments)


def _alike(one: str, other: str) -> bool:
    if same_text(one, other):
        return True
    left, right = terms(one), terms(other)
    shared = max(coverage(left, set(right)), coverage(right, set(left)))
    return shared >= _AGREED and figures(one) == figures(other)
