"""Dr.Mi-Bench's arithmetic: what comes of subtasks that are the same, works that were found, and labels given."""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from adjudge.scoring.answers.overlap import Overlap
from adjudge.scoring.drmi_bench.literature import Reference, Rule, find_references
from adjudge.scoring.kernels.matching import match_claims as kernel

__all__ = [
    "Label",
    "Planning",
    "Reasoning",
    "Retrieval",
    "planning_scores",
    "reasoning_scores",
    "retrieval_scores",
]

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
