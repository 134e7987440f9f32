"""What a judge is asked about items of gold, where words alone do not tell."""

from typing import Annotated, Literal

import msgspec

from adjudge.judges import Answer, Question, numbered
from adjudge.judges.lexical import passages
from adjudge.scoring.answers.sameness import SameAs

__all__ = ["Flaws", "Held", "ItemFlaws", "ItemsHeld", "SameItem"]

_ABSENT = (
    0.2  # share of an item's words that some passage must hold for the embedded judge not to call it absent
)


class Flaws(Answer, frozen=True, kw_only=True):
    """For each numbered item, why no report can be judged by it."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    items: dict[str, Literal["sound", "vague", "compound", "met_by_nothing"]]


class ItemFlaws(Question[Flaws], frozen=True, kw_only=True):
    """Which items are vague, compound or met by a report that says nothing, given the task (context)?"""

    prompt = "gold_flaws"
    words = "items of gold that no report can be judged by"
    answer = Flaws

    items: tuple[str, ...]

    @property
    def count(self) -> int:
        """One verdict per item."""
        return len(self.items)

    def lexical(self) -> Flaws:
        """None: what words alone tell is known before anybody is asked."""
        return Flaws(items=dict.fromkeys(numbered(self.count), "sound"))


class Held(Answer, frozen=True, kw_only=True):
    """For each numbered item, what the material makes of it."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    items: dict[str, Literal["held", "contradicted", "absent", "unclear"]]


class ItemsHeld(Question[Held], frozen=True, kw_only=True):
    """Does the material (context: the task, and documents) hold, contradict or lack each item?"""

    prompt = "gold_held"
    words = "what the source makes of items of gold"
    answer = Held

    items: tuple[str, ...]

    @property
    def count(self) -> int:
        """One verdict per item."""
        return len(self.items)

    def lexical(self) -> Held:
        """Absent if no passage of the material has some of the item's words; words alone do not tell more."""
        if len(self.context.sections) < 2:
            return Held(items=dict.fromkeys(numbered(self.count), "unclear"))
        known = passages("\n".join(section.text for section in self.context.sections))
        return Held(
            items={
                key: "absent" if known.support(item).overlap < _ABSENT else "unclear"
                for key, item in zip(numbered(self.count), self.items, strict=True)
            }
        )


class SameItem(SameAs, frozen=True, kw_only=True):
    """Whether an item of gold (candidate) asks for the same as others, given the task (context)."""

    prompt = "gold_same"
    words = "which items of gold ask for the same"
