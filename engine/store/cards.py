"""Scorecards as they are stored, in JSON; those of schema 4 and before state each outcome in words alone.

Nothing else reads an outcome's words. Words that an older protocol of somebody else's wrote become a note.
"""

import re
from collections import Counter
from typing import Any

import msgspec

from adjudge.scoring.contract.scorecard import Outcome, OutcomeKind, Scorecard

__all__ = ["OldCard", "read_card", "read_counts"]

_decoder = msgspec.json.Decoder(Scorecard)


def read_card(text: bytes | str | memoryview) -> Scorecard:
    """A stored scorecard of any version. Raises msgspec.DecodeError."""
    try:
        return _decoder.decode(text)
    except msgspec.ValidationError:
        card = msgspec.json.decode(text, type=dict[str, Any])
    for line in card.get("evidence", ()):
        line["outcome"] = _outcome(card["protocol"], msgspec.convert(line, OldLine))
    return msgspec.convert(card, Scorecard)


def read_counts(text: str) -> dict[str, int]:
    """The stored counts of a scorecard's outcomes by kind, of any version. Raises msgspec.DecodeError."""
    counts = msgspec.json.decode(text, type=dict[str, int])
    if "none" in counts:  # until schema 4
        counts["missing"] = counts.pop("none")
    return counts


class OldLine(msgspec.Struct, frozen=True):
    """As much of an old line of evidence as decides its outcome."""

    what: str
    outcome: str | Outcome
    reason: str = ""
    value: float | None = None


class OldCard(msgspec.Struct, frozen=True, kw_only=True):
    """As much of an old scorecard as its verdicts need: a fifth of the time and memory of the whole."""

    protocol: str
    system: str
    task_id: str
    sample: int
    repeat: int
    evidence: tuple[OldLine, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many lines have which kind of outcome."""
        return dict(Counter(_outcome(self.protocol, line).kind for line in self.evidence))


_NUMBER = r"-?\d{1,9}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?"
_POINTS = re.compile(rf"({_NUMBER}) of ({_NUMBER})(?:, reference ({_NUMBER}))?")
_PLAIN = re.compile(_NUMBER)
_STATED: dict[str, OutcomeKind] = {
    kind: kind for kind in ("supported", "unsupported", "unknown", "unreachable")
}
_WORDS: dict[str, OutcomeKind] = {
    "met": "met",
    "cited": "met",
    "not met": "unmet",
    "not cited": "unmet",
    "met, but rests on a blocked source": "blocked",
}
_LABELS: dict[str, OutcomeKind] = {"true": "true", "false": "false", "not_stated": "not_stated"}
_COMPARED: dict[str, OutcomeKind] = {"won": "won", "tied": "tied", "the same text": "tied", "lost": "lost"}
_BEST_GRADE = 3.0  # of a field, in LiveDRBench


def _outcome(protocol: str, line: OldLine) -> Outcome:
    """What the line's words say, as the protocol would say it today."""
    words = line.outcome
    if isinstance(words, Outcome):
        return words
    own = _by_protocol(protocol, line, words)
    if own is not None:
        return own
    stated = _STATED.get(words.partition(" ")[0].rstrip(":")) or _WORDS.get(words)
    if stated is not None:
        return Outcome(stated, words=words)
    given = _POINTS.fullmatch(words)
    if given is not None:
        points, most = float(given[1]), float(given[2])
        if given[3] is None and line.value is not None:
            return Outcome.graded(points, most, words)
        return Outcome("points", points, most, None if given[3] is None else float(given[3]), words)
    if line.reason or words.startswith("not in the reply"):
        return Outcome("missing", words=words)
    if line.value is not None:
        return Outcome("points", line.value, words=words)
    return Outcome("note", words=words)


def _by_protocol(protocol: str, line: OldLine, words: str) -> Outcome | None:
    """The outcome where the words mean something in one protocol alone."""
    match protocol:
        case "drmi" if words in _LABELS:
            return Outcome(_LABELS[words], words=words)
        case "livedr" | "drmi" if line.value is not None or words == "no match":
            return Outcome("unmatched" if words == "no match" else "matched", words=words)
        case "livedr" if _PLAIN.fullmatch(words):
            return Outcome("points", float(words), _BEST_GRADE, words=words)
        case "dr3" if _PLAIN.fullmatch(words):
            return Outcome.graded(float(words), 1.0, words)
        case "pairwise" if words in _COMPARED:
            return Outcome(_COMPARED[words], words=words)
        case "liveresearchbench" if words == "problem":
            return Outcome("problem", words=words)
    return None
