"""Confidence sequences against theory, the definition of the mixture, simulation and hostile input."""

import numpy as np
import pytest
from scipy import stats

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.confidence_sequences import LEAST, confidence_sequence
from benchmarks.calibration import (
    ERROR_RATE,
    RACE_OVERALL,
    heavy,
    normal,
    passed,
    sequential_row,
    skewed,
)


def log_bayes_factor(values: np.ndarray, planned: int, mean: float, mixture: float) -> float:
    """The log Bayes factor of effects mixed over N(0, mixture) against `mean`, given the mean of the planned tasks.

    The spread is integrated out by the right Haar prior: both hypotheses leave |matrix|**-1/2 * form**(-n / 2).
    """
    n = values.size
    covariance = np.eye(n) - 1.0 / planned  # of draws without replacement, given their mean
    residual = values - mean
    # A shift of the mean by an effect e (in spreads) shifts every expectation by e.
    forms = []
    for matrix in (covariance, covariance + mixture * np.ones((n, n))):
        _, log_determinant = np.linalg.slogdet(matrix)
        forms.append(-0.5 * log_determinant - n / 2 * np.log(residual @ np.linalg.solve(matrix, residual)))
    return float(forms[1] - forms[0])


@pytest.mark.parametrize(("judged", "planned"), [(10, 11), (12, 100), (40, 100), (900, 10_000)])
def test_ends_are_where_the_bayes_factor_reaches_its_bound(judged, planned):
    values = np.random.default_rng(judged).normal(0.3, 1, judged)
    found = confidence_sequence(values[None], planned, error_rate=0.01)
    odds = 2 * np.log(100)
    mixture = (odds + np.log(1 + odds)) / (planned / 2)
    for end in (found.low[0, -1], found.high[0, -1]):
        assert log_bayes_factor(values, planned, end, mixture) == pytest.approx(np.log(100), rel=1e-6)


def test_intervals_exceed_student_and_converge_to_the_mean():
    values = np.random.default_rng(1).normal(5, 2, (3, 60))
    found = confidence_sequence(values, 60)
    assert np.isinf(found.high[:, : LEAST - 1]).all() and not found.resolved[:, : LEAST - 1].any()
    assert found.low[:, -1] == pytest.approx(values.mean(axis=1)) and (found.low == found.high)[:, -1].all()
    wide = confidence_sequence(values, 10_000)
    student = stats.ttest_1samp(values[0], 0).confidence_interval(0.95)
    assert wide.low[0, -1] < student.low and wide.high[0, -1] > student.high
    assert (found.high - found.low)[0, 40] < (wide.high - wide.low)[0, 40]


def test_rows_and_moments_are_independent():
    values = np.random.default_rng(2).normal(0, 1, (4, 30))
    values[1, 4] = values[2, :3] = np.nan
    together = confidence_sequence(values, 50)
    for row in range(4):
        for end in (12, 30):
            alone = confidence_sequence(values[[row], :end], 50)
            assert alone.low[0].tolist() == together.low[row, :end].tolist()


def test_missing_difference_is_not_counted_as_a_task():
    values = np.random.default_rng(3).normal(0, 1, 30)
    holes = np.insert(values, [0, 7, 7, 30], np.nan)
    with_holes, without = confidence_sequence(holes[None], 54), confidence_sequence(values[None], 50)
    # The mixture is chosen by the planned tasks of all pairs, so intervals are alike, not equal.
    assert with_holes.n_used[0, -1] == 30 and with_holes.mean[0, -1] == pytest.approx(values.mean())
    assert with_holes.high[0, -1] == pytest.approx(without.high[0, -1], rel=0.02)
    assert confidence_sequence(holes[None], 34).high[0, -1] == pytest.approx(values.mean())


def test_scale_and_sign_do_not_matter():
    values = np.random.default_rng(4).normal(0.5, 1, (1, 40))
    found, scaled = confidence_sequence(values, 80), confidence_sequence(values * -1e6, 80)
    assert -scaled.low / 1e6 == pytest.approx(found.high, rel=1e-9)


def test_degenerate_differences_resolve_only_certainties():
    equal = confidence_sequence(np.zeros((1, 50)), 50)
    assert not equal.resolved.any() and equal.high[0, -1] == 0
    nothing = confidence_sequence(np.full((2, 50), np.nan), 50)
    assert not nothing.resolved.any() and np.isnan(nothing.mean).all() and np.isinf(nothing.high).all()
    constant = confidence_sequence(np.full((1, 50), 0.1), 50)
    assert constant.resolved[0].tolist() == [False] * (LEAST - 1) + [True] * (51 - LEAST)
    few = confidence_sequence([[1.0, 2.0, 4.0]], 3)
    assert few.resolved.tolist() == [[False, False, True]]
    assert confidence_sequence(np.empty((2, 0)), 5).resolved.shape == (2, 0)


@pytest.mark.parametrize(
    ("values", "planned", "options"),
    [
        ([1.0], 1, {}),
        ([[np.inf]], 1, {}),
        ([["x"]], 1, {}),
        ([[1.0, 2.0]], 1, {}),
        ([[1.0]], 1, {"error_rate": 0.0}),
    ],
)
def test_hostile_input_is_a_kernel_error(values, planned, options):
    with pytest.raises(KernelError):
        confidence_sequence(values, planned, **options)


@pytest.mark.parametrize("noise", [normal, skewed, heavy, passed])
def test_error_rate_holds_for_equal_systems(noise):
    """1,000 leaderboards of four equal systems, for which the error rate is largest."""
    row = sequential_row((0.0,) * 4, tasks=100, leaderboards=1_000, seed=1, noise=noise)
    assert row.errors <= ERROR_RATE / 2
    # The sequence is exact for normal noise; long tails shift means late, which seldom turns one round.
    assert row.misses <= {normal: ERROR_RATE, skewed: 0.07, heavy: 0.13, passed: 0.07}[noise]


def test_stopping_early_saves_two_fifths_of_the_questions():
    row = sequential_row(RACE_OVERALL, tasks=100, leaderboards=300, seed=1)
    assert row.saved >= 0.4 and row.errors <= ERROR_RATE and row.misses <= ERROR_RATE
