"""Rank stability against scipy's tau-b, a literal reading, theory and hostile input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.resampling.rankings import leave_one_out
from tests.nightly import quick_or_whole


def make_scores(kind: str, systems: int = 12, tasks: int = 300) -> np.ndarray:
    rng = np.random.default_rng(systems + tasks)
    scores = rng.normal(5, 1, (systems, tasks)) + rng.normal(0, 0.05, (systems, 1))
    if kind == "halves":
        scores = np.round(scores * 2) / 2
    if kind == "tied":
        scores = np.round(scores)
        scores[3], scores[7] = scores[2][::-1], scores[2]
    if kind == "missing":
        scores[rng.random(scores.shape) < 0.2] = np.nan
    return scores


def mean_scores(scores: np.ndarray) -> np.ndarray:
    """Means rounded to 12 digits, so that equal ones are equal."""
    counts = np.count_nonzero(~np.isnan(scores), axis=1)
    sums = np.nansum(scores, axis=1)
    return np.round(np.divide(sums, counts, out=np.full(len(scores), np.nan), where=counts > 0), 10)


def ranks_of(means: np.ndarray) -> np.ndarray:
    return (means[:, None] < means[None, :]).sum(axis=1) + 1


@pytest.mark.parametrize("kind", ["normal", "halves", "tied", "missing"])
def test_leave_one_out_against_scipy(kind):
    scores = make_scores(kind)
    ours = leave_one_out(scores)
    full = mean_scores(scores)
    np.testing.assert_allclose(ours.means, full, atol=1e-9)
    own = best = worst = ranks_of(full)
    moved = np.zeros(len(full), int)
    for task in range(scores.shape[1]):
        means = mean_scores(np.delete(scores, task, axis=1))
        assert ours.tau[task] == pytest.approx(stats.kendalltau(full, means).statistic, abs=1e-12)
        signs = [np.sign(values[:, None] - values) for values in (full, means)]
        assert ours.kept[task] == np.array_equal(*signs)
        best, worst = np.minimum(best, ranks_of(means)), np.maximum(worst, ranks_of(means))
        moved += ranks_of(means) != own
    np.testing.assert_array_equal(ours.best_rank, best)
    np.testing.assert_array_equal(ours.worst_rank, worst)
    np.testing.assert_array_equal(ours.moved, moved)
    assert (np.diff(ours.means[ours.systems]) <= 1e-9).all()


@settings(max_examples=quick_or_whole(40, 200))
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(0, 6), st.integers(0, 6)),
        elements=st.sampled_from([0.0, 1.0, 2.0, 0.1, 0.7, np.nan]),
    )
)
def test_leave_one_out_handles_small_tables(scores):
    ours = leave_one_out(scores)
    ranked = np.flatnonzero(~np.isnan(mean_scores(scores)))
    assert sorted(ours.systems.tolist()) == ranked.tolist()
    assert (ours.best_rank[ranked] >= 1).all() and (ours.worst_rank <= len(ranked)).all()
    full = mean_scores(scores)[ranked]
    for task in range(scores.shape[1]):
        means = mean_scores(np.delete(scores, task, axis=1))[ranked]
        means = np.where(np.isnan(means), full, means)
        if len(ranked) < 2 or np.ptp(full) == 0 or np.ptp(means) == 0:
            assert np.isnan(ours.tau[task])
        else:
            assert ours.tau[task] == pytest.approx(stats.kendalltau(full, means).statistic, abs=1e-12)


def test_sums_in_a_different_order_tie():
    scores = np.array(
        [[0.1, 0.2, 0.3, 0.7], [0.7, 0.3, 0.2, 0.1], [0.3, 0.1, 0.7, 0.2], [0.0, 0.0, 0.0, 0.0]]
    )
    ours = leave_one_out(scores)
    assert not ours.kept.any()
    untouched = leave_one_out(np.vstack([scores[:1], scores[:1], scores[3:]]))
    assert untouched.kept.all() and untouched.best_rank.tolist() == [1, 1, 3]


@pytest.mark.parametrize("kind", ["normal", "tied", "missing"])
def test_results_do_not_depend_on_threads(kind, monkeypatch):
    scores = make_scores(kind, 60, 2000)
    several = leave_one_out(scores)
    monkeypatch.setattr("adjudge.scoring.kernels.base.arrays.available_threads", lambda: 1)
    one = leave_one_out(scores)
    for field in one.__struct_fields__:
        np.testing.assert_array_equal(getattr(several, field), getattr(one, field))


@pytest.mark.parametrize("shape", [(1, 5), (0, 5), (5, 0), (0, 0), (2, 1)])
def test_degenerate_shapes_are_handled(shape):
    ours = leave_one_out(np.ones(shape))
    assert np.isnan(ours.tau).all() and ours.tau.size == shape[1]


def test_all_missing_ranks_nobody():
    ours = leave_one_out(np.full((3, 4), np.nan))
    assert ours.systems.size == 0 and np.isnan(ours.means).all() and (ours.worst_rank == 0).all()


@pytest.mark.parametrize("scores", [[[np.inf]], [1.0]])
def test_bad_input_is_rejected(scores):
    with pytest.raises(KernelError):
        leave_one_out(scores)
