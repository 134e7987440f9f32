"""Matching against scipy and brute force, Eq. 1 against a literal reading, and hostile input."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.matching.match_claims import (
    Claim,
    ClaimPairs,
    coverage,
    match_cardinality,
    nested_scores,
    overlap,
)
from tests.nightly import quick_or_whole

SHAPES = [(50, 50), (1, 1), (1, 9), (9, 1), (30, 70), (70, 30), (3, 0), (0, 3), (0, 0), (130, 64), (64, 200)]


def make_matrices(kind: str, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    matrices = [rng.random(shape) for shape in SHAPES]
    if kind == "integer":
        return [np.floor(matrix * 4) for matrix in matrices]
    if kind == "sparse":
        return [matrix * (rng.random(matrix.shape) < 0.06) for matrix in matrices]
    return [np.ones_like(matrix) for matrix in matrices] if kind == "equal" else matrices


def split(pairs: ClaimPairs, matched: np.ndarray) -> list[np.ndarray]:
    return np.split(matched, pairs.row_offsets[1:-1])


def assert_one_to_one(matrix: np.ndarray, matched: np.ndarray) -> None:
    rows = np.flatnonzero(matched >= 0)
    assert np.unique(matched[rows]).size == rows.size
    assert (matrix[rows, matched[rows]] > 0).all()


@pytest.mark.parametrize("kind", ["continuous", "integer", "sparse", "equal"])
def test_matchings_against_scipy(kind):
    matrices = make_matrices(kind)
    pairs = ClaimPairs.from_matrices(matrices)
    most = match_cardinality(pairs)
    for number, matrix in enumerate(matrices):
        assert_one_to_one(matrix, split(pairs, most.matched)[number])
        graph = csr_array((matrix > 0).astype(np.int8))
        assert most.count[number] == np.count_nonzero(maximum_bipartite_matching(graph) >= 0)


@settings(max_examples=quick_or_whole(30, 150))
@given(
    st.lists(
        arrays.arrays(
            np.float64,
            st.tuples(st.integers(0, 5), st.integers(0, 5)),
            elements=st.sampled_from([0.0, -1.0, 0.5, 1.0, 1e-300, 7.25, np.nan, 1e12]),
        ),
        max_size=6,
    )
)
def test_matchings_against_every_assignment(matrices):
    pairs = ClaimPairs.from_matrices(matrices)
    most = match_cardinality(pairs)
    for number, matrix in enumerate(matrices):
        allowed = np.nan_to_num(matrix, nan=0.0) > 0
        rows, columns = allowed.shape
        assert_one_to_one(allowed, split(pairs, most.matched)[number])
        if rows <= 3:
            padded = np.pad(allowed, ((0, 0), (0, rows)))
            choices = permutations(range(columns + rows), rows)
            largest = max(np.count_nonzero(padded[np.arange(rows), list(choice)]) for choice in choices)
            assert most.count[number] == largest


def test_results_do_not_depend_on_threads(monkeypatch):
    rng = np.random.default_rng(5)
    matrices = [np.floor(rng.random((40, 40)) * 3) for _ in range(80)]
    pairs = ClaimPairs.from_matrices(matrices)
    several = match_cardinality(pairs).matched
    monkeypatch.setattr("adjudge.scoring.kernels.base.arrays.available_threads", lambda: 1)
    np.testing.assert_array_equal(match_cardinality(pairs).matched, several)


def test_coverage_is_many_to_many():
    scores = coverage(ClaimPairs.from_matrices([[[0, 1, 0, 1], [1, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]]]))
    assert (scores.precision[0], scores.recall[0], scores.f1[0]) == (0.75, 0.75, 0.75)


def test_overlap_of_sets():
    scores = overlap([3, 0, 1, 0], [3, 1, 1, 0], [2, 0, 1, 0])
    np.testing.assert_allclose(scores.precision, [2 / 3, 0, 1, np.nan])
    np.testing.assert_allclose(scores.recall, [2 / 3, 0, 1, np.nan])
    np.testing.assert_allclose(scores.f1, [2 / 3, 0, 1, np.nan])
    np.testing.assert_allclose(scores.jaccard, [0.5, 0, 1, np.nan])


def literal(claims, gold: int, measure: str, leaf: float) -> float:
    """Eq. 1 as it is written, one measure at a time."""
    worth = [
        claim.weight * claim.score * literal(claim.subclaims, claim.gold_subclaims, measure, 1.0)
        if claim.score
        else 0.0
        for claim in claims
    ]
    if measure == "precision":
        return sum(worth) / len(worth) if worth else leaf
    if measure == "strict_precision":
        return min(worth) if worth else leaf
    if gold == 0:
        return leaf
    if measure == "recall":
        return sum(worth) / gold
    hits = [value for claim, value in zip(claims, worth, strict=True) if claim.score]
    return min(hits) if len(hits) == gold else 0.0


CLAIMS = st.deferred(
    lambda: st.builds(
        lambda score, weight, subclaims, more: Claim(
            score, weight, tuple(subclaims), sum(bool(claim.score) for claim in subclaims) + more
        ),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from([0.5, 1.0, 2.0]),
        st.lists(CLAIMS, max_size=2),
        st.integers(0, 2),
    )
)


@settings(max_examples=quick_or_whole(40, 200))
@given(st.lists(st.tuples(st.lists(CLAIMS, max_size=3), st.integers(1, 3)), max_size=4))
def test_nested_scores_against_a_literal_reading(drawn):
    questions = [(claims, sum(bool(claim.score) for claim in claims) + more) for claims, more in drawn]
    ours = nested_scores(questions)
    for number, (claims, gold) in enumerate(questions):
        for measure in ("precision", "recall", "strict_precision", "strict_recall"):
            expected = literal(claims, gold, measure, 0.0)
            assert getattr(ours, measure)[number] == pytest.approx(expected)


def test_nested_scores_by_hand():
    half_right = Claim(1.0, subclaims=(Claim(1.0), Claim(0.0)), gold_subclaims=3)
    ours = nested_scores([([half_right, Claim(0.0)], 2), ([], 2), ([Claim(1.0, weight=3.0)], 1)])
    np.testing.assert_allclose(ours.precision, [0.25, 0, 3])
    np.testing.assert_allclose(ours.recall, [1 / 6, 0, 3])
    np.testing.assert_allclose(ours.f1, [0.2, 0, 3])
    np.testing.assert_allclose(ours.strict_precision, [0, 0, 3])
    np.testing.assert_allclose(ours.strict_recall, [0, 0, 3])


def test_unscored_claim_leaves_its_question_unscored():
    needed = Claim(1.0, subclaims=(Claim(None), Claim(1.0)), gold_subclaims=2)
    wrong = Claim(0.0, subclaims=(Claim(None),), gold_subclaims=1)
    ours = nested_scores(
        [([needed], 1), ([wrong, Claim(1.0)], 2), ([Claim(None), Claim(0.0)], 2), ([Claim(1.0)], 0)][:3]
    )
    np.testing.assert_allclose(ours.precision, [np.nan, 0.5, np.nan])
    np.testing.assert_allclose(ours.recall, [np.nan, 0.5, np.nan])
    np.testing.assert_allclose(ours.strict_precision, [np.nan, 0, np.nan])
    np.testing.assert_allclose(ours.strict_f1, [np.nan, 0, np.nan])


def test_missing_gold_is_undefined_and_no_questions_are_fine():
    ours = nested_scores([([], 0), ([Claim(0.0)], 0)])
    assert np.isnan([ours.precision, ours.recall, ours.f1, ours.strict_f1]).all()
    assert nested_scores([]).f1.size == 0
    empty = ClaimPairs.from_matrices([])
    assert match_cardinality(empty).matched.size == coverage(empty).f1.size == 0


def test_deep_nesting_needs_no_recursion():
    claim = Claim(1.0)
    for _ in range(20_000):
        claim = Claim(1.0, subclaims=(claim,), gold_subclaims=1)
    assert nested_scores([([claim], 1)]).f1[0] == 1


@pytest.mark.parametrize(
    "question",
    [
        ([Claim(1.0), Claim(1.0)], 1),
        ([Claim(1.0, subclaims=(Claim(1.0),))], 1),
        ([Claim(-0.5)], 1),
        ([Claim(float("nan"))], 1),
        ([Claim(1.0, weight=float("inf"))], 1),
        ([Claim(1.0, gold_subclaims=-1)], 1),
        ([], -1),
    ],
)
def test_nested_scores_rejects_bad_input(question):
    with pytest.raises(KernelError):
        nested_scores([question])


def test_bad_input_is_rejected():
    good = ClaimPairs.from_matrices([np.ones((2, 2))])
    with pytest.raises(KernelError):
        ClaimPairs.from_matrices([[[np.inf]]])
    with pytest.raises(KernelError):
        ClaimPairs.from_matrices([[1.0, 2.0]])
    for bad in (
        ClaimPairs(good.row_offsets, good.gold_counts - 1, good.edge_offsets, good.golds),
        ClaimPairs(good.row_offsets, good.gold_counts, good.edge_offsets[:-1], good.golds),
        ClaimPairs(good.row_offsets[::-1], good.gold_counts, good.edge_offsets, good.golds),
    ):
        for match in (match_cardinality, coverage):
            with pytest.raises(KernelError):
                match(bad)
    with pytest.raises(KernelError):
        overlap([1], [1], [2])
    with pytest.raises(KernelError):
        overlap([1, 2], [1], [1])
