"""What is wrong with items of gold as far as it can be told without a judge."""

import math
from collections.abc import Iterator, Mapping, Sequence

from adjudge.judges.lexical import coverage, figures, terms
from adjudge.scoring.contract.case import Case, Passage
from adjudge.scoring.contract.gold import GoldItem, GoldItems, GoldSource
from adjudge.scoring.gold.passages import TASK, holds
from adjudge.scoring.gold.problem import Problem
from adjudge.scoring.gold.wording import flaw, is_common, predicate

__all__ = ["known_sources", "repeats", "told_by_words"]

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
    quotes = {(one.part, one.item): one for one in rests_on}
    anchors = {tuple(terms(one.item)): one.item for one in gold.items if one.kind == "anchor"}
    before: dict[str, list[GoldItem]] = {}
    for item in gold.items:
        problem = (
            _keyword(item, anchors, sources)
            or _repeat(item, before.get(item.part, []))
            or _unfounded(item, quotes, sources)
            or _other_figure(item, sources)
            or _badly_worded(item)
        )
        before.setdefault(item.part, []).append(item)
        if problem is not None:
            yield problem


def _weights(weights: Mapping[str, Sequence[float]]) -> Iterator[Problem]:
    for part, several in weights.items():
        total = math.fsum(several)
        if abs(total - 1) > _TOLERANCE:
            yield Problem(part=part, item="", kind="weights", why=f"the weights sum to {total:g}")


def _keyword(
    item: GoldItem, anchors: Mapping[tuple[str, ...], str], sources: Mapping[str, str]
) -> Problem | None:
    if item.kind not in ("anchor", "deviation"):
        return None
    if is_common(item.item):
        return Problem.of(item, "common_keyword", "any report may use it")
    words = tuple(terms(item.item))
    if item.kind == "deviation":
        both = anchors.get(words)
        return (
            None if both is None else Problem.of(item, "conflicting_keyword", f"reports are to use {both!r}")
        )
    documents = [text for name, text in sources.items() if name != TASK]
    if documents and coverage(list(words), set(terms("\n".join(sources.values())))) < 1:
        return Problem.of(item, "unsupported", "no source uses it")
    return None


def _repeat(item: GoldItem, before: Sequence[GoldItem]) -> Problem | None:
    for other in before:
        if repeats(item, other):
            return Problem.of(item, "duplicate", f"almost the words of {other.item!r}")
    return None


def repeats(one: GoldItem, other: GoldItem) -> bool:
    """Whether two items have almost the same words and the same figures; labels must be equal too."""
    if one.truth != other.truth:
        return False
    first, second = predicate(one.text), predicate(other.text)
    left, right = terms(first), terms(second)
    if not left or not right:
        return first.casefold() == second.casefold()
    shares = coverage(left, set(right)), coverage(right, set(left))
    return max(shares) >= _ALIKE and min(shares) >= _LIKE and figures(first) == figures(second)


def _unfounded(
    item: GoldItem, quotes: Mapping[tuple[str, str], Passage], sources: Mapping[str, str]
) -> Problem | None:
    if not quotes or item.kind == "deviation":
        return None
    found = quotes.get((item.part, item.item))
    if found is None:
        return Problem.of(item, "quote_missing", "no passage is given")
    text = sources.get(found.source)
    if text is None or holds(text, found.quote):
        return None
    return Problem.of(item, "quote_missing", f"{found.source} does not hold the passage {found.quote!r}")


def _other_figure(item: GoldItem, sources: Mapping[str, str]) -> Problem | None:
    if len(sources) < 2 or item.truth is False or item.kind in ("anchor", "deviation"):
        return None
    known = frozenset[float]().union(*map(figures, sources.values()))
    other = sorted(figures(predicate(item.text)) - known)
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
