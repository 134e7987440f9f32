"""Correlations against pandas and scipy, against exact arithmetic, against itself, and on degenerate input."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adjudge.scoring.kernels.agreement.correlations import (
    ABSENT,
    FEW,
    Coefficient,
    Correlations,
    coded,
    correlations,
    sorted_items,
)
from adjudge.scoring.kernels.base.arrays import KernelError
from tests.nightly import quick_or_whole

Floats = npt.NDArray[np.float64]
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")


def _ratings(kind: str, raters: int, items: int, missing: float, seed: int = 3) -> Floats:
    """Raters who agree somewhat. Mixed: every second one in halves of 0 to 10, and some with many ties."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=items) + generator.normal(0.0, 1.5, (raters, items))
    halves = np.clip(np.rint(10.0 + 4.0 * scores), 0, 20) / 2.0
    tied = np.rint(scores * 40.0) / 40.0
    if kind == "few":
        scores = halves
    if kind == "tied":
        scores = tied
    if kind == "mixed":
        scores[::2] = halves[::2]
        scores[1::4] = tied[1::4]
    scores[generator.random((raters, items)) < missing] = np.nan
    return np.asarray(scores, dtype=np.float64)


def _of(result: Correlations, coefficient: Coefficient) -> Floats:
    matrix: Floats | None = getattr(result, coefficient)
    assert matrix is not None
    return matrix


@pytest.mark.parametrize("kind", ["continuous", "few", "tied", "mixed"])
@pytest.mark.parametrize("missing", [0.0, 0.05, 0.6])
@pytest.mark.parametrize("items", [5, 70, 1_500])
def test_correlations_against_pandas(kind: str, missing: float, items: int) -> None:
    scores = _ratings(kind, 7, items, missing)
    result = correlations(scores)
    present = ~np.isnan(scores)
    assert (result.n_used == present.astype(int) @ present.T).all()
    for coefficient in COEFFICIENTS:
        theirs = pd.DataFrame(scores.T).corr(method=coefficient, min_periods=2).to_numpy()
        ours = _of(result, coefficient)
        assert (ours == ours.T).all() | np.isnan(ours).any()
        assert (np.isnan(ours) == ~result.defined).all()
        both = result.defined & ~np.isnan(theirs)
        assert both.sum() >= 0.9 * result.defined.sum()
        np.testing.assert_allclose(ours[both], theirs[both], atol=1e-12)


@pytest.mark.parametrize("items", [1_023, 1_024, 1_025, 20_000])
def test_long_rankings_against_scipy(items: int) -> None:
    """Across the borders of the words and chapters that count discordant pairs."""
    scores = _ratings("continuous", 2, items, missing=0.0)
    result = correlations(scores)
    assert _of(result, "kendall")[0, 1] == pytest.approx(stats.kendalltau(*scores).statistic, abs=1e-12)
    assert _of(result, "spearman")[0, 1] == pytest.approx(stats.spearmanr(*scores).statistic, abs=1e-12)


small = st.lists(st.integers(-2, 2) | st.none(), min_size=6, max_size=6)


@settings(max_examples=quick_or_whole(40, 200))
@given(small, small)
def test_ranks_against_their_definitions(x: list[int | None], y: list[int | None]) -> None:
    """Tau-b by looking at every pair, rho from fractions: whichever path computes them."""
    raters = np.array([[np.nan if v is None else v for v in row] for row in (x, y)], dtype=np.float64)
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    signs = [(np.sign(a - c), np.sign(b - d)) for (a, b), (c, d) in combinations(pairs, 2)]
    untied_x, untied_y = sum(s != 0 for s, _ in signs), sum(s != 0 for _, s in signs)
    wide = np.concatenate([raters, np.full((2, 3 * FEW), np.nan)], axis=1)
    wide = np.concatenate([wide, [np.arange(wide.shape[1], dtype=np.float64)]])
    wide[2, :6] = np.nan
    for scores in (raters, wide):
        result = correlations(scores)
        assert result.n_used[0, 1] == len(pairs)
        assert result.defined[0, 1] == (untied_x > 0 and untied_y > 0)
        if not result.defined[0, 1]:
            continue
        tau = sum(s * t for s, t in signs) / np.sqrt(untied_x * untied_y)
        assert _of(result, "kendall")[0, 1] == pytest.approx(tau, abs=1e-14)
        centred = []
        for side in zip(*pairs, strict=True):
            ranks = [Fraction(sum(b < a for b in side) * 2 + side.count(a) + 1, 2) for a in side]
            centred.append([rank - Fraction(len(side) + 1, 2) for rank in ranks])
        top = sum(a * b for a, b in zip(*centred, strict=True))
        bottom = sum(a * a for a in centred[0]) * sum(b * b for b in centred[1])
        assert _of(result, "spearman")[0, 1] == pytest.approx(float(top) / float(bottom) ** 0.5, abs=1e-14)


