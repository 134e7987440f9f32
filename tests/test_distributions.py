"""The normal, Student's and the noncentral t distribution against scipy, exact values and hostile input."""

import math
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from adjudge.scoring.kernels.base.distributions import (
    logistic_cdf,
    noncentral_t_cdf,
    noncentral_t_shift,
    normal_cdf,
    normal_quantile,
    student_cdf,
    student_quantile,
)

DEGREES = st.floats(1.0, 1e7)
SHARES = st.floats(1e-12, 1.0 - 1e-12)


@given(st.floats(-37.0, 37.0))
def test_normal_shares(z: float) -> None:
    assert normal_cdf(z) == pytest.approx(special.ndtr(z), rel=1e-12)


@given(st.floats(-700.0, 800.0))
def test_logistic_shares(x: float) -> None:
    assert logistic_cdf(x) == pytest.approx(special.expit(x), rel=1e-12)


@given(st.floats(1e-300, 1.0, exclude_max=True))
def test_normal_quantiles(share: float) -> None:
    assert normal_quantile(share) == pytest.approx(special.ndtri(share), rel=1e-12, abs=1e-15)


@given(DEGREES, st.floats(1e-3, 30.0).flatmap(lambda t: st.sampled_from([t, -t])))  # scipy loses smaller ones
def test_shares_of_students_distribution(degrees: float, t: float) -> None:
    assert student_cdf(degrees, t) == pytest.approx(special.stdtr(degrees, t), rel=1e-11)


@pytest.mark.parametrize("degrees", [1.0, 1.5, 2.0, 9.0, 99.5, 2_000.0, 9_999.0, 10_001.0])
@pytest.mark.parametrize("t", [1e-9, 0.3, 1.7, 1.8, 2.6, 12.0, 35.0])
def test_small_shares_are_exact(degrees: float, t: float) -> None:
    with mpmath.workdps(50):
        n, at = mpmath.mpf(degrees), mpmath.mpf(t)
        least = mpmath.quad(
            lambda x: (1 + x * x / n) ** (-(n + 1) / 2), [at, 2 * at, 4 * at, 16 * at, mpmath.inf]
        )
        whole = mpmath.sqrt(n * mpmath.pi) * mpmath.gammaprod([n / 2], [(n + 1) / 2])
        exact = float(least / whole)
    assert student_cdf(degrees, -t) == pytest.approx(exact, rel=2e-12)
    assert student_cdf(degrees, t) == pytest.approx(1.0 - exact, rel=1e-15)


@given(DEGREES, SHARES)
def test_quantiles_of_students_distribution(degrees: float, share: float) -> None:
    found = student_quantile(degrees, share)
    assert found == pytest.approx(special.stdtrit(degrees, share), rel=1e-9, abs=1e-14)
    assert student_cdf(degrees, found) == pytest.approx(share, rel=1e-11)


@given(st.integers(1, 10**6), st.floats(-3.0, 12.0), st.floats(0.01, 200.0))
def test_noncentral_shares(degrees: int, shift: float, t: float) -> None:
    assert noncentral_t_cdf(degrees, shift, t) == pytest.approx(special.nctdtr(degrees, shift, t), abs=1e-10)
    assert noncentral_t_cdf(degrees, -shift, -t) == pytest.approx(
        1.0 - noncentral_t_cdf(degrees, shift, t), abs=1e-12
    )


@pytest.mark.parametrize("shift", [-1e9, -40.0, 0.0, 40.0, 1e9, math.inf])
@pytest.mark.parametrize("t", [-1e9, -2.0, 0.0, 2.0, 1e9])
@pytest.mark.parametrize("degrees", [1.0, 20.0, 1e9])
def test_noncentral_shares_far_away(degrees: float, shift: float, t: float) -> None:
    assert 0.0 <= noncentral_t_cdf(degrees, shift, t) <= 1.0


@given(st.integers(1, 10**6), st.floats(0.01, 0.99), st.floats(-3.0, 200.0))
def test_shifts_reach_their_share(degrees: int, share: float, t: float) -> None:
    shift = noncentral_t_shift(degrees, share, t)
    assert noncentral_t_cdf(degrees, shift, t) == pytest.approx(share, abs=1e-12)


def test_ends_and_missing_values() -> None:
    nan, inf = math.nan, math.inf
    np.testing.assert_array_equal(
        normal_quantile([0.0, 0.5, 1.0, -0.1, 1.1, nan]), [-inf, 0, inf, nan, nan, nan]
    )
    np.testing.assert_array_equal(logistic_cdf([-inf, 0.0, inf, nan]), [0.0, 0.5, 1.0, nan])
    np.testing.assert_array_equal(normal_cdf([-inf, 0.0, inf, nan]), [0.0, 0.5, 1.0, nan])
    np.testing.assert_array_equal(
        student_cdf([1.0, 5.0, 1e9, 5.0, nan], [-inf, 0.0, inf, nan, 1.0]), [0, 0.5, 1, nan, nan]
    )
    shares = [0.0, 0.5, 1.0, nan, -1.0, 2.0]
    np.testing.assert_array_equal(student_quantile(4.0, shares), [-inf, 0, inf, nan, nan, nan])
    assert np.isnan(student_quantile(nan, 0.5))
    assert student_quantile(np.full((2, 3), 7.0), 0.975).shape == (2, 3)
    assert student_cdf(np.empty(0), 1.0).shape == (0,)


def test_similar_numbers_do_not_depend_on_their_neighbours() -> None:
    t = np.linspace(-9.0, 9.0, 10_001)
    for function, values in ((student_cdf, t), (student_quantile, np.linspace(0.001, 0.999, 10_001))):
        alone = [float(function(30.0, one)) for one in values[::500]]
        np.testing.assert_array_equal(function(30.0, values)[::500], alone)


def test_the_library_never_imports_scipy() -> None:
    code = (
        "import pkgutil, sys; sys.modules['scipy'] = None\n"
        "import adjudge.scoring.kernels as kernels\n"
        "for module in pkgutil.walk_packages(kernels.__path__, 'adjudge.scoring.kernels.'):\n"
        "    __import__(module.name)\n"
        "import adjudge.scoring.kernels.precompilation as made\n"
        "import adjudge.engine.rewards.group\n"
        "made.precompile()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
