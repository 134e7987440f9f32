"""What the viewer shows of outcomes: a sign and words for each kind, and how many of each kind a scorecard has."""

from collections.abc import Iterable, Mapping

import msgspec

from adjudge.scoring.contract.outcomes import Outcome

__all__ = ["KINDS", "CountedCard", "Kind", "Verdicts"]


class Kind(msgspec.Struct, frozen=True):
    """A kind of outcome: its sign, and the words for it in a legend."""

    sign: str
    words: str


KINDS: Mapping[str, Kind] = {
    "supported": Kind("✓", "supported"),
    "met": Kind("✓", "full points"),
    "partly": Kind("◐", "some points"),
    "unsupported": Kind("✗", "unsupported"),
    "unmet": Kind("✗", "no points"),
    "unknown": Kind("?", "unknown"),
    "unreachable": Kind("⊘", "page unreachable"),
    "none": Kind("–", "missing"),
}
"""The kinds of outcome in the order in which they are counted; other outcomes have none."""


class CountedCard(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a stored scorecard as its verdicts need: a fifth of the time and memory of the whole."""

    protocol: str
    system: str
    task_id: str
    sample: int
    repeat: int
    evidence: tuple[Outcome, ...] = ()


class Verdicts(msgspec.Struct, frozen=True):
    """How many lines of evidence are of which kind, in the order of KINDS."""

    counts: tuple[int, ...]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Verdicts":
        """Those of which there are so many of each kind (`count_kinds`)."""
        return cls(tuple(counts.get(kind, 0) for kind in KINDS))

    @property
    def by_kind(self) -> dict[str, int]:
        """The kinds that there are, and how many of each."""
        return {kind: count for kind, count in zip(KINDS, self.counts, strict=True) if count}

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts)

    @property
    def good(self) -> int:
        """How many are supported or have full points."""
        return sum(self.by_kind.get(kind, 0) for kind in ("supported", "met"))

    @property
    def said(self) -> str:
        """In words."""
        return ", ".join(f"{count:,} {KINDS[kind].words}" for kind, count in self.by_kind.items())

    @property
    def parts(self) -> list[tuple[str, float, float]]:
        """(kind, start, width) of each part of the stack that is drawn of them, in percent."""
        made, start = [], 0
        for kind, count in self.by_kind.items():
            made.append((kind, round(100 * start / self.total, 2), round(100 * count / self.total, 2)))
            start += count
        return made

    @staticmethod
    def kinds(found: Iterable["Verdicts | None"]) -> list[tuple[str, str]]:
        """The kinds that occur, with words for a legend; nothing where all there is is missing."""
        present = {kind for one in found if one is not None for kind in one.by_kind}
        return (
            [(kind, about.words) for kind, about in KINDS.items() if kind in present]
            if present - {"none"}
            else []
        )