def test_table_and_walk_agree() -> None:
    """The same ratings, once few-valued, once with a tail of further values that only a third rater shares."""
    few = _ratings("few", 4, 300, missing=0.1)
    tail = np.full((4, 3 * FEW), np.nan)
    third = np.full((1, 300 + 3 * FEW), np.nan)
    third[0, 300:] = np.arange(3 * FEW)
    for rater in range(4):
        tail[rater, rater * 20 : rater * 20 + FEW + 8 - 20 * (rater > 2)] = (
            np.arange(FEW + 8 - 20 * (rater > 2)) * 0.1
        )
    many = np.concatenate([few, tail], axis=1)
    assert (coded(many).groups[:3] > FEW).all()
    table = correlations(few)
    walk = correlations(np.where(np.arange(many.shape[1]) < 300, many, np.nan))
    for coefficient in COEFFICIENTS:
        np.testing.assert_allclose(_of(walk, coefficient), _of(table, coefficient), atol=1e-13)


@pytest.mark.parametrize("threads", [2, 7])
@pytest.mark.parametrize("kind", ["continuous", "few", "mixed"])
def test_threads_change_nothing(threads: int, kind: str) -> None:
    scores = _ratings(kind, 9, 400, missing=0.05)
    one, many = correlations(scores, threads=1), correlations(scores, threads=threads)
    for coefficient in COEFFICIENTS:
        np.testing.assert_array_equal(_of(one, coefficient), _of(many, coefficient))


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@pytest.mark.parametrize("kind", ["continuous", "few", "mixed"])
def test_one_coefficient_alone_is_the_same(coefficient: Coefficient, kind: str) -> None:
    scores = _ratings(kind, 5, 200, missing=0.3)
    every, alone = correlations(scores), correlations(scores, coefficients=[coefficient])
    np.testing.assert_allclose(_of(alone, coefficient), _of(every, coefficient), atol=1e-14)
    np.testing.assert_array_equal(alone.n_used, every.n_used)
    np.testing.assert_array_equal(alone.defined, every.defined)
    assert [getattr(alone, name) is None for name in COEFFICIENTS] == [
        name != coefficient for name in COEFFICIENTS
    ]


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e130])
def test_pearson_survives_offset_and_scale(offset: float, scale: float) -> None:
    generator = np.random.default_rng(0)
    raters = np.round(generator.normal(size=(3, 500)), 3)
    plain = _of(correlations(raters), "pearson")
    moved = _of(correlations((raters + offset) * scale), "pearson")
    np.testing.assert_allclose(moved, plain, atol=1e-10 if offset < 1e9 else 1e-3)


def test_pearson_where_two_raters_share_a_corner_of_their_items() -> None:
    """The common items lie far from each rater's mean: a one-pass variance would cancel."""
    generator = np.random.default_rng(1)
    scores = generator.normal(size=(2, 400)) * 1e6
    scores[0, 200:300] = np.nan
    scores[1, 300:] = np.nan
    scores[:, :200] = 3e7 + generator.normal(size=(2, 200)) * 1e-2
    expected = np.corrcoef(scores[:, :200] - 3e7)[0, 1]
    assert _of(correlations(scores), "pearson")[0, 1] == pytest.approx(expected, abs=1e-6)


