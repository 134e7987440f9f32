"""Dr.Mi-Bench's arithmetic: scores from matched subtasks, works found, and labels given.

Whether two references are the same work is decided by DOIs in the paper's section 3.2, and by the first 20 characters
of the normalised title in its appendix A.17. Both are here, and `combined` (ours): the DOI if both have one, else the
title.
"""

import html
import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np

from adjudge.scoring.answers.parts import Overlap
from adjudge.scoring.kernels.matching import match_claims as kernel

Rule = Literal["doi", "title20", "combined"]

MAX_PREDICTED = 2_000
"""How many predicted references are looked up; those beyond count as wrong."""

_DOI = re.compile(r"10\.\d{4,9}/[^\s\"'<>?#{}|\\^`]{1,300}", re.IGNORECASE)
_ARXIV = re.compile(
    r"arxiv(?:\.org/(?:abs|pdf|html)/|:\s?)(\d{4}\.\d{4,5}|[a-z-]{2,20}/\d{7})", re.IGNORECASE
)
_TRAILING = ".,;:)]}*_"
# What registers of works put into titles, also escaped: emphasis, indices, small capitals, formulas.
_MARKUP = re.compile(
    r"</?(?:i|b|u|em|strong|sub|sup|sc|scp|small|span|tt|br|p|(?:jats|mml):[a-z]{1,30})(?:\s[\w:-]{1,40}=[^<>]{0,200})?\s?/?>",
    re.IGNORECASE,
)


class Reference(msgspec.Struct, frozen=True):
    """A work by its title and its DOI, one of which may be empty."""

    title: str = ""
    doi: str = ""


class Found(msgspec.Struct, frozen=True):
    """How many distinct works are predicted, how many are gold, and how many are both."""

    predicted: int
    gold: int
    both: int


def doi_of(text: str) -> str:
    """The first DOI in a DOI, an address or an entry of a reference list, in lower case; "" if there is none.

    An arXiv number counts as the DOI that arXiv registers for it, without the version.
    """
    text = text[:4_000]
    doi = _DOI.search(text)
    if doi:
        return doi.group().rstrip(_TRAILING).lower()
    arxiv = _ARXIV.search(text)
    return f"10.48550/arxiv.{arxiv.group(1).lower()}" if arxiv else ""


def title20(title: str) -> str:
    """The first 20 characters of a title in lower case, letters and digits only, without markup and entities."""
    bare = _MARKUP.sub("", html.unescape(_MARKUP.sub("", title[:4_000])))
    return "".join(character for character in bare[:400].lower() if character.isalnum())[:20]


def find_references(predicted: Iterable[Reference], gold: Iterable[Reference], rule: Rule) -> Found:
    """How many of the works in `gold` are found, one-to-one, each side counting a work once.

    A reference that `rule` cannot tell (no DOI, no title) is found by nothing and stays in its count.
    """
    distinct, wanted = _distinct(predicted, rule), _distinct(gold, rule)
    edges = [[float(_same(one, other, rule)) for other in wanted] for one in distinct[:MAX_PREDICTED]]
    if not edges or not wanted:
        return Found(len(distinct), len(wanted), 0)
    both = kernel.match_cardinality(kernel.ClaimPairs.from_matrices([edges])).count[0]
    return Found(len(distinct), len(wanted), int(both))


def _distinct(references: Iterable[Reference], rule: Rule) -> Sequence[Reference]:
    """Each work once; DOIs and titles normalised."""
    found: dict[tuple[str, str] | int, Reference] = {}
    for place, reference in enumerate(references):
        normal = Reference(title20(reference.title), doi_of(reference.doi))
        doi, title = (normal.doi if rule != "title20" else ""), (normal.title if rule != "doi" else "")
        key = ("doi", doi) if doi else ("title", title) if title else place
        found.setdefault(key, normal)
    return list(found.values())


def _same(one: Reference, other: Reference, rule: Rule) -> bool:
    if rule == "doi" or (rule == "combined" and one.doi and other.doi):
        return bool(one.doi) and one.doi == other.doi
    return bool(one.title) and one.title == other.title


