"""Pairing predicted with gold claims, and precision, recall and F1 of the pairs.

Many problems at once, in ragged (CSR) arrays. One to one, as many as possible are paired (Dr.Mi-Bench's planning).
Precision, recall and F1 of nested claims follow LiveDRBench, Eq. 1.

A kernel works through a span of problems: predicted claims are rows, gold claims columns, and an edge is a pair that
may be matched. `row_offsets` and `edge_offsets` are those of the span's rows, which count from 0; `matched` receives
the column of every row and holds -1 before.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from adjudge.scoring.kernels.base.arrays import (
    Floats,
    Integers,
    KernelError,
    as_scores,
    compiled,
    in_threads,
    spans,
)

Words = NDArray[np.uint64]
Columns = NDArray[np.int32]

NO_BITS = np.uint64(0)
ONE = np.uint64(1)
# A de Bruijn sequence: its product with a power of two has a different top byte for each of the 64 powers.
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
TOP_SIX = np.uint64(58)
BIT_INDEX = np.zeros(64, np.int64)
for _bit in range(64):
    BIT_INDEX[(int(DE_BRUIJN) << _bit) % 2**64 >> 58] = _bit


@compiled
def match_most(
    row_offsets: Integers, gold_counts: Integers, edge_offsets: Integers, golds: Columns, matched: Integers
) -> None:
    """Maximum cardinality: free columns in order, then an augmenting path from each row that found none.

    Paths are searched breadth first, over sets of 64 columns a word.
    """
    most_rows, most_words = 0, 0
    for problem in range(gold_counts.size):
        most_rows = max(most_rows, row_offsets[problem + 1] - row_offsets[problem])
        most_words = max(most_words, (gold_counts[problem] + 63) // 64)
    adjacent = np.empty(most_rows * most_words, np.uint64)
    free, alive, unseen = np.empty((3, most_words), np.uint64)
    row_of, came_from = np.empty(64 * most_words, np.int64), np.empty(64 * most_words, np.int64)
    queue = np.empty(most_rows, np.int64)
    for problem in range(gold_counts.size):
        first = row_offsets[problem]
        rows, words = row_offsets[problem + 1] - first, (gold_counts[problem] + 63) // 64
        adjacent[: rows * words] = NO_BITS
        for row in range(rows):
            for edge in range(edge_offsets[first + row], edge_offsets[first + row + 1]):
                adjacent[row * words + (golds[edge] >> 6)] |= ONE << np.uint64(golds[edge] & 63)
        free[:words], alive[:words] = ~NO_BITS, ~NO_BITS
        for row in range(rows):
            for word in range(words):
                open_ends = adjacent[row * words + word] & free[word]
                if open_ends:
                    free[word] &= ~(open_ends & (~open_ends + ONE))
                    column = 64 * word + _lowest_bit(open_ends)
                    matched[first + row], row_of[column] = column, row
                    break
        own = matched[first : first + rows]
        _augment(words, adjacent, free, alive, unseen, row_of, came_from, queue, own)


@compiled
def _lowest_bit(word: np.uint64) -> int:
    return int(BIT_INDEX[((word & (~word + ONE)) * DE_BRUIJN) >> TOP_SIX])


@compiled
def _augment(
    words: int,
    adjacent: Words,
    free: Words,
    alive: Words,
    unseen: Words,
    row_of: Integers,
    came_from: Integers,
    queue: Integers,
    matched: Integers,
) -> None:
    """Finds an augmenting path from every row without a column, or that there is none."""
    for start in range(matched.size):
        if matched[start] >= 0:
            continue
        unseen[:words] = alive[:words]
        queue[0] = start
        head, tail, row, end = 0, 1, start, -1
        while head < tail and end < 0:
            row = queue[head]
            head += 1
            for word in range(words):
                open_ends = adjacent[row * words + word] & free[word]
                if open_ends:
                    end = 64 * word + _lowest_bit(open_ends)
                    free[word] &= ~(ONE << np.uint64(end & 63))
                    break
                reached = adjacent[row * words + word] & unseen[word]
                unseen[word] &= ~reached
                while reached:
                    column = 64 * word + _lowest_bit(reached)
                    reached &= reached - ONE
                    came_from[column] = row
                    queue[tail] = row_of[column]
                    tail += 1
        if end < 0:
            # What a search in vain has seen will never lead to a free column.
            alive[:words] = unseen[:words]
        # Back along the path, every row moves on to the column that was reached from it.
        while end >= 0:
            matched[row], row_of[end], end = end, row, matched[row]
            row = came_from[end] if end >= 0 else -1


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

    questions: the predicted main claims and the number of gold main claims of each question.
    Raises KernelError for a weight or score that is negative, infinite or NaN, a negative count, or more claims scored
    above 0 than there are gold claims to match.
    """
    parent, score, weight, golds = _flatten(questions)
    gold_counts = np.array([gold for _, gold in questions], dtype=np.int64)
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