# Degenerate input


def test_raters_constant_on_common_items_are_undefined() -> None:
    generator = np.random.default_rng(2)
    scores = generator.normal(size=(3, 120))
    scores[0, :60] = 0.1 + 0.2
    scores[1, 60:] = np.nan
    result = correlations(scores)
    assert result.defined.tolist() == [[True, False, True], [False, True, True], [True, True, True]]
    for coefficient in COEFFICIENTS:
        assert np.isnan(_of(result, coefficient)[0, 1])


@pytest.mark.parametrize("values", [FEW - 1, FEW, FEW + 1])
def test_perfect_agreement_and_disagreement_are_exact(values: int) -> None:
    steps = np.repeat(np.arange(values, dtype=np.float64), 2)
    result = correlations([steps, steps * 3.0 - 7.0, -steps])
    for coefficient in COEFFICIENTS:
        expected = [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
        np.testing.assert_allclose(_of(result, coefficient), expected, atol=1e-14)
        assert (np.abs(_of(result, coefficient)) <= 1.0).all()


def test_raters_without_common_items_are_undefined() -> None:
    scores = np.array(
        [[1.0, 2.0, np.nan, np.nan], [np.nan, np.nan, 1.0, 2.0], [1.0, np.nan, 3.0, np.nan], [np.nan] * 4]
    )
    result = correlations(scores)
    assert result.n_used.tolist() == [[2, 0, 1, 0], [0, 2, 1, 0], [1, 1, 2, 0], [0, 0, 0, 0]]
    assert result.defined.tolist() == np.diag([True, True, True, False]).tolist()


@pytest.mark.parametrize(
    "scores", [np.ones((2, 5)), np.full((2, 5), np.nan), np.empty((2, 0)), [[1.0], [2.0]]]
)
def test_constant_or_missing_scores_are_undefined(scores: npt.ArrayLike) -> None:
    result = correlations(scores)
    assert not result.defined.any()
    for coefficient in COEFFICIENTS:
        assert np.isnan(_of(result, coefficient)).all()


def test_one_rater_agrees_with_itself() -> None:
    result = correlations([[3.0, 1.0, 2.0]])
    assert (result.n_used.tolist(), result.defined.tolist()) == ([[3]], [[True]])
    assert _of(result, "kendall").tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("scores", "coefficients", "message"),
    [
        ([1.0, 2.0], COEFFICIENTS, "dimensions"),
        ([[1.0, np.inf]], COEFFICIENTS, "infinite"),
        ([["a"]], COEFFICIENTS, "numbers"),
        (np.empty((0, 3)), COEFFICIENTS, "no raters"),
        ([[1.0, 2.0]], ["pearson", "cosine"], "cosine"),
        ([[1.0, 2.0]], [], "expected some"),
    ],
)
def test_unusable_input_is_a_kernel_error(
    scores: npt.ArrayLike, coefficients: list[Coefficient], message: str
) -> None:
    with pytest.raises(KernelError, match=message):
        correlations(scores, coefficients=coefficients)


# Codes


@pytest.mark.parametrize("distinct", [1, FEW, FEW + 1, 500])
def test_codes_number_the_distinct_values(distinct: int) -> None:
    generator = np.random.default_rng(distinct)
    pool = np.unique(np.append(generator.normal(size=600), [0.0, -0.0]))[:distinct]
    scores = np.concatenate([pool, generator.choice(pool, 300), [np.nan] * 40])
    generator.shuffle(scores)
    result = coded(scores[None, :])
    missing = np.isnan(scores)
    assert result.groups.tolist() == [distinct]
    assert (result.codes[0][missing] == ABSENT).all()
    assert (result.codes[0][~missing] == np.searchsorted(pool, scores[~missing])).all()
    assert bool(result.few_valued[0]) == (distinct <= FEW)
    order = sorted_items(result.codes[0], distinct)
    assert (np.diff(scores[order]) >= 0.0).all()
    assert sorted(order.tolist()) == np.flatnonzero(~missing).tolist()
