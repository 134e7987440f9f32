"""Precision, recall and F1 of nested claims: LiveDRBench, Eq. 1."""

from collections.abc import Sequence

import msgspec
import numpy as np

from adjudge.scoring.kernels.base.arrays import Floats, Integers
from adjudge.scoring.kernels.base.compiled import compiled
from adjudge.scoring.kernels.base.errors import KernelError

__all__ = ["Claim", "NestedScores", "f1_of", "nested_scores"]


class NestedScores(msgspec.Struct, frozen=True):
    """Eq. 1 for Q questions. NaN where a question has no gold claim, or lacks a score it needs."""

    precision: Floats
    """mean over the predicted claims; weights above 1 can lift it above 1, as denominators are counts"""
    recall: Floats
    f1: Floats
    strict_precision: Floats
    """minimum instead of mean"""
    strict_recall: Floats
    """minimum over the gold claims, unmatched ones counting 0"""
    strict_f1: Floats


class Claim(msgspec.Struct, frozen=True):
    """A predicted claim as it was judged."""

    score: float | None
    """s of Eq. 1: how far its matched gold claim confirms it; 0: not at all, or unmatched; None: unscored"""
    weight: float = 1.0
    subclaims: tuple["Claim", ...] = ()
    gold_subclaims: int = 0
    """subclaims of the gold claim it is matched with"""


def nested_scores(questions: Sequence[tuple[Sequence[Claim], int]]) -> NestedScores:
    """LiveDRBench's Eq. 1, standard and strict.

    A claim is worth weight x score x (the same measure over its subclaims). Without subclaims of its own a
    predicted claim's precision factor is 1, and without subclaims of its gold claim its recall factor is 1.

    Args:
        questions: the predicted main claims and the number of gold main claims of each question.

    Raises:
        KernelError: a weight or score that is negative, infinite or NaN, a negative count, or more claims scored
            above 0 than there are gold claims to match.
    """
    parent, score, weight, golds = _flatten(questions)
    gold_counts = np.array([gold for _, gold in questions], dtype=np.int64)
    _check_claims(parent, score, weight, golds, gold_counts)
    precision, recall, strict_precision, strict_recall = _fold(parent, score, weight, golds, gold_counts)
    return NestedScores(
        precision=precision,
        recall=recall,
        f1=f1_of(precision, recall),
        strict_precision=strict_precision,
        strict_recall=strict_recall,
        strict_f1=f1_of(strict_precision, strict_recall),
    )


def f1_of(precision: Floats, recall: Floats) -> Floats:
    """Harmonic mean of precision and recall; 0 where both are 0, NaN where one is."""
    total = precision + recall
    return np.where(total == 0, 0.0, 2 * precision * recall / np.where(total == 0, 1.0, total))


def _flatten(questions: Sequence[tuple[Sequence[Claim], int]]) -> tuple[Integers, Floats, Floats, Integers]:
    """Parent, score, weight and gold subclaims of every claim, parents first; the parent of main claims is -1 - q."""
    parents: list[int] = []
    claims: list[Claim] = []
    for question, (main, _) in enumerate(questions):
        todo = [(-1 - question, claim) for claim in main]
        while todo:
            parent, claim = todo.pop()
            todo.extend((len(claims), subclaim) for subclaim in claim.subclaims)
            parents.append(parent)
            claims.append(claim)
    score = np.array([np.nan if claim.score is None else claim.score for claim in claims], dtype=np.float64)
    if any(claim.score is not None and claim.score != claim.score for claim in claims):
        raise KernelError("claims: a score is NaN; write None for an unscored claim")
    weight = np.array([claim.weight for claim in claims], dtype=np.float64)
    golds = np.array([claim.gold_subclaims for claim in claims], dtype=np.int64)
    return np.array(parents, dtype=np.int64), score, weight, golds


def _check_claims(
    parent: Integers, score: Floats, weight: Floats, golds: Integers, gold_counts: Integers
) -> None:
    if not ((weight >= 0) & (weight < np.inf)).all() or ((score < 0) | (score == np.inf)).any():
        raise KernelError("claims: weights and scores must be finite and not negative")
    if (golds < 0).any() or (gold_counts < 0).any():
        raise KernelError("claims: a negative number of gold claims")
    hits = score > 0
    nested = hits & (parent >= 0)
    below = np.bincount(parent[nested], minlength=golds.size)
    main = np.bincount(-1 - parent[hits & (parent < 0)], minlength=gold_counts.size)
    # A wrong claim has no gold claim, so nothing is known of what its subclaims could match.
    if (main > gold_counts).any() or (below > golds)[hits].any():
        raise KernelError("claims: more are scored above 0 than there are gold claims to match")


@compiled
def _fold(
    parent: Integers, score: Floats, weight: Floats, golds: Integers, gold_counts: Integers
) -> tuple[Floats, Floats, Floats, Floats]:
    """Precision, recall and their strict forms of each question; children come after their parents."""
    claims, questions = parent.size, gold_counts.size
    nodes = claims + questions
    children, hits = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    totals, lowest = np.zeros((nodes, 2)), np.full((nodes, 2), np.inf)
    measures = np.empty((4, questions))
    for claim in range(claims - 1, -1, -1):
        above = parent[claim] if parent[claim] >= 0 else claims - 1 - parent[claim]
        children[above] += 1
        if score[claim] == 0:
            lowest[above, 0] = 0.0
            continue
        factors = _factors(children[claim], hits[claim], golds[claim], totals[claim], lowest[claim], 1.0)
        hits[above] += 1
        for side in range(2):
            totals[above, side] += weight[claim] * score[claim] * factors[side]
            lowest[above, side] = min(lowest[above, side], weight[claim] * score[claim] * factors[2 + side])
    for question in range(questions):
        node, gold = claims + question, gold_counts[question]
        factors = _factors(children[node], hits[node], gold, totals[node], lowest[node], 0.0)
        for measure in range(4):
            measures[measure, question] = factors[measure] if gold else np.nan
    return measures[0], measures[1], measures[2], measures[3]


@compiled
def _factors(
    children: int, hits: int, gold: int, totals: Floats, lowest: Floats, empty: float
) -> tuple[float, float, float, float]:
    """Precision, recall, strict precision and strict recall over the children of one node.

    A claim without its score makes a total NaN, and then the minimum is not known either.
    """
    precision, strict_precision = empty, empty
    if children:
        precision = totals[0] / children
        strict_precision = lowest[0] if precision == precision else np.nan
    recall, strict_recall = empty, empty
    if gold:
        recall = totals[1] / gold
        strict_recall = (lowest[1] if hits == gold else 0.0) if recall == recall else np.nan
    return precision, recall, strict_precision, strict_recall
