"""Finds where a report makes a statement, and which passage of a page is about it."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import repeat

import msgspec

from adjudge.judges.lexical import figures, terms
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.citations import parse

MAX_CHARS = 500_000
_LIKE = 0.5  # share of words in common from which a sentence counts as a rewording of a statement
_MAX_COMPARED = 2_000_000  # statements with sentences
_AT_MOST = 3  # sentences of a window
_FIGURE = 1.5  # weight of a figure of the statement, in words that occur in one sentence only
_SENTENCE = re.compile(r"[^\n.!?。！？；].*?(?=[\n。！？；]|[.!?](?:\s|$)|\Z)[.!?。！？；]*+")


class Span(msgspec.Struct, frozen=True, order=True):
    """Characters `start` to `end` of a text."""

    start: int
    end: int


def said_at(text: str, statements: Sequence[str], handed: tuple[Citation, ...] = ()) -> list[Span | None]:
    """Where `text` says each of `statements`, if it can be found in its first 500,000 characters.

    Found by the sentence that the parser of citations took it from, by its letters and figures, or by the most similar
    sentence, which is looked for among at most two million pairs. `handed` are the report's citations apart from its
    text.
    """
    text = text[:MAX_CHARS]
    passages = parse(text, handed).passages
    written = {_letters(passage.fact): passage.raw for passage in passages}
    letters = _Letters(text)
    kinds = [(passage.raw, frozenset(terms(passage.fact))) for passage in passages]
    room = _MAX_COMPARED
    found = []
    for statement in statements:
        span = letters.find(written.get(_letters(statement), statement)) or letters.find(statement)
        if span is None and room >= len(kinds):
            room -= len(kinds)
            like = _most_like(frozenset(terms(statement)), kinds)
            span = None if like is None else letters.find(like)
        found.append(span)
    return found


class _Letters:
    """A text's letters and figures with their places; spaces and punctuation between them make no difference."""

    def __init__(self, text: str) -> None:
        self._at = array("I")
        letters = bytearray()
        for place, character in enumerate(text):
            if character.isalnum():
                folded = character.casefold()
                letters += folded.encode("utf-8", "surrogatepass")
                self._at.extend(repeat(place, len(folded)))
        self._letters = letters.decode("utf-8", "surrogatepass")

    def find(self, said: str) -> Span | None:
        """Where `said` first occurs."""
        wanted = _letters(said)
        place = self._letters.find(wanted) if wanted else -1
        if place < 0:
            return None
        return Span(self._at[place], self._at[place + len(wanted) - 1] + 1)


def _letters(text: str) -> str:
    """`text` without case, spaces and punctuation."""
    return "".join(character for character in text.casefold() if character.isalnum())


def _most_like(wanted: frozenset[str], kinds: Sequence[tuple[str, frozenset[str]]]) -> str | None:
    best, like = _LIKE, None
    for raw, held in kinds:
        share = len(wanted & held) / len(wanted | held) if wanted or held else 0.0
        if share >= best:
            best, like = share, raw
    return like


def nearest(page: str, statement: str) -> Span | None:
    """The passage of at most three sentences in the first 500,000 characters of `page` that fits `statement` best.

    Ranked by shared words, rare ones weighing more, and figures; of equals the shorter, then the earlier. None if the
    page has no word or figure of it.
    """
    wanted: frozenset[str | float] = figures(statement).union(terms(statement))
    starts, ends = array("I"), array("I")
    held: list[frozenset[str | float]] = []
    known: dict[frozenset[str | float], frozenset[str | float]] = {}
    for match in _SENTENCE.finditer(page[:MAX_CHARS]):
        if match[0].strip():
            starts.append(match.start())
            ends.append(match.end())
            shared = wanted & figures(match[0]).union(terms(match[0]))
            held.append(known.setdefault(shared, shared))
    count = Counter(one for shared in held for one in shared)
    weight = {
        one: math.log(1 + len(held) / number) if isinstance(one, str) else _FIGURE * math.log(1 + len(held))
        for one, number in count.items()
    }
    best, window = 0.0, None
    for first, begun in enumerate(held):
        if not begun:
            continue
        said: frozenset[str | float] = frozenset()
        for last in range(first, min(first + _AT_MOST, len(held))):
            said |= held[last]
            value = math.fsum(weight[one] for one in said) * 0.95 ** (last - first)
            if value > best + 1e-9:
                best, window = value, Span(starts[first], ends[last])
    return None if window is None else _stripped(page, window)


def _stripped(text: str, span: Span) -> Span:
    inside = text[span.start : span.end]
    start = span.start + len(inside) - len(inside.lstrip())
    return Span(start, span.end - len(inside) + len(inside.rstrip()))
