"""The outcomes of lines of evidence: of which kind each is, and how many of each kind a scorecard has."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adjudge.scoring.contract.scorecard import Evidence

__all__ = ["KINDS", "CountedCard", "Kind", "Points", "Verdicts", "kind_of", "points_of"]


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

_STATED = frozenset({"supported", "unsupported", "unknown", "unreachable"})
_WORDS = {"met": "met", "not met": "unmet", "cited": "met", "not cited": "unmet"}
_POINTS = re.compile(
    r"(-?\d{1,9}(?:\.\d{1,9})?) of (\d{1,9}(?:\.\d{1,9})?)(?:, reference (\d{1,9}(?:\.\d{1,9})?))?"
)


class Points(msgspec.Struct, frozen=True):
    """Points of so many, and those of the report that it is compared with, if there is one."""

    given: float
    most: float
    reference: float | None


class Outcome(msgspec.Struct, frozen=True):
    """As much of a line of evidence as says what came of it."""

    outcome: str
    reason: str = ""
    value: float | None = None


class CountedCard(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a stored scorecard as its verdicts need: a fifth of the time and memory of the whole."""

    protocol: str
    system: str
    task_id: str
    sample: int
    repeat: int
    evidence: tuple[Outcome, ...] = ()


def kind_of(line: Evidence | Outcome) -> str:
    """Which of KINDS the outcome of a line is of, "" for none of them."""
    word = line.outcome.partition(" ")[0].rstrip(":")
    if word in _STATED:
        return word
    if line.outcome in _WORDS:
        return _WORDS[line.outcome]
    points = points_of(line.outcome)
    if points is not None and points.reference is None and line.value is not None:
        if points.given >= points.most:
            return "met"
        return "partly" if points.given > 0 else "unmet"
    return "none" if line.reason else ""


def points_of(outcome: str) -> Points | None:
    """The points that an outcome states."""
    found = _POINTS.fullmatch(outcome)
    if found is None:
        return None
    given, most, reference = (None if one is None else float(one) for one in found.groups())
    return Points(given or 0.0, most or 0.0, reference)


class Verdicts(msgspec.Struct, frozen=True):
    """How many lines of evidence are of which kind, in the order of KINDS."""

    counts: tuple[int, ...]

    @classmethod
    def of(cls, evidence: Sequence[Evidence | Outcome]) -> "Verdicts":
        """The verdicts of `evidence`; lines of no kind are not counted."""
        found = Counter(map(kind_of, evidence))
        return cls(tuple(found[kind] for kind in KINDS))

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
