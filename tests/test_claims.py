"""What a difference of means may be said to show: against all sign patterns, and never more than so few tasks can."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.claims import (
    ALPHA,
    FEW,
    above,
    differences,
    fewest_tasks,
    least_p,
    rank_spans,
    resampled,
    subset_mean,
    tiers,
    told_apart,
)
from benchmarks.claims import NOISES, TASKS, Noise, claimed
from tests.nightly import quick_or_whole

values = st.lists(st.sampled_from([-0.5, -0.25, 0.0, 0.1, 0.25, 0.5, 1.0]), min_size=1, max_size=9)


def every_sign(found: np.ndarray) -> np.ndarray:
    """The sum of `found` under each sign pattern."""
    return np.array(list(product((1.0, -1.0), repeat=found.size))) @ found


@settings(max_examples=quick_or_whole(20, 60), deadline=None)
@given(values)
def test_p_against_all_sign_patterns(found: list[float]) -> None:
    own = np.array(found)
    sums = every_sign(own)
    two_sided = float(np.mean(np.abs(sums) >= abs(own.sum()) - 1e-9))
    tested = differences(np.stack([own, np.zeros_like(own)]))
    assert tested.p[0] == pytest.approx(two_sided)
    assert tested.p[0] >= least_p(own.size) - 1e-12
    assert above(own) == pytest.approx(float(np.mean(sums >= own.sum() - 1e-9)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=9))
def test_interval_holds_what_the_test_does_not_reject(found: list[float]) -> None:
    own = np.array(found)
    tested = differences(np.stack([own, np.zeros_like(own)]))
    low, high = tested.low[0], tested.high[0]
    if np.isnan(low):
        assert np.ptp(own) <= 1e-12
        return
    assert low < high
    assert (low <= 0.0 <= high) or tested.p[0] <= 0.05
    for end, step in ((low, -1e-6), (high, 1e-6)):
        if tested.p[0] <= 0.05:  # else it was widened to hold 0
            shifted = own - (end + step)
            assert np.mean(np.abs(every_sign(shifted)) >= abs(shifted.sum()) - 1e-12) <= 0.05


@pytest.mark.parametrize("tasks", [1, 2, 3, 5])
def test_too_few_tasks_claim_nothing(tasks: int) -> None:
    scores = np.stack([1.0 + np.arange(tasks) / 100, np.zeros(tasks)])
    tested = differences(scores)
    assert tested.p[0] == 2.0 ** (1 - tasks) > 0.05
    assert np.isnan(tested.low[0]) and np.isnan(tested.high[0])
    assert not told_apart(tested, 2)[1].any()
    assert tasks < fewest_tasks(0.05) == 6 and fewest_tasks(0.05, sides=1) == 5


@pytest.mark.parametrize("tasks", [3, 6, 13, 40])
def test_equal_differences_are_tested_alike_and_have_no_interval(tasks: int) -> None:
    tested = differences(np.stack([np.full(tasks, 0.3), np.full(tasks, 0.1)]))
    assert tested.p[0] == pytest.approx(2.0 ** (1 - tasks))
    assert np.isnan(tested.low[0]) and np.isnan(tested.high[0])
    same = differences(np.full((2, tasks), 0.3))
    assert same.p[0] == 1.0 and np.isnan(same.low[0])


def test_many_tasks_that_differ_are_tested_by_student() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(3, 40)) + np.array([[0.0], [0.2], [0.9]])
    tested = differences(scores)
    for at, (a, b) in enumerate(zip(tested.first, tested.second, strict=True)):
        theirs = stats.ttest_rel(scores[a], scores[b])
        assert tested.p[at] == pytest.approx(theirs.pvalue)
        interval = theirs.confidence_interval()
        if theirs.pvalue <= 0.05:
            assert (tested.low[at], tested.high[at]) == pytest.approx((interval.low, interval.high))


def test_few_of_many_tasks_that_differ_are_flipped() -> None:
    """Four of thirty tasks, all one way: Student's t would say p = 0.043, four coin tosses say 0.125."""
    scores = np.zeros((2, 30))
    scores[0, :4] = 1.0
    tested = differences(scores)
    assert stats.ttest_rel(scores[0], scores[1]).pvalue < 0.05
    assert tested.p[0] == 0.125 and tested.low[0] <= 0.0


def test_missing_scores_are_left_out_by_pair() -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(2, 14))
    holes = np.insert(scores, [0, 5], np.nan, axis=1)
    holes[1, 0] = 3.0
    whole, holed = differences(scores), differences(holes)
    for name in ("n_used", "difference", "low", "high", "p"):
        np.testing.assert_allclose(getattr(whole, name), getattr(holed, name))
    assert np.isnan(differences(np.full((2, 4), np.nan)).p[0])


def test_tiers_and_spans_say_no_more_than_the_tests() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(6, 400)) + np.array([50.0, 80.0, 50.02, 79.98, 20.0, 50.01])[:, None]
    estimate = scores.mean(axis=1)
    estimate[4], scores[4] = np.nan, np.nan
    _, above_it = told_apart(differences(scores, bounded=False), 6)
    assert tiers(estimate, above_it).tolist() == [2, 1, 2, 1, 0, 2]
    spans = rank_spans(above_it, ~np.isnan(estimate))
    assert spans[[0, 1, 2, 3, 5]].tolist() == [[3, 5], [1, 2], [3, 5], [1, 2], [3, 5]]
    assert np.isnan(spans[4]).all()


def test_resampled_differences_follow_the_same_rule() -> None:
    gap, interval = np.array([[0.0, 3.0], [-3.0, 0.0]]), np.zeros((2, 2, 2))
    interval[0, 1], interval[1, 0] = (2.0, 4.0), (-4.0, -2.0)
    many, few = resampled(gap, interval, 100), resampled(gap, interval, 3)
    assert many.p[0] < 1e-6 and (many.low[0], many.high[0]) == (2.0, 4.0)
    assert few.p[0] == 0.25 and np.isnan(few.low[0])
    assert resampled(np.zeros((2, 2)), np.zeros((2, 2, 2)), 30).p[0] == 1.0


def test_bad_input_is_refused() -> None:
    with pytest.raises(KernelError):
        subset_mean(np.zeros(FEW + 1), 0.05)
    with pytest.raises(KernelError):
        differences(np.zeros((2, 3)), alpha=0.0)
    assert np.isnan(above([np.nan]))


@pytest.mark.nightly
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("tasks", TASKS)
def test_false_alarms_are_at_most_alpha(noise: Noise, tasks: int) -> None:
    """A small form of `benchmarks.claims`: within 3.5 standard errors of `worlds` worlds."""
    worlds = quick_or_whole(150, 400)
    found = claimed(noise, tasks, worlds=worlds, seed=tasks)
    allowed = ALPHA + 3.5 * np.sqrt(ALPHA * (1.0 - ALPHA) / worlds)
    assert found.tiers <= allowed and found.sentence <= allowed
    if 10 * least_p(tasks) > ALPHA:
        assert found.tiers == 0.0, "no pair of five systems can be told apart on so few tasks"


def test_a_difference_that_is_there_is_found() -> None:
    assert claimed("normal", 30, gap=True, worlds=200).sentence > 0.9
