"""RACE's questions: marks from 0 to 10 in halves for one article, or for two side by side.

Articles are called A and B; nothing says which is the report and which the reference. The task and the article that
stands first are the context; then come article B and all criteria. Every criterion gets an analysis before its marks;
the analyses of one question share one budget of characters.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, ClassVar

import msgspec

from adjudge.judges import Answer, Question, numbered
from adjudge.judges.lexical import figures, terms
from adjudge.scoring.deepresearch_bench.yardstick import Criterion
from adjudge.scoring.text.blocks import lines

__all__ = ["MAX_CRITERIA", "ArticleMarks", "OverallMark", "Pair", "PairMarks", "chunks", "named"]

MAX_CRITERIA = 80

Mark = Annotated[float, msgspec.Meta(ge=0, le=10, multiple_of=0.5)]
Analysis = Annotated[str, msgspec.Meta(max_length=4_800, extra_json_schema={"shared": True})]


class Pair(Answer, frozen=True, kw_only=True):
    """The marks of both articles for one criterion."""

    analysis: Analysis = ""
    a: Mark
    b: Mark


class MarkedPair(Answer, frozen=True, kw_only=True):
    """The marks of both articles for each numbered criterion."""

    most_items: ClassVar[int] = MAX_CRITERIA

    items: dict[str, Pair]


class PairMarks(Question[MarkedPair], frozen=True, kw_only=True):
    """How do articles A (in the context) and B do by each criterion?"""

    words = "marks by criterion beside the reference"
    prompt = "race_pair"
    answer = MarkedPair

    criteria: tuple[str, ...]
    article_b: str

    @property
    def count(self) -> int:
        """One item per criterion."""
        return len(self.criteria)

    def lexical(self) -> MarkedPair:
        """The lexical mark of each article, taken alone: the same whichever stands first."""
        task, article_a = self.context["task"], self.context["article_a"]
        marks = [
            Pair(
                a=_lexical_mark(article_a, task, criterion), b=_lexical_mark(self.article_b, task, criterion)
            )
            for criterion in map(_unnamed, self.criteria)
        ]
        return MarkedPair(items=dict(zip(numbered(len(marks)), marks, strict=True)))


class Single(Answer, frozen=True, kw_only=True):
    """The article's mark for one criterion."""

    analysis: Analysis = ""
    mark: Mark


class MarkedArticle(Answer, frozen=True, kw_only=True):
    """The article's mark for each numbered criterion."""

    most_items: ClassVar[int] = MAX_CRITERIA

    items: dict[str, Single]


class ArticleMarks(Question[MarkedArticle], frozen=True, kw_only=True):
    """How does the article in the context do by each criterion, with nothing to compare it with?"""

    words = "marks by criterion"
    prompt = "race_point"
    answer = MarkedArticle

    criteria: tuple[str, ...]

    @property
    def count(self) -> int:
        """One item per criterion."""
        return len(self.criteria)

    def lexical(self) -> MarkedArticle:
        """The lexical mark of the article."""
        task, article = self.context["task"], self.context["article"]
        marks = [
            Single(mark=_lexical_mark(article, task, criterion)) for criterion in map(_unnamed, self.criteria)
        ]
        return MarkedArticle(items=dict(zip(numbered(len(marks)), marks, strict=True)))


class Overall(Answer, frozen=True, kw_only=True):
    """One mark for the whole article."""

    analysis: Annotated[str, msgspec.Meta(max_length=1600)] = ""
    mark: Mark


class OverallMark(Question[Overall], frozen=True, kw_only=True):
    """How good is the article in the context, all in all? No criteria, no reference."""

    words = "one mark for the whole report"
    prompt = "race_vanilla"
    answer = Overall

    def lexical(self) -> Overall:
        """The lexical mark with the task as the only criterion."""
        return Overall(mark=_lexical_mark(self.context["article"], self.context["task"], ""))


def named(dimension: str, criterion: Criterion) -> str:
    """A criterion as a judge is shown it: its dimension, its text, never its weight."""
    return f"{dimension} | {criterion.text}"


def _unnamed(shown: str) -> str:
    return shown.partition(" | ")[2]


def chunks(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """`criteria` in their order, in as few runs of at most 80 as possible, of even length."""
    runs = math.ceil(len(criteria) / MAX_CRITERIA)
    edges = [len(criteria) * run // runs for run in range(runs + 1)] if runs else [0]
    return [tuple(criteria[start:end]) for start, end in pairwise(edges)]


class _Signals(msgspec.Struct, frozen=True):
    counts: dict[str, int]
    length: float
    structure: float
    figures: float


@lru_cache(maxsize=64)
def _signals(article: str) -> _Signals:
    """What a lexical judge sees of an article; `length`, `structure` and `figures` rise towards 1 and saturate."""
    counts: dict[str, int] = {}
    for term in terms(article):
        counts[term] = counts.get(term, 0) + 1
    shaped = sum(line.kind in ("heading", "item", "row") for line in lines(article))
    stated = len(figures(article))
    return _Signals(
        counts,
        length=_saturated(sum(counts.values()), 800),
        structure=_saturated(shaped, 20),
        figures=_saturated(stated, 25),
    )


def _lexical_mark(article: str, task: str, criterion: str) -> float:
    """Mostly how often the article uses the words of the criterion and the task; a little length, shape and figures."""
    seen = _signals(article)
    if not seen.counts:
        return 0.0
    asked = 0.6 * _used(seen, criterion) + 0.4 * _used(seen, task) if criterion else _used(seen, task)
    raw = 0.6 * asked + 0.2 * seen.length + 0.1 * seen.structure + 0.1 * seen.figures
    return round(20 * raw) / 2


def _used(seen: _Signals, text: str) -> float:
    wanted = set(terms(text))
    return (
        sum(_saturated(seen.counts.get(term, 0), 2) for term in sorted(wanted)) / len(wanted)
        if wanted
        else 0.0
    )


def _saturated(value: float, half: float) -> float:
    return value / (value + half)
