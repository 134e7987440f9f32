"""The frontier against its definition, pass@k against every choice of k, and hostile input."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.frontier import pareto_frontier, pass_at_k
from tests.nightly import quick_or_whole

VALUES = st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, float("nan")])


@settings(max_examples=quick_or_whole(60, 300))
@given(st.lists(st.tuples(VALUES, VALUES), max_size=12))
def test_frontier_against_its_definition(points):
    scores, costs = (np.array([point[side] for point in points]) for side in range(2))
    expected = [
        not np.isnan(s + c)
        and not any((t >= s and d <= c) and (t > s or d < c) for t, d in points if not np.isnan(t + d))
        for s, c in points
    ]
    assert pareto_frontier(scores, costs).tolist() == expected


def test_frontier_by_hand():
    on = pareto_frontier([0.5, 0.7, 0.7, 0.9, 0.6], [1, 2, 2, 9, 3])
    assert on.tolist() == [True, True, True, True, False] and on.dtype == np.bool_


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_against_every_choice(k):
    rng = np.random.default_rng(k)
    samples = rng.normal(0, 1, (3, 4, 7))
    samples[rng.random(samples.shape) < 0.3] = np.nan
    ours = pass_at_k(samples, k)
    for place in np.ndindex(3, 4):
        scored = samples[place][~np.isnan(samples[place])]
        assert ours.n_used[place] == scored.size
        if scored.size < k:
            assert np.isnan(ours.unbiased[place]) and np.isnan(ours.best_of_k[place])
            continue
        assert ours.unbiased[place] == pytest.approx(np.mean([max(some) for some in combinations(scored, k)]))
        assert ours.best_of_k[place] == scored[:k].max()


def test_pass_at_k_of_right_and_wrong():
    for n, right, k in [(10, 3, 5), (200, 1, 100), (1000, 2, 10)]:
        samples = np.zeros(n)
        samples[:right] = 1
        expected = 1 - comb(n - right, k) / comb(n, k)
        assert float(pass_at_k(samples, k).unbiased) == pytest.approx(expected, rel=1e-12)


def test_degenerate_input_is_handled():
    assert pareto_frontier([], []).size == 0
    assert pareto_frontier([np.nan], [1.0]).tolist() == [False]
    assert pareto_frontier([1.0] * 3, [1.0] * 3).all()
    assert np.isnan(pass_at_k(np.empty((2, 0)), 1).unbiased).all()
    assert pass_at_k(np.empty((0, 3, 4)), 2).unbiased.shape == (0, 3)
    assert np.isnan(pass_at_k([np.nan, np.nan], 1).best_of_k)
    np.testing.assert_allclose(pass_at_k(np.full((2, 5), 0.1), 3).unbiased, 0.1)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: pareto_frontier([1.0], [1.0, 2.0]), "1 scores with 2 costs"),
        (lambda: pareto_frontier([np.inf], [1.0]), "scores"),
        (lambda: pareto_frontier([1.0], [np.inf]), "costs"),
        (lambda: pass_at_k([1.0], 0), "k must be at least 1, not 0"),
        (lambda: pass_at_k(1.0, 1), "samples"),
        (lambda: pass_at_k([np.inf], 1), "samples"),
    ],
)
def test_bad_input_is_rejected_by_its_name(call, why):
    with pytest.raises(KernelError, match=why):
        call()
