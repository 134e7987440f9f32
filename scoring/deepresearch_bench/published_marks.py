"""RACE's marks as its own code reads and weighs them: JSON out of free text, matched by the criteria's texts.

The rules are the reference code's, quirks included, for `call: published` alone:

- A criterion that the reply leaves out counts in no sum; one that it repeats counts each time.
- The weight of an item is that of the criterion of its text (stripped; else without regard to case; else the first of
  which one text holds the other), else the mean weight of the dimension.
- A missing mark of the reference adds nothing to its sum, whose divisor it still enters; if the last one of a dimension
  is missing, the reference's whole dimension is 0.
- A dimension without a list of marks, or without a usable one, is 0 for both; so is a share of what is NaN. Such a
  score is the reply's fault and not the report's: `whole` says which dimensions miss nothing.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from adjudge.judges.published import UnreadableReply
from adjudge.scoring.deepresearch_bench.yardstick import DIMENSIONS, Criterion

__all__ = ["DimensionMarks", "MarkedItem", "RaceShares", "json_in", "marks_in", "shares"]

_FENCE = "```json"
_BRACE = re.compile(r"[{}]")
_CRITERION = re.compile(r'"criterion"\s*:\s*"([^"]+)"')
_TARGET = re.compile(r'"article_1_score"\s*:\s*(\d+\.?\d*)')
_REFERENCE = re.compile(r'"article_2_score"\s*:\s*(\d+\.?\d*)')


def marks_in(text: str) -> object:
    """The JSON value in a reply's `text` that holds all four dimensions. Raises UnreadableReply. Linear."""
    found = json_in(text)
    if not isinstance(found, dict | list | str) or any(name not in found for name in DIMENSIONS):
        raise UnreadableReply("a dimension is missing")
    return found


def json_in(text: str) -> object:
    """The JSON value in `text`: of several ways to find one, the first that gives valid JSON. Raises UnreadableReply.

    The text as a whole, if it is in braces; its first fence; the text as a whole; from its first brace to the one that
    closes it, braces within strings counted too; from its first brace to its last; marks gathered from broken JSON.
    """
    for candidate in _candidates(text):
        try:
            return json.loads(candidate)
        except json.JSONDecodeError:
            continue
        except (ValueError, RecursionError) as error:
            raise UnreadableReply(f"{type(error).__name__} in the reply's JSON") from error
    gathered = _gathered(text)
    if not any(gathered.values()):
        raise UnreadableReply("no JSON in the reply")
    return gathered


def _candidates(text: str) -> Iterator[str]:
    whole = text.strip()
    if whole.startswith("{") and whole.endswith("}"):
        yield whole
    start = text.find(_FENCE) + len(_FENCE)
    if start >= len(_FENCE) and (close := text.find("```", start)) > start:
        yield text[start:close].strip()
    yield whole
    first, last = text.find("{"), text.rfind("}")
    if first >= 0:
        if (end := _closed(text, first)) is not None:
            yield text[first:end]
        if last > first:
            yield text[first : last + 1]


def _closed(text: str, start: int) -> int | None:
    """Where the brace at `start` is closed, whatever stands in strings; None if it is not."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return None


def _gathered(text: str) -> dict[str, list[dict[str, object]]]:
    """Criteria and marks by dimension, from wherever they stand in broken JSON."""
    if any(word not in text for word in (DIMENSIONS[0], "article_1_score", "article_2_score")):
        return {}
    found: dict[str, list[dict[str, object]]] = {}
    for name in DIMENSIONS:
        if name in text:
            start = next(place for place in _places(text, name, 0, 0) if place >= 0)
            after = start + len(name)
            ends = [
                next((place for place in _places(text, other, start, after) if place >= 0), len(text))
                for other in DIMENSIONS
                if other != name
            ]
            found[name] = _items(text[start : min(ends)])
    return found


def _places(text: str, name: str, quoted_from: int, bare_from: int) -> Iterator[int]:
    """Where `name` stands in double quotes, in single quotes, and without; -1 for nowhere."""
    yield text.find(f'"{name}"', quoted_from)
    yield text.find(f"'{name}'", quoted_from)
    yield text.find(name, bare_from)


def _items(text: str) -> list[dict[str, object]]:
    columns = [
        [match[1] for match in pattern.finditer(text)] for pattern in (_CRITERION, _TARGET, _REFERENCE)
    ]
    return [
        {"criterion": criterion, "article_1_score": float(target), "article_2_score": float(reference)}
        for criterion, target, reference in zip(*columns, strict=False)
    ]


class MarkedItem(msgspec.Struct, frozen=True):
    """A criterion's text as the reply gives it, its weight, and the marks; `reference` None if there is none."""

    criterion: str
    weight: float
    target: float
    reference: float | None

    @property
    def is_whole(self) -> bool:
        """Whether both marks are numbers."""
        return math.isfinite(self.target) and self.reference is not None and math.isfinite(self.reference)


