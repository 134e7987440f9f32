"""Bradley and Terry's strengths against fits by scipy, by hand, and where they do not exist."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import expit

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.strengths import bradley_terry, win_shares
from tests.arenas import fitted
from tests.nightly import quick_or_whole


def tournament(seed, systems=7, games=6, ties=0.2):
    """Wins of all pairs under known strengths, with ties as halves."""
    draw = np.random.default_rng(seed)
    theta = draw.normal(0, 1, systems)
    wins = np.zeros((systems, systems))
    for i in range(systems):
        for j in range(i):
            for _ in range(draw.integers(1, games)):
                won = 0.5 if draw.random() < ties else float(draw.random() < expit(theta[i] - theta[j]))
                wins[i, j] += won
                wins[j, i] += 1 - won
    return wins


@pytest.mark.parametrize("prior", [0.0, 0.01, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(5))
def test_strengths_against_scipy(seed, prior):
    wins = (
        tournament(seed) + (np.ones((7, 7)) - np.eye(7)) * 0.5
    )  # so that everybody has won against everybody
    found = bradley_terry(wins, prior=prior)
    assert found.strength == pytest.approx(fitted(wins, prior), abs=1e-8)
    assert found.strength.mean() == pytest.approx(0, abs=1e-14)
    assert found.n_used == pytest.approx(wins.sum(0) + wins.sum(1) - 2 * np.diag(wins))


def test_strengths_of_two_by_hand():
    wins = [[0, 3], [1, 0]]
    assert bradley_terry(wins, prior=0).strength == pytest.approx([np.log(3) / 2, -np.log(3) / 2], abs=1e-12)
    assert win_shares(bradley_terry(wins, prior=0)) == pytest.approx([0.75, 0.25], abs=1e-12)


def test_strengths_of_a_full_round_expect_its_wins():
    wins = tournament(3, games=2, ties=0.4) * 2 + 1
    np.fill_diagonal(wins, 0)
    wins /= wins + wins.T + np.eye(7)
    found = bradley_terry(wins, prior=0)
    assert win_shares(found) == pytest.approx(wins.sum(1) / 6, abs=1e-10)


def test_strengths_of_one_that_won_all_are_finite():
    wins = [[0, 5, 5], [0, 0, 2], [0, 3, 0]]
    found = bradley_terry(wins)
    assert found.strength == pytest.approx(fitted(wins, 1.0), abs=1e-8)
    assert found.strength.argmax() == 0 and found.strength[0] < 6
    assert np.isnan(bradley_terry(wins, prior=0).strength).all()


def test_strengths_without_maximum_are_missing_there_only():
    wins = np.zeros((6, 6))
    wins[0, 1] = 4  # never lost
    wins[2, 3], wins[3, 2] = 3, 1
    wins[4, 4] = 7  # against itself: nothing
    found = bradley_terry(wins, prior=0)
    assert found.component.tolist() == [0, 0, 2, 2, 4, 5]
    assert np.isnan(found.strength[[0, 1, 4, 5]]).all()
    assert found.strength[2:4] == pytest.approx([np.log(3) / 2, -np.log(3) / 2])
    assert found.n_used.tolist() == [4, 4, 4, 4, 0, 0]
    shares = win_shares(bradley_terry(wins))
    assert np.isnan(shares[4:]).all() and shares[0] > 0.5 > shares[1]


def test_strengths_of_components_have_mean_zero_each():
    wins = np.zeros((5, 5))
    wins[0, 1] = wins[1, 2] = wins[3, 4] = 3
    found = bradley_terry(wins)
    assert found.component.tolist() == [0, 0, 0, 3, 3]
    assert found.strength[:3].sum() == pytest.approx(0) == found.strength[3:].sum()


def test_strengths_of_many_tournaments_are_those_of_each():
    many = np.stack([tournament(seed, systems=9) for seed in range(300)])
    found = bradley_terry(many.reshape(3, 100, 9, 9))
    assert found.strength.shape == (3, 100, 9)
    for at in range(0, 300, 37):
        alone = bradley_terry(many[at])
        assert found.strength.reshape(300, 9)[at].tolist() == alone.strength.tolist()
        assert found.n_used.reshape(300, 9)[at].tolist() == alone.n_used.tolist()


@settings(max_examples=quick_or_whole(60, 300))
@given(
    st.lists(st.sampled_from([0, 0, 0.5, 1, 2, 1e-6, 1e9, float("nan")]), min_size=25, max_size=25),
    st.sampled_from([1e-6, 1.0, 1e9]),
)
@example(  # Newton's first step leads to -850
    [0, 1e9, 1e9, 0.5, 0, 0, 0, 1e-6, 0, 0, 0.5, 2, 0, 1e9, 0, 0, 1, 1, 0, 0.5, 2, 2, 0, 1, 0], 1e-6
)
def test_strengths_with_a_prior_are_at_the_maximum(counts, prior):
    wins = np.array(counts).reshape(5, 5)
    found = bradley_terry(wins, prior=prior)
    np.fill_diagonal(wins, 0)
    wins = np.nan_to_num(wins)
    games = wins + wins.T
    compared = games.sum(1) > 0
    assert (np.isfinite(found.strength) == compared).all()
    # At the maximum, the wins that the strengths expect are those there were, up to rounding.
    for first in set(found.component[compared].tolist()):
        of = found.component == first
        theta = found.strength[of]
        shift = optimize.brentq(
            lambda by, theta=theta: (0.5 - expit(theta + by)).sum(), -200, 200, xtol=1e-12
        )
        inside = np.ix_(of, of)
        chance = expit(theta[:, None] - theta[None, :])
        slope = wins[inside].sum(1) - (games[inside] * chance).sum(1) + prior * (0.5 - expit(theta + shift))
        scale = (games[inside] * chance * (1 - chance)).sum(1) + prior * expit(theta) * expit(-theta)
        assert np.abs(slope).max() < 1e-8 * max(1.0, scale.max(), games.max())


def test_strengths_relabelled_are_the_same():
    wins = tournament(1)
    order = np.random.default_rng(0).permutation(7)
    found = bradley_terry(wins[np.ix_(order, order)])
    assert found.strength == pytest.approx(bradley_terry(wins).strength[order], abs=1e-10)


@pytest.mark.parametrize(
    ("wins", "prior", "says"),
    [
        ([[0, 1, 2], [1, 0, 2]], 1.0, "as many rows as columns"),
        ([1.0, 2.0], 1.0, "dimensions"),
        ([[0, -1], [1, 0]], 1.0, "-1"),
        ([[0, 1e10], [1, 0]], 1.0, "1e"),
        ([[0, 1e-9], [1, 0]], 1.0, "1e-09"),
        ([[0, float("inf")], [1, 0]], 1.0, "infinite"),
        ([[0, 1], [1, 0]], -1.0, "prior"),
        ([[0, 1], [1, 0]], float("nan"), "prior"),
        ("text", 1.0, "wins"),
    ],
)
def test_strengths_refuse_what_cannot_be_counts(wins, prior, says):
    with pytest.raises(KernelError, match=says):
        bradley_terry(wins, prior=prior)


def test_strengths_of_nobody_and_of_one():
    assert bradley_terry(np.zeros((0, 0))).strength.size == 0
    assert np.isnan(bradley_terry([[3.0]]).strength).all()
    assert bradley_terry(np.zeros((0, 4, 4))).strength.shape == (0, 4)
