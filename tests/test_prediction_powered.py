"""Prediction-powered means against ppi-python, regression, simulation and degenerate input."""

import numpy as np
import pytest
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from scipy import stats

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.corrections import powered_differences, powered_means
from benchmarks.calibration import powered_row


def sample(tasks: int, labels: int, correlation: float = 0.8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One row each: a judge's scores of every task, and human scores of the first ones."""
    rng = np.random.default_rng(seed)
    judge = rng.normal(5, 1, (1, tasks))
    human = 3 + correlation * judge + np.sqrt(1 - correlation**2) * rng.normal(0, 1, (1, tasks))
    human[:, labels:] = np.nan
    return judge, human


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("labels", [8, 200, 1500])
def test_given_power_against_ppi_python(power, labels):
    judge, human = sample(4000, labels, seed=labels)
    parts = human[0, :labels], judge[0, :labels], judge[0, labels:]
    ours = powered_means(judge, human, power=power)
    assert ours.estimate[0] == pytest.approx(ppi_mean_pointestimate(*parts, lam=power).item(), rel=1e-12)
    low, high = (side.item() for side in ppi_mean_ci(*parts, alpha=0.05, lam=power))
    # Theirs divides by n and is normal; ours divides by n - 1 and uses Student's t.
    theirs = (high - low) / 2 / stats.norm.ppf(0.975)
    rest = power**2 * np.var(judge[0, labels:]) / (4000 - labels)
    corrected = np.sqrt((theirs**2 - rest) * labels / (labels - 1) + rest * (4000 - labels) / (3999 - labels))
    assert ours.standard_error[0] == pytest.approx(corrected, rel=1e-9)
    assert ours.high[0] - ours.estimate[0] >= theirs * stats.norm.ppf(0.975)


def test_tuned_power_against_ppi_python():
    judge, human = sample(40_000, 8_000)
    parts = human[0, :8_000], judge[0, :8_000], judge[0, 8_000:]
    ours = powered_means(judge, human)
    low, high = (side.item() for side in ppi_mean_ci(*parts, alpha=0.05))
    assert ours.estimate[0] == pytest.approx(ppi_mean_pointestimate(*parts).item(), abs=5e-5)
    assert (ours.low[0], ours.high[0]) == pytest.approx((low, high), abs=2e-4)
    given = ppi_mean_pointestimate(*parts, lam=ours.power[0]).item()
    assert ours.estimate[0] == pytest.approx(given, rel=1e-12)


def test_tuned_estimate_equals_the_regression_prediction():
    judge, human = sample(60, 12, seed=3)
    line = stats.linregress(judge[0, :12], human[0, :12])
    ours = powered_means(judge, human)
    assert ours.estimate[0] == pytest.approx(line.intercept + line.slope * judge.mean(), rel=1e-12)
    assert ours.power[0] == pytest.approx(line.slope / (1 + 12 / 48), rel=1e-12)


def test_labels_alone_give_the_student_interval():
    judge, human = sample(50, 9, seed=4)
    ours = powered_means(judge, human, power=0.0, level=0.9)
    known = stats.ttest_1samp(human[0, :9], 0).confidence_interval(0.9)
    assert (ours.low[0], ours.high[0]) == pytest.approx((known.low, known.high), rel=1e-12)


def test_differences_are_paired_on_common_tasks():
    rng = np.random.default_rng(5)
    judge, human = rng.normal(0, 1, (3, 40)), rng.normal(0, 1, (3, 40))
    judge[0, 3], human[1, 5], human[:, 20:] = np.nan, np.nan, np.nan
    ours = powered_differences(judge, human)
    for pair, (one, other) in enumerate([(0, 1), (0, 2), (1, 2)]):
        alone = powered_means(judge[[one]] - judge[[other]], human[[one]] - human[[other]])
        for name in ("estimate", "low", "high", "power", "n_labelled", "n_unlabelled"):
            assert getattr(ours, name)[pair] == getattr(alone, name)[0]
    assert ours.n_labelled.tolist() == [18, 19, 19]


def test_estimates_are_on_the_scale_of_the_human_ratings():
    judge, human = sample(80, 15, seed=6)
    ours, scaled = powered_means(judge, human), powered_means(judge * 100 - 7, human)
    assert (scaled.estimate[0], scaled.low[0]) == pytest.approx((ours.estimate[0], ours.low[0]), rel=1e-9)


def test_degenerate_labels_are_undefined_or_labels_only():
    judge = np.arange(24.0).reshape(4, 6)
    human = np.full((4, 6), np.nan)
    human[1, 0] = 5.0
    human[2, :2] = 5.0, 7.0
    human[3] = np.arange(6)
    ours = powered_means(judge, human)
    assert np.isnan(ours.estimate[0]) and np.isnan(ours.low[0])
    assert ours.estimate[1] == 5.0 and np.isnan(ours.high[1])
    assert ours.estimate[2] == 6.0 and ours.low[2] < 0 and ours.power[2] == 0
    assert ours.estimate[3] == 2.5 and ours.power[3] == 0 and ours.n_unlabelled[3] == 0
    constant = powered_means(np.full((1, 9), 0.1), [[1.0, 2, 3, 4, 5, np.nan, np.nan, np.nan, np.nan]])
    assert constant.power[0] == 0 and constant.estimate[0] == 3
    equal = powered_means([[1.0, 2, 3, 4, 5]], [[0.1, 0.1, 0.1, np.nan, np.nan]])
    assert equal.low[0] == equal.high[0] == pytest.approx(0.1)
    empty = powered_means(np.empty((2, 0)), np.empty((2, 0)))
    assert np.isnan(empty.estimate).all() and empty.n_labelled.tolist() == [0, 0]
    assert powered_differences(judge[:1], human[:1]).estimate.shape == (0,)
    unjudged = powered_means([[np.nan, 1.0, 2.0]], [[3.0, 4.0, np.nan]])
    assert unjudged.n_labelled[0] == 1 and unjudged.estimate[0] == 4.0


@pytest.mark.parametrize(
    ("judge", "human", "options"),
    [
        ([[1.0, 2.0]], [[1.0]], {}),
        ([1.0], [1.0], {}),
        ([[np.inf]], [[1.0]], {}),
        ([[1.0]], [["x"]], {}),
        ([[1.0]], [[1.0]], {"level": 1.0}),
        ([[1.0]], [[1.0]], {"power": float("nan")}),
    ],
)
def test_hostile_input_is_a_kernel_error(judge, human, options):
    for kernel in (powered_means, powered_differences):
        with pytest.raises(KernelError):
            kernel(judge, human, **options)


def test_intervals_cover_and_are_a_quarter_narrower():
    """4,000 data sets of 100 tasks, 10 of them labelled, correlation 0.8."""
    row = powered_row(tasks=100, data_sets=4_000, correlation=0.8, seed=0)
    assert 0.935 <= row.covered <= 0.965 and 0.935 <= row.covered_difference <= 0.965
    assert row.narrower >= 0.25 and row.narrower_difference >= 0.25
