"""Paired tests against scipy, statsmodels, theory and hostile input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.paired_tests import (
    ZeroMethod,
    holm,
    paired_t,
    sign_flip,
    student,
    wilcoxon,
)
from tests.nightly import quick_or_whole

SHAPES = ["normal", "discrete", "heavy", "constant shift", "missing"]


def make_scores(shape: str, systems: int, tasks: int) -> np.ndarray:
    rng = np.random.default_rng(systems * 1000 + tasks)
    if shape == "discrete":
        return rng.integers(0, 21, (systems, tasks)) / 2
    if shape == "heavy":
        return rng.standard_cauchy((systems, tasks))
    scores = rng.normal(50, 10, (systems, tasks))
    if shape == "constant shift":
        scores[1] = scores[0] + 64
    if shape == "missing":
        scores[rng.random(scores.shape) < 0.2] = np.nan
    return scores


def pairs_of(scores: np.ndarray):
    for number, (i, j) in enumerate(zip(*np.triu_indices(len(scores), 1), strict=True)):
        both = ~np.isnan(scores[i]) & ~np.isnan(scores[j])
        yield number, scores[i][both], scores[j][both]


@pytest.mark.filterwarnings("ignore:Precision loss occurred")
@pytest.mark.parametrize("shape", ["normal", "discrete", "heavy", "missing"])
@pytest.mark.parametrize("tasks", [3, 30, 500])
def test_paired_t_against_scipy(shape, tasks):
    scores = make_scores(shape, 5, tasks)
    ours = paired_t(scores, confidence=0.9)
    for number, x, y in pairs_of(scores):
        assert ours.n_used[number] == x.size
        if x.size < 2:
            assert np.isnan(ours.t[number]) and np.isnan(ours.p[number]) and np.isnan(ours.low[number])
            continue
        peer = stats.ttest_rel(x, y)
        interval = peer.confidence_interval(0.9)
        np.testing.assert_allclose(ours.t[number], peer.statistic, rtol=1e-10)
        np.testing.assert_allclose(ours.p[number], peer.pvalue, rtol=1e-9)
        np.testing.assert_allclose([ours.low[number], ours.high[number]], interval, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.cohens_d[number], peer.statistic / np.sqrt(x.size), rtol=1e-10)
        np.testing.assert_allclose(ours.sd_difference[number], np.std(x - y, ddof=1), rtol=1e-10)


@pytest.mark.parametrize("zero_method", ["wilcox", "pratt", "zsplit"])
@pytest.mark.parametrize("shape", ["normal", "discrete", "heavy", "missing"])
@pytest.mark.parametrize("tasks", [12, 49, 80, 1000])
def test_wilcoxon_against_scipy(shape, tasks, zero_method: ZeroMethod):
    scores = make_scores(shape, 4, tasks)
    ours = wilcoxon(scores, zero_method=zero_method)
    normal = wilcoxon(scores, zero_method=zero_method, method="asymptotic")
    for number, x, y in pairs_of(scores):
        peer = stats.wilcoxon(x, y, zero_method=zero_method, method="asymptotic")
        assert min(ours.w_plus[number], ours.w_minus[number]) == peer.statistic
        np.testing.assert_allclose(abs(normal.z[number]), abs(peer.zstatistic), rtol=1e-12)
        assert np.sign(normal.z[number]) == np.sign(ours.w_plus[number] - ours.w_minus[number])
        np.testing.assert_allclose(normal.p[number], peer.pvalue, rtol=1e-10)
        exact = stats.wilcoxon(x, y, zero_method=zero_method)
        untied = len(np.unique(np.abs(x - y))) == x.size and not (x == y).any()
        if ours.exact[number] and (untied or x.size <= 13):
            np.testing.assert_allclose(ours.p[number], exact.pvalue, rtol=1e-10)


def test_wilcoxon_exact_with_ties_against_all_sign_patterns():
    differences = np.array([1.0, 1.0, -2.0, 3.0, 3.0, 3.0, -4.0, 0.0, 5.0])
    magnitudes = np.abs(differences[differences != 0])
    ranks = stats.rankdata(magnitudes)
    patterns = (np.arange(2**ranks.size)[:, None] >> np.arange(ranks.size)) & 1
    sums = patterns @ ranks
    ours = wilcoxon([differences, np.zeros(9)])
    observed = ours.w_plus[0]
    expected = 2 * min((sums <= observed).mean(), (sums >= observed).mean())
    assert ours.exact[0]
    assert ours.p[0] == pytest.approx(expected, abs=1e-15)


def test_wilcoxon_distinguishes_neighbouring_doubles():
    step = np.nextafter(1.0, 2.0)
    ours = wilcoxon([[1.0, step, 5e-324, 1e100], [0.0, 0.0, 0.0, 0.0]])
    peer = wilcoxon([[2.0, 3.0, 1.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    tied = wilcoxon([[1.0, 1.0, 5e-324, 1e100], [0.0, 0.0, 0.0, 0.0]])
    assert ours.z[0] == peer.z[0]
    assert tied.z[0] > ours.z[0]


@settings(max_examples=quick_or_whole(40, 200))
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.just(2), st.integers(1, 60)),
        elements=st.one_of(
            st.floats(-1e150, 1e150), st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan, 5e-324, -1e-310])
        ),
    )
)
def test_wilcoxon_rank_sums_against_rankdata(scores):
    ours = wilcoxon(scores)
    difference = scores[0] - scores[1]
    kept = difference[~np.isnan(difference) & (difference != 0)]
    ranks = stats.rankdata(np.abs(kept))
    assert ours.n_used[0] == np.count_nonzero(~np.isnan(difference))
    assert ours.w_plus[0] == ranks[kept > 0].sum()
    assert ours.w_minus[0] == ranks[kept < 0].sum()
    assert np.isnan(ours.p[0]) if kept.size == 0 else 0 < ours.p[0] <= 1


def test_student_rebuilds_a_published_row():
    row = student(3.26, 3.26 / 6.52, 100)
    assert row.t == pytest.approx(6.52)
    assert row.cohens_d == pytest.approx(0.652)
    assert row.p == pytest.approx(2.9825464756330764e-09)


def test_holm_against_statsmodels():
    rng = np.random.default_rng(3)
    for size in (1, 2, 17, 300):
        p = np.round(rng.random(size) ** 3, 3)
        np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], atol=1e-15)


def test_holm_leaves_undefined_tests_out():
    adjusted = holm([0.01, np.nan, 0.04])
    np.testing.assert_allclose(adjusted, [0.02, np.nan, 0.04])


@pytest.mark.parametrize("missing", [False, True])
def test_sign_flip_against_all_sign_patterns(missing):
    rng = np.random.default_rng(8)
    scores = np.round(rng.normal(0, 1, (4, 12)), 1)
    scores[1] += 0.6
    if missing:
        scores[2, 3] = np.nan
    patterns = 1 - 2 * ((np.arange(2**12)[:, None] >> np.arange(12)) & 1)
    ours = sign_flip(scores, resamples=40_000, seed=5)
    for number, (i, j) in enumerate(zip(ours.first, ours.second, strict=True)):
        difference = scores[i] - scores[j]
        difference = difference[~np.isnan(difference)]
        sums = patterns[:, : difference.size] @ difference
        exact = (np.abs(sums) >= abs(difference.sum()) - 1e-9).mean()
        assert ours.p[number] == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 40_000) + 1e-4)
        assert ours.mean_difference[number] == pytest.approx(difference.mean())


def test_sign_flip_is_level_under_the_null():
    rng = np.random.default_rng(21)
    p = np.concatenate([sign_flip(rng.normal(0, 1, (2, 25)), resamples=199, seed=s).p for s in range(400)])
    assert 0.02 < (p <= 0.05).mean() < 0.09


def test_sign_flip_paths_agree():
    scores = np.random.default_rng(4).normal(0, 1, (6, 70))
    padded = np.column_stack([scores, np.full(6, 7.0)])
    holed = np.column_stack([scores, [np.nan, 7.0, 7.0, 7.0, 7.0, 7.0]])
    np.testing.assert_array_equal(sign_flip(padded, seed=9).p, sign_flip(holed, seed=9).p)


def test_results_do_not_depend_on_threads(monkeypatch):
    scores = make_scores("missing", 40, 333)
    complete = make_scores("normal", 40, 333)

    def everything():
        return [
            *(paired_t(scores).t, paired_t(scores).sd_difference, wilcoxon(scores).p),
            *(sign_flip(scores, resamples=3000).p, sign_flip(complete, resamples=3000).p),
        ]

    several = everything()
    monkeypatch.setattr("adjudge.scoring.kernels.base.arrays.available_threads", lambda: 1)
    for a, b in zip(several, everything(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_equal_systems_are_undefined_not_different():
    scores = np.array([[0.1, 0.2, 0.3]] * 2)
    assert np.isnan(paired_t(scores).t[0]) and paired_t(scores).mean_difference[0] == 0
    assert np.isnan(wilcoxon(scores).p[0]) and wilcoxon(scores).n_zero[0] == 3
    assert sign_flip(scores).p[0] == 1


def test_equal_differences_have_no_spread():
    scores = np.array([[0.1] * 7, [0.4] * 7])
    result = paired_t(scores)
    assert result.sd_difference[0] == 0 and result.t[0] == -np.inf and result.p[0] == 0


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e-3])
def test_differences_apart_by_rounding_are_equal(scale):
    rng = np.random.default_rng(0)
    one = rng.random(200)
    shifted = paired_t([scale * (one + 0.1), scale * one])
    assert shifted.sd_difference[0] == 0 and shifted.t[0] == np.inf and shifted.p[0] == 0
    other = (one + 0.3) - 0.3  # the same scores, each rounded twice
    assert (one != other).any()
    same = paired_t([scale * one, scale * other])
    assert same.mean_difference[0] == 0 and np.isnan(same.cohens_d[0]) and np.isnan(same.p[0])
    small = paired_t([scale * (one + 1e-9 * rng.random(200)), scale * one])
    assert small.sd_difference[0] > 0 and np.isfinite(small.t[0])


@pytest.mark.parametrize("shape", [(1, 5), (0, 5), (1, 0), (0, 0)])
def test_one_system_has_no_pairs(shape):
    scores = np.ones(shape)
    assert paired_t(scores).t.size == wilcoxon(scores).p.size == sign_flip(scores).p.size == 0


@pytest.mark.parametrize("scores", [np.full((3, 4), np.nan), np.empty((3, 0))])
def test_all_missing_is_undefined(scores):
    for result in (paired_t(scores), wilcoxon(scores), sign_flip(scores)):
        assert (result.n_used == 0).all() and np.isnan(result.p).all()


def test_one_task_gives_no_spread():
    result = paired_t([[1.0], [2.0]])
    assert result.mean_difference[0] == -1 and np.isnan(result.t[0]) and np.isnan(result.low[0])
    assert wilcoxon([[1.0], [2.0]]).p[0] == 1


@pytest.mark.parametrize(
    "bad", [[[np.inf, 1.0]], [[1e200, 1.0]], [1.0, 2.0], [["a", "b"]], [[1.0], [1.0, 2.0]]]
)
def test_bad_input_is_rejected(bad):
    for test in (paired_t, wilcoxon, sign_flip):
        with pytest.raises(KernelError):
            test(bad)


def test_bad_options_are_rejected():
    with pytest.raises(KernelError):
        paired_t(np.ones((2, 2)), confidence=1.0)
    with pytest.raises(KernelError):
        wilcoxon(np.ones((2, 2)), zero_method="drop")
    with pytest.raises(KernelError):
        wilcoxon(np.ones((2, 2)), method="exactly")
    with pytest.raises(KernelError):
        sign_flip(np.ones((2, 2)), resamples=0)
    with pytest.raises(KernelError):
        holm([0.5, 1.5])