class DimensionMarks(msgspec.Struct, frozen=True):
    """A dimension's weighted means, and the items behind them. `whole`: no mark is missing."""

    items: tuple[MarkedItem, ...]
    target: float
    reference: float
    whole: bool


class RaceShares(msgspec.Struct, frozen=True):
    """A report's results: the shares of target / (target + reference), overall and by dimension, and their marks."""

    overall: float
    dimensions: dict[str, float]
    marks: dict[str, DimensionMarks]

    @property
    def whole(self) -> frozenset[str]:
        """The dimensions that miss nothing."""
        return frozenset(name for name in DIMENSIONS if name in self.marks and self.marks[name].whole)


def shares(
    reply: object,
    weights: Mapping[str, float],
    criteria: Mapping[str, Sequence[Criterion]],
    *,
    alone: bool = False,
) -> RaceShares:
    """The results of a `reply` that `marks_in` accepts. Raises UnreadableReply where no number comes of it.

    A report that was marked `alone`, without a reference, has its marks as shares of 10, within 0..1.
    """
    if not isinstance(reply, dict):
        raise UnreadableReply("no object of dimensions in the reply")
    try:
        marks = {
            name: _dimension(items, criteria[name], alone)
            for name, items in reply.items()
            if isinstance(items, list) and name in weights and criteria.get(name)
        }
    except OverflowError as error:
        raise UnreadableReply("a mark beyond all numbers") from error
    target = reference = 0.0
    for name, one in marks.items():
        target += one.target * weights[name]
        reference += one.reference * weights[name]
    share = _of_ten if alone else _share
    dimensions = {
        name: share(marks[name].target, marks[name].reference) if name in marks else 0.0
        for name in DIMENSIONS
    }
    overall = share(target, reference)
    if not all(map(math.isfinite, (overall, *dimensions.values()))):
        raise UnreadableReply("a mark that is not a finite number")
    return RaceShares(overall, dimensions, marks)


def _of_ten(target: float, reference: float) -> float:
    return target if math.isnan(target) else min(max(target / 10, 0.0), 1.0)


def _share(target: float, reference: float) -> float:
    total = target + reference
    return target / total if total > 0 else 0.0


def _dimension(raw: list[Any], criteria: Sequence[Criterion], alone: bool) -> DimensionMarks:
    weights = {one.criterion: one.weight for one in criteria}
    lowered = [(text.lower(), weight) for text, weight in weights.items()]
    items: list[MarkedItem] = []
    last: float | None = None
    for one in raw:
        try:
            target, reference = _marks(one)
        except (TypeError, ValueError):
            continue
        last = reference
        text = one.get("criterion")
        text = text.strip() if isinstance(text, str) else ""
        if text and target is not None:
            items.append(MarkedItem(text, _weight(text, weights, lowered), target, reference))
    total = sum(item.weight for item in items)
    if not total > 0:
        return DimensionMarks(tuple(items), 0.0, 0.0, False)
    targets = sum(item.target * item.weight for item in items)
    references = sum(item.reference * item.weight for item in items if item.reference is not None)
    whole = all(math.isfinite(item.target) and (alone or item.is_whole) for item in items)
    whole = whole and (alone or last is not None)
    return DimensionMarks(tuple(items), targets / total, 0.0 if last is None else references / total, whole)


def _marks(item: Any) -> tuple[float | None, float | None]:
    """The marks of target and reference. Raises TypeError or ValueError for what is not an item with numbers."""
    if not isinstance(item, dict):
        raise TypeError("not an item")
    target, reference = item.get("article_1_score"), item.get("article_2_score")
    if target is None:
        target = item.get("target_score")
    return (None if target is None else float(target)), (None if reference is None else float(reference))


def _weight(text: str, weights: Mapping[str, float], lowered: Sequence[tuple[str, float]]) -> float:
    if (exact := weights.get(text)) is not None:
        return exact
    wanted = text.lower()
    for known, weight in lowered:
        if known == wanted:
            return weight
    for known, weight in lowered:
        if wanted in known or known in wanted:
            return weight
    return sum(weights.values()) / len(weights)
