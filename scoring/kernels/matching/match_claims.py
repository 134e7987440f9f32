"""Pairing predicted with gold claims, and the precision, recall and F1 of what was paired.

Many problems at once, in ragged (CSR) arrays. Two ways to pair one to one: greedily in order (LiveDRBench's lists), or
as many pairs as possible (Dr.Mi-Bench's planning). Nested claims follow LiveDRBench, Eq. 1.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import Floats, Integers, as_scores, spans
from adjudge.scoring.kernels.base.compiled import compiled, in_threads
from adjudge.scoring.kernels.base.errors import KernelError
from adjudge.scoring.kernels.matching.assignment import Columns, match_in_order, match_most
from adjudge.scoring.kernels.matching.nested_claims import Claim, NestedScores, f1_of, nested_scores

__all__ = [
    "Claim",
    "ClaimPairs",
    "Matching",
    "NestedScores",
    "OverlapScores",
    "count_common",
    "coverage",
    "match_cardinality",
    "match_greedy",
    "nested_scores",
    "overlap",
]


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

        Raises:
            KernelError: what is not a matrix, or an infinite entry.
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


def match_greedy(pairs: ClaimPairs) -> Matching:
    """Predicted claims in order, each with the first gold claim still free."""
    return _match(pairs, match_in_order, 2)


def match_cardinality(pairs: ClaimPairs) -> Matching:
    """As many pairs as possible."""
    return _match(pairs, match_most, 20)


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

    Raises:
        KernelError: shapes that differ, or more shared than there is.
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


def count_common(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike]
) -> tuple[Integers, Integers, Integers]:
    """Sizes of P pairs of sets of whole numbers and of what they share; repeated numbers count once.

    Raises:
        KernelError: different numbers of sets.
    """
    if len(first) != len(second):
        raise KernelError(f"{len(first)} sets against {len(second)}")
    sets = [[np.unique(np.asarray(numbers, dtype=np.int64)) for numbers in side] for side in (first, second)]
    offsets = [_offsets(np.array([numbers.size for numbers in side], dtype=np.int64)) for side in sets]
    flat = [np.concatenate([np.empty(0, np.int64), *side]) for side in sets]
    return np.diff(offsets[0]), np.diff(offsets[1]), _common(flat[0], offsets[0], flat[1], offsets[1])


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


Matcher = Callable[[Integers, Integers, Integers, Columns, Integers], None]


def _match(pairs: ClaimPairs, matcher: Matcher, work: int) -> Matching:
    """Runs a matcher over spans of problems; `work`: steps an edge takes, roughly."""
    _validated(pairs)
    rows, edges = pairs.row_offsets, pairs.edge_offsets
    matched = np.full(int(rows[-1]), -1, np.int64)

    def match(span: tuple[int, int]) -> None:
        start, stop = span
        top, end = rows[start], rows[stop]
        out = matched[top:end]
        offsets = rows[start : stop + 1] - top
        golds = pairs.gold_counts[start:stop]
        matcher(offsets, golds, edges[top : end + 1], pairs.golds, out)

    problems = pairs.gold_counts.size
    in_threads(match, spans(problems, work * (1 + pairs.golds.size // max(1, problems))))
    found = np.concatenate([[0], np.cumsum(matched >= 0)])
    return Matching(matched, found[rows[1:]] - found[rows[:-1]])


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


@compiled
def _common(first: Integers, first_offsets: Integers, second: Integers, second_offsets: Integers) -> Integers:
    """Elements shared by each pair of sorted runs without repetition."""
    common = np.zeros(first_offsets.size - 1, np.int64)
    for problem in range(common.size):
        i, j = first_offsets[problem], second_offsets[problem]
        while i < first_offsets[problem + 1] and j < second_offsets[problem + 1]:
            if first[i] == second[j]:
                common[problem] += 1
                i += 1
                j += 1
            elif first[i] < second[j]:
                i += 1
            else:
                j += 1
    return common