class ClaimPairs(msgspec.Struct, frozen=True):
    """The pairs of predicted and gold claims that may be matched, for P problems.

    Problem p has the predicted claims (rows) `row_offsets[p]` to `row_offsets[p + 1]` and `gold_counts[p]` gold
    claims. Row r may be matched with the gold claims `golds[edge_offsets[r] : edge_offsets[r + 1]]` (numbered
    from 0 in their problem, ascending).
    """

    row_offsets: Integers
    gold_counts: Integers
    edge_offsets: Integers
    golds: Columns

    @classmethod
    def from_matrices(cls, matrices: Sequence[ArrayLike]) -> "ClaimPairs":
        """From one matrix `[predicted, gold]` per problem: a pair may be matched if its entry is above 0 (NaN is not).

        Raises KernelError for what is not a matrix, or an infinite entry.
        """
        given = [as_scores(matrix, 2, f"problem {number}") for number, matrix in enumerate(matrices)]
        rows = np.array([matrix.shape[0] for matrix in given], dtype=np.int64)
        golds = np.array([matrix.shape[1] for matrix in given], dtype=np.int64)
        flat = np.concatenate([np.empty(0), *(matrix.ravel() for matrix in given)])
        counts = np.zeros(int(rows.sum()), np.int64)
        columns = np.empty(flat.size, np.int32)
        edges = _collect_edges(flat, rows, golds, counts, columns)
        return cls(_offsets(rows), golds, _offsets(counts), columns[:edges].copy())

    @property
    def predicted_counts(self) -> Integers:
        """Predicted claims of each problem, `[P]`."""
        return np.diff(self.row_offsets)


class Matching(msgspec.Struct, frozen=True):
    """One-to-one pairs of predicted and gold claims."""

    matched: Integers
    """the gold claim of each row, or -1; `[rows]`"""
    count: Integers
    """pairs of each problem, `[P]`"""


class OverlapScores(msgspec.Struct, frozen=True):
    """Scores of P problems; NaN where there is no gold claim."""

    precision: Floats
    """0 where nothing is predicted"""
    recall: Floats
    f1: Floats
    jaccard: Floats


