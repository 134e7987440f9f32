"""The outcomes of lines of evidence: of which kind each is, and the points that it states."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from adjudge.scoring.contract.scorecard import Evidence

__all__ = ["Outcome", "Points", "count_kinds", "kind_of", "points_of"]

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


def kind_of(line: Evidence | Outcome) -> str:
    """Of which kind the outcome of a line is; "" for one of no kind.

    Of a statement "supported", "unsupported", "unknown" or "unreachable" (its page); of a criterion "met" (full
    points), "partly" or "unmet"; of either "none" where it is missing.
    """
    return _kind(*_told(line))


def _told(line: Evidence | Outcome) -> tuple[str, bool, bool]:
    return line.outcome, line.value is not None, bool(line.reason)


@lru_cache(256)  # a large run has millions of lines, and few different outcomes
def _kind(outcome: str, has_value: bool, has_reason: bool) -> str:
    word = outcome.partition(" ")[0].rstrip(":")
    if word in _STATED:
        return word
    if outcome in _WORDS:
        return _WORDS[outcome]
    points = points_of(outcome)
    if points is not None and points.reference is None and has_value:
        if points.given >= points.most:
            return "met"
        return "partly" if points.given > 0 else "unmet"
    return "none" if has_reason else ""


def count_kinds(lines: Iterable[Evidence | Outcome]) -> dict[str, int]:
    """How many lines are of which kind; those of no kind are not counted."""
    found: Counter[str] = Counter()
    for told, count in Counter(map(_told, lines)).items():
        found[_kind(*told)] += count
    return {kind: count for kind, count in found.items() if kind}


def points_of(outcome: str) -> Points | None:
    """The points that an outcome states."""
    found = _POINTS.fullmatch(outcome)
    if found is None:
        return None
    given, most, reference = (None if one is None else float(one) for one in found.groups())
    return Points(given or 0.0, most or 0.0, reference)
