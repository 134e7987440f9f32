"""What is wrong with items of gold as far as it can be told without a judge."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from adjudge.judges.lexical import figures, terms
from adjudge.scoring.contract.case import Case, Passage
from adjudge.scoring.contract.gold import GoldItem, GoldItems, GoldSource
from adjudge.scoring.gold.passages import TASK, holds
from adjudge.scoring.gold.problem import Problem
from adjudge.scoring.gold.wording import flaw, is_common, predicate

__all__ = ["known_sources", "told_by_words"]

_TOLERANCE = 0.02  # of a sum of weights that are rounded to two places
_ALIKE, _LIKE = 0.8, 0.6  # shares of the words of two repeats that the other one has: of either, and of both
_WHY = {
    "vague": "names nothing that can be looked for",
    "compound": "asks for several things at once",
    "met_by_nothing": "asks to avoid or omit something, which a report that says nothing does",
}


def known_sources(
    gold: GoldItems, case: Case, given: Sequence[GoldSource], rests_on: Sequence[Passage]
) -> dict[str, str]:
    """The texts of the task's sources by name: its prompt, the documents of its gold, and those of the `given`.

    Where passages are known, only the documents that they name are the task's.
    """
    named = {one.source for one in rests_on}
    own = [one for one in given if one.name in named or not rests_on]
    return {TASK: case.task.prompt, **{one.name: one.text for one in (*gold.sources, *own)}}


def told_by_words(
    gold: GoldItems, rests_on: Sequence[Passage], sources: Mapping[str, str]
) -> Iterator[Problem]:
    """The problems that weights, passages, figures and words show; at most one per item."""
    yield from _weights(gold.weights)
    material = _Material.of(gold, rests_on, sources)
    before: dict[str, list[_Said]] = {}
    for item in gold.items:
        said, earlier = _Said.of(item), before.setdefault(item.part, [])
        problem = (
            _keyword(said, material)
            or _repeat(said, earlier)
            or _unfounded(item, material)
            or _other_figure(said, material)
            or _badly_worded(item)
        )
        earlier.append(said)
        if problem is not None:
            yield problem


class _Said(NamedTuple):
    """An item, what it says of a report, and the words and figures of that."""

    item: GoldItem
    text: str
    words: tuple[str, ...]
    kinds: frozenset[str]
    figures: frozenset[float]

    @classmethod
    def of(cls, item: GoldItem) -> "_Said":
        text = predicate(item.text)
        words = tuple(terms(text))
        return cls(item, text.casefold(), words, frozenset(words), figures(text))


class _Material(NamedTuple):
    """What items are checked against: sources, all their words and figures, passages, and keywords to use."""

    sources: Mapping[str, str]
    words: frozenset[str]
    figures: frozenset[float]
    quotes: Mapping[tuple[str, str], Passage]
    anchors: Mapping[tuple[str, ...], str]

    @classmethod
    def of(cls, gold: GoldItems, rests_on: Sequence[Passage], sources: Mapping[str, str]) -> "_Material":
        text = "\n".join(sources.values())
        quotes = {(one.part, one.item): one for one in rests_on}
        anchors = {tuple(terms(one.item)): one.item for one in gold.items if one.kind == "anchor"}
        return cls(sources, frozenset(terms(text)), figures(text), quotes, anchors)

    @property
    def has_documents(self) -> bool:
        """Whether there is a source beside the task's prompt."""
        return len(self.sources) > 1


def _weights(weights: Mapping[str, Sequence[float]]) -> Iterator[Problem]:
    for part, several in weights.items():
        total = math.fsum(several)
        if abs(total - 1) > _TOLERANCE:
            yield Problem(part=part, item="", kind="weights", why=f"the weights sum to {total:g}")


def _keyword(said: _Said, material: _Material) -> Problem | None:
    item = said.item
    if item.kind not in ("anchor", "deviation"):
        return None
    if is_common(item.item):
        return Problem.of(item, "common_keyword", "any report may use it")
    if item.kind == "deviation":
        both = material.anchors.get(said.words)
        return (
            None if both is None else Problem.of(item, "conflicting_keyword", f"reports are to use {both!r}")
        )
    if material.has_documents and not said.kinds <= material.words:
        return Problem.of(item, "unsupported", "no source uses it")
    return None


def _repeat(said: _Said, before: Sequence[_Said]) -> Problem | None:
    for other in before:
        if _repeats(said, other):
            return Problem.of(said.item, "duplicate", f"almost the words of {other.item.item!r}")
    return None


def _repeats(one: _Said, other: _Said) -> bool:
    """Whether two items have almost the same words and the same figures; labels must be equal too."""
    if one.item.truth != other.item.truth or one.figures != other.figures:
        return False
    if not one.kinds or not other.kinds:
        return one.text == other.text
    shared = len(one.kinds & other.kinds)
    shares = shared / len(one.kinds), shared / len(other.kinds)
    return max(shares) >= _ALIKE and min(shares) >= _LIKE


def _unfounded(item: GoldItem, material: _Material) -> Problem | None:
    if not material.quotes or item.kind == "deviation":
        return None
    found = material.quotes.get((item.part, item.item))
    if found is None:
        return Problem.of(item, "quote_missing", "no passage is given")
    text = material.sources.get(found.source)
    if text is None or holds(text, found.quote):
        return None
    return Problem.of(item, "quote_missing", f"{found.source} does not hold the passage {found.quote!r}")


def _other_figure(said: _Said, material: _Material) -> Problem | None:
    item = said.item
    if not material.has_documents or item.truth is False or item.kind in ("anchor", "deviation"):
        return None
    other = sorted(said.figures - material.figures)
    if not other:
        return None
    return Problem.of(
        item, "contradicted", f"no source has the figure {', '.join(f'{one:g}' for one in other)}"
    )


def _badly_worded(item: GoldItem) -> Problem | None:
    if item.kind != "requirement" or item.penalty:
        return None
    found = flaw(item.explanation or item.item)
    return None if found is None else Problem.of(item, found, _WHY[found])