def match_cardinality(pairs: ClaimPairs) -> Matching:
    """As many pairs as possible."""
    _validated(pairs)
    rows, edges = pairs.row_offsets, pairs.edge_offsets
    matched = np.full(int(rows[-1]), -1, np.int64)

    def match(span: tuple[int, int]) -> None:
        start, stop = span
        top, end = rows[start], rows[stop]
        golds = pairs.gold_counts[start:stop]
        match_most(rows[start : stop + 1] - top, golds, edges[top : end + 1], pairs.golds, matched[top:end])

    problems = pairs.gold_counts.size
    in_threads(match, spans(problems, 20 * (1 + pairs.golds.size // max(1, problems))))
    found = np.concatenate([[0], np.cumsum(matched >= 0)])
    return Matching(matched, found[rows[1:]] - found[rows[:-1]])


def coverage(pairs: ClaimPairs) -> OverlapScores:
    """Many-to-many: a claim counts as soon as it may be matched with any. Jaccard is that of all claims covered."""
    _validated(pairs)
    rows, golds = _covered(pairs.row_offsets, pairs.gold_counts, pairs.edge_offsets, pairs.golds)
    predicted, gold = pairs.predicted_counts, pairs.gold_counts
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(predicted > 0, rows / predicted, 0.0)
        recall = np.where(gold > 0, golds / gold, np.nan)
        jaccard = np.where(gold > 0, (rows + golds) / (predicted + gold), np.nan)
    return OverlapScores(np.where(gold > 0, precision, np.nan), recall, f1_of(precision, recall), jaccard)


def overlap(predicted: ArrayLike, gold: ArrayLike, common: ArrayLike) -> OverlapScores:
    """Precision, recall, F1 and Jaccard from the sizes of sets and of what they share, `[P]` each.

    Raises KernelError for shapes that differ, or more shared than there is.
    """
    sizes = [
        as_scores(size, 1, name)
        for size, name in ((predicted, "predicted"), (gold, "gold"), (common, "common"))
    ]
    if len({size.shape for size in sizes}) > 1:
        raise KernelError("predicted, gold and common: different numbers of problems")
    a, b, both = sizes
    if ((both < 0) | (both > np.minimum(a, b))).any():
        raise KernelError("common: must lie between 0 and the smaller of predicted and gold")
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(b > 0, np.where(a > 0, both / a, 0.0), np.nan)
        recall = np.where(b > 0, both / b, np.nan)
        jaccard = np.where(b > 0, both / (a + b - both), np.nan)
    return OverlapScores(precision, recall, f1_of(precision, recall), jaccard)


def _validated(pairs: ClaimPairs) -> ClaimPairs:
    rows, edges = pairs.row_offsets, pairs.edge_offsets
    sound = (
        rows.size == pairs.gold_counts.size + 1
        and edges.size == rows[-1] + 1
        and rows[0] == edges[0] == 0
        and edges[-1] == pairs.golds.size
        and bool(
            (np.diff(rows) >= 0).all() and (np.diff(edges) >= 0).all() and (pairs.gold_counts >= 0).all()
        )
    )
    if not sound:
        raise KernelError("pairs: the offsets do not match")
    if not _edges_fit(rows, pairs.gold_counts, edges, pairs.golds):
        raise KernelError("pairs: a gold claim that does not exist")
    return pairs


def _offsets(counts: Integers) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


@compiled
def _edges_fit(row_offsets: Integers, gold_counts: Integers, edge_offsets: Integers, golds: Columns) -> bool:
    for problem in range(gold_counts.size):
        lowest, highest = 0, 0
        # Whole numbers throughout, so that the loop runs in vector registers.
        for edge in range(edge_offsets[row_offsets[problem]], edge_offsets[row_offsets[problem + 1]]):
            lowest = min(lowest, golds[edge])
            highest = max(highest, golds[edge] + 1)
        if lowest < 0 or highest > gold_counts[problem]:
            return False
    return True


@compiled
def _collect_edges(flat: Floats, rows: Integers, golds: Integers, counts: Integers, columns: Columns) -> int:
    at, edges, row = 0, 0, 0
    for problem in range(rows.size):
        for _ in range(rows[problem]):
            before = edges
            for gold in range(golds[problem]):
                columns[edges] = gold
                # Without a branch: what is not kept is overwritten.
                edges += flat[at] > 0
                at += 1
            counts[row] = edges - before
            row += 1
    return edges


@compiled
def _covered(
    row_offsets: Integers, gold_counts: Integers, edge_offsets: Integers, golds: Columns
) -> tuple[Integers, Integers]:
    """Rows and gold claims with an edge, of each problem."""
    rows_covered = np.zeros(gold_counts.size, np.int64)
    golds_covered = np.zeros(gold_counts.size, np.int64)
    for problem in range(gold_counts.size):
        seen = np.zeros(gold_counts[problem], np.bool_)
        for row in range(row_offsets[problem], row_offsets[problem + 1]):
            rows_covered[problem] += edge_offsets[row + 1] > edge_offsets[row]
            for edge in range(edge_offsets[row], edge_offsets[row + 1]):
                seen[golds[edge]] = True
        golds_covered[problem] = seen.sum()
    return rows_covered, golds_covered
