"""Scorecards as they are stored, in JSON: a line's `outcome` is its words, its kind and points stand beside it.

Scorecards of schema 4 and before have the words alone, and nothing else reads them. Words that an older protocol of
somebody else's wrote become a note.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from adjudge.scoring.contract.scorecard import Evidence, Outcome, OutcomeKind, Scorecard

__all__ = [
    "LaterLines",
    "OldCard",
    "StoredCard",
    "read_card",
    "read_counts",
    "stored",
    "unread_card",
    "whole",
]


class OldLine(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a stored line of evidence, of any version, as decides its outcome."""

    what: str
    outcome: str | Outcome
    reason: str = ""
    value: float | None = None
    kind: OutcomeKind | None = None
    points: float | None = None
    most: float | None = None
    reference: float | None = None


class StoredLine(OldLine, frozen=True, kw_only=True):
    """A line of evidence as it is stored, the columns of `adjudge.open(RUN).evidence`."""

    judgment: str = ""
    url: str = ""
    id: str = ""
    quote: str = ""
    note: str = ""
    worst: float | None = None


class StoredCard(Scorecard, frozen=True, kw_only=True):
    """A scorecard as it is stored."""

    evidence: Sequence[StoredLine] = ()  # type: ignore[assignment]  # the same lines, another form


class LaterLines(Sequence[Evidence]):
    """The evidence of a stored scorecard, read when it is first looked at."""

    def __init__(self, protocol: str, stored: msgspec.Raw) -> None:
        self._protocol, self._stored = protocol, stored

    @cached_property
    def whole(self) -> tuple[Evidence, ...]:
        """All lines. Raises msgspec.DecodeError."""
        return _lines(self._protocol, _line_decoder.decode(self._stored))

    def __len__(self) -> int:
        return len(self.whole)

    def __getitem__(self, at: Any) -> Any:
        return self.whole[at]

    def __iter__(self) -> Iterator[Evidence]:
        return iter(self.whole)


class _UnreadCard(Scorecard, frozen=True, kw_only=True):
    """A stored scorecard whose evidence is read when it is first looked at."""

    evidence: msgspec.Raw = msgspec.Raw(b"[]")  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if isinstance(self.evidence, msgspec.Raw):
            msgspec.structs.force_setattr(self, "evidence", LaterLines(self.protocol, self.evidence))


_decoder = msgspec.json.Decoder(StoredCard)
_unread_decoder = msgspec.json.Decoder(_UnreadCard)
_line_decoder = msgspec.json.Decoder(list[StoredLine])


def stored(card: Scorecard) -> StoredCard:
    """`card` in the form in which it is stored."""
    return StoredCard(
        **msgspec.structs.asdict(card) | {"evidence": [_stored(line) for line in card.evidence]}
    )


def _stored(line: Evidence) -> StoredLine:
    # Each field by its name: a run of a million answers does this, and the reverse, a million times.
    outcome = line.outcome
    return StoredLine(
        what=line.what,
        outcome=outcome.words,
        reason=line.reason,
        value=line.value,
        kind=outcome.kind,
        points=outcome.points,
        most=outcome.most,
        reference=outcome.reference,
        judgment=line.judgment,
        url=line.url,
        id=line.id,
        quote=line.quote,
        note=line.note,
        worst=line.worst,
    )


def read_card(text: bytes | str | memoryview) -> Scorecard:
    """A stored scorecard of any version. Raises msgspec.DecodeError."""
    card = _decoder.decode(text)
    return Scorecard(**msgspec.structs.asdict(card) | {"evidence": _lines(card.protocol, card.evidence)})


def unread_card(text: bytes | str | memoryview) -> Scorecard:
    """As `read_card`, but for its evidence: `LaterLines`, which only reading can hold; see `whole`.

    A run that finds everything in the store looks at hardly any, and reading them is half of what a scorecard takes.
    """
    return _unread_decoder.decode(text)


def whole(card: Scorecard) -> Scorecard:
    """`card` with its evidence read. Raises msgspec.DecodeError."""
    later: object = card.evidence
    if not isinstance(later, LaterLines):
        return card
    return Scorecard(**msgspec.structs.asdict(card) | {"evidence": later.whole})


def _lines(protocol: str, stored: Sequence[StoredLine]) -> tuple[Evidence, ...]:
    # Each field by its name: as in `_stored`.
    return tuple(
        Evidence(
            what=line.what,
            outcome=_outcome(protocol, line),
            judgment=line.judgment,
            url=line.url,
            reason=line.reason,
            id=line.id,
            value=line.value,
            quote=line.quote,
            note=line.note,
            worst=line.worst,
        )
        for line in stored
    )


def read_counts(text: str) -> dict[str, int]:
    """The stored counts of a scorecard's outcomes by kind, of any version. Raises msgspec.DecodeError."""
    counts = msgspec.json.decode(text, type=dict[str, int])
    if "none" in counts:  # until schema 4
        counts["missing"] = counts.pop("none")
    return counts


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
    if line.kind is not None:
        return Outcome(line.kind, line.points, line.most, line.reference, words)
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
