"""Questions about numbered items: one answer, or one part of an answer, for each."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from adjudge.judges import Answer, Question, numbered

A = TypeVar("A", bound=Answer)
V = TypeVar("V")

BATCH = 20


class Numbered(Question[A], frozen=True, kw_only=True):
    """Base of the questions about items, which are the field that `listed` names."""

    listed: ClassVar[str]

    @property
    def count(self) -> int:
        """One part of the answer for each item."""
        return len(getattr(self, self.listed))

    def keyed(self, values: Iterable[V]) -> dict[str, V]:
        """`values`, one for each item, by the items' keys."""
        return dict(zip(numbered(self.count), values, strict=True))


def batches(items: Sequence[V], size: int = BATCH) -> list[tuple[V, ...]]:
    """`items` in order, `size` at a time: what fits one question."""
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]