Label = Literal["true", "false", "not_stated"]


class Planning(msgspec.Struct, frozen=True):
    """Predicted against gold subtasks: matched one-to-one (as many as possible), and many-to-many.

    `jaccard` is of the one-to-one matching: what the text calls accuracy. The published tables hold its precision
    under that name.
    """

    one_to_one: Overlap
    jaccard: float
    matched: int
    many_to_many: Overlap


class Retrieval(msgspec.Struct, frozen=True):
    """Works found against gold works. `accuracy` is Jaccard for a review, 1 or 0 for a research paper's one work."""

    overlap: Overlap
    accuracy: float


class Reasoning(msgspec.Struct, frozen=True):
    """Labels against truth. A statement that the report does not decide is not right, whatever the truth.

    `binary` is Eqs. 8-11 with `true` as the positive class; `macro` the mean over three labels, of which gold never
    holds the third, which the published figures fit; `macro_present` the mean over the labels that occur.
    """

    accuracy: float
    binary: Overlap
    macro: Overlap
    macro_present: Overlap

    @property
    def figures(self) -> tuple[float, ...]:
        """The accuracy, then F1, precision and recall of `binary` and `macro`."""
        overlaps = (self.binary, self.macro)
        return (self.accuracy, *(x for one in overlaps for x in (one.f1, one.precision, one.recall)))


def planning_scores(same: Sequence[Sequence[bool | int]], gold: int) -> Planning:
    """Planning from `same[predicted][gold]`: whether two subtasks are the same; `gold` is how many there are."""
    matrix = np.array(same, dtype=np.float64).reshape(len(same), gold)
    pairs = kernel.ClaimPairs.from_matrices([matrix])
    matched = int(kernel.match_cardinality(pairs).count[0])
    one, many = kernel.overlap([len(same)], [gold], [matched]), kernel.coverage(pairs)
    return Planning(_overlap(one), float(one.jaccard[0]), matched, _overlap(many))


def retrieval_scores(
    predicted: Sequence[Reference], gold: Sequence[Reference], rule: Rule, kind: str = "review"
) -> Retrieval:
    """Retrieval by one of the matching rules of `literature`, works counted once; `kind` as in `Gold`."""
    found = find_references(predicted, gold, rule)
    scores = kernel.overlap([found.predicted], [found.gold], [found.both])
    hit = float(found.both > 0)
    return Retrieval(_overlap(scores), hit if kind == "research" else float(scores.jaccard[0]))


def reasoning_scores(truth: Sequence[bool], labels: Sequence[Label]) -> Reasoning:
    """Reasoning from the truth of the statements and the labels they were given."""
    gold: list[Label] = ["true" if true else "false" for true in truth]
    pairs = list(zip(gold, labels, strict=True))
    every: tuple[Label, ...] = ("true", "false", "not_stated")
    by_label = {label: _one_label(pairs, label) for label in every}
    present = [by_label[label] for label in every if label in gold or label in labels]
    accuracy = sum(one == other for one, other in pairs) / len(pairs) if pairs else 0.0
    return Reasoning(accuracy, by_label["true"], _macro(list(by_label.values())), _macro(present))


def _one_label(pairs: Sequence[tuple[Label, Label]], label: Label) -> Overlap:
    right = sum(gold == label == found for gold, found in pairs)
    return Overlap.counted(
        right, sum(found == label for _, found in pairs), sum(gold == label for gold, _ in pairs)
    )


def _macro(labels: Sequence[Overlap]) -> Overlap:
    """Means of the labels' figures: the F1 is the mean of their F1, not that of the means."""
    count = len(labels) or 1
    return Overlap(
        sum(one.precision for one in labels) / count,
        sum(one.recall for one in labels) / count,
        sum(one.f1 for one in labels) / count,
    )


def _overlap(scores: kernel.OverlapScores) -> Overlap:
    return Overlap(float(scores.precision[0]), float(scores.recall[0]), float(scores.f1[0]))
