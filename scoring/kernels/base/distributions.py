"""The normal and the logistic distribution, Student's and the noncentral t: what tests and intervals need of them.

Functions take numbers or arrays and return float64 arrays. NaN gives NaN, as does a share outside 0 to 1. Errors are
below 1e-12 of the result, in the tails too; those of the noncentral t are below 1e-12.
"""

import math
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import Floats

_STANDARD = NormalDist()
_erfc = np.vectorize(math.erfc, otypes=[np.float64])
_MOST_STEPS = (
    1_000  # of a continued fraction, which needs at most some 60, or of Newton's rule, which needs 10
)
_MANY = 1e4  # degrees of freedom, from which on a series is as exact as the fraction
_AT_ONCE = 4_096  # numbers, which a processor's cache holds
_NODES = 100
_REACH = 12.0  # standard errors around 1, outside of which the root of a mean of squares has no weight


def normal_cdf(z: ArrayLike) -> Floats:
    """The share of a standard normal distribution below `z`."""
    return np.asarray(0.5 * _erfc(np.asarray(z, np.float64) * -math.sqrt(0.5)))


def normal_quantile(share: ArrayLike) -> Floats:
    """What `share` of a standard normal distribution lies below."""
    with np.errstate(invalid="ignore"):
        return np.asarray(_normal_quantiles(np.asarray(share, np.float64)))


def logistic_cdf(x: ArrayLike) -> Floats:
    """The share of a standard logistic distribution below `x`."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.exp(-np.logaddexp(0.0, -np.asarray(x, np.float64))))


def student_cdf(degrees: ArrayLike, t: ArrayLike) -> Floats:
    """The share of Student's distribution with `degrees` > 0 of freedom below `t`."""
    n, at = _floats(degrees, t)
    beyond = _student_tail(n, np.abs(at))
    return np.where(at > 0.0, 1.0 - beyond, beyond)


def student_quantile(degrees: ArrayLike, share: ArrayLike) -> Floats:
    """What `share` of Student's distribution with `degrees` > 0 of freedom lies below."""
    n, below = _floats(degrees, share)
    tail = np.minimum(below, 1.0 - below)
    t = np.where(np.isnan(n), np.nan, -normal_quantile(tail))
    going = np.isfinite(t)
    # Newton's rule: the logarithm of the tail is concave over that of t, so that it does not overshoot.
    with np.errstate(all="ignore"):
        for _ in range(_MOST_STEPS):
            beyond = _student_tail(n, t)
            step = np.log(beyond / tail) * beyond / (t * _student_density(n, t))
            t = np.where(going & np.isfinite(step), t * np.exp(step), t)
            going &= np.abs(step) > 1e-9
            if not going.any():
                break
    return np.where(below < 0.5, -t, t)


def noncentral_t_cdf(degrees: float, shift: float, t: float) -> float:
    """The share below `t` of (z + `shift`) / s: z standard normal, s the root of a mean of `degrees` squares of such.

    It is the mean over s of the normal share below t s - `shift`, by Gauss and Legendre's rule.
    """
    ends = _spread(degrees)
    sharp = [] if abs(t) < 1.0 else [(shift + off) / t for off in (-_REACH, 0.0, _REACH)]
    cuts = np.unique(np.clip([*ends, *sharp], *ends))
    total = weight = 0.0
    nodes, weights = _legendre()
    for low, high in pairwise(cuts):
        s = low + (high - low) * nodes
        density = weights * (high - low) * np.exp((degrees - 1.0) * np.log(s) - degrees * (s * s - 1.0) / 2.0)
        total += float(density @ normal_cdf(t * s - shift))
        weight += float(density.sum())
    return min(total / weight, 1.0)


def noncentral_t_shift(degrees: float, share: float, t: float) -> float:
    """The shift at which `share`, between 0 and 1, of the noncentral t distribution lies below `t`."""
    found = [t * end - _normal_quantile(share) for end in _spread(degrees)]
    one, other = min(found), max(found)
    left = noncentral_t_cdf(degrees, one, t) - share
    right = noncentral_t_cdf(degrees, other, t) - share
    # False position, with the value of an end that stays halved (Dowell and Jarratt 1971).
    for _ in range(_MOST_STEPS):
        if not abs(right) > 1e-15 or not abs(other - one) > 1e-14 * abs(other):
            break
        at = other - right * (other - one) / (right - left)
        value = noncentral_t_cdf(degrees, at, t) - share
        if (value > 0.0) == (right > 0.0):
            left /= 2.0
        else:
            one, left = other, right
        other, right = at, value
    return other


def _floats(*values: ArrayLike) -> tuple[Floats, ...]:
    return np.broadcast_arrays(*[np.asarray(value, np.float64) for value in values])


def _normal_quantile(share: float) -> float:
    if 0.0 < share < 1.0:
        return _STANDARD.inv_cdf(share)
    return {0.0: -math.inf, 1.0: math.inf}.get(share, math.nan)


_normal_quantiles = np.vectorize(_normal_quantile, otypes=[np.float64])


def _student_tail(n: Floats, t: Floats) -> Floats:
    """The share above `t` >= 0."""
    found = np.empty(t.size)
    order = np.argsort(t, axis=None)  # similar ones take as many steps of the fraction
    with np.errstate(all="ignore"):
        for start in range(0, t.size, _AT_ONCE):
            those = order[start : start + _AT_ONCE]
            degrees, at = n.ravel()[those], t.ravel()[those]
            shares, many = _beta_tail(degrees, at), degrees > _MANY
            shares[many] = normal_cdf(-_normal_deviate(degrees[many], at[many]))
            found[those] = np.where(np.isinf(at), 0.0, shares)
    return found.reshape(t.shape)


def _beta_tail(n: Floats, t: Floats) -> Floats:
    """Half the regularised incomplete beta function of n / (n + t^2), n / 2 and 1 / 2."""
    n = np.minimum(n, _MANY)
    square = np.minimum(t, 1e150) ** 2
    x, y = n / (n + square), square / (n + square)
    far = square > 3.0 * n / (n + 2.0)  # the fraction of x converges fast, not that of y
    half = np.full(n.shape, 0.5)
    a, b = np.where(far, n / 2.0, half), np.where(far, half, n / 2.0)
    part = t * _student_density(n, t) / (2.0 * a) * _fraction(a, b, np.where(far, x, y))
    return np.where(far, part, 0.5 - part)


def _normal_deviate(n: Floats, t: Floats) -> Floats:
    """What has the same share of the normal distribution above it, for many degrees of freedom (Hill 1970)."""
    a = n - 0.5
    b, square = 48.0 * a * a, np.minimum(a * np.log1p(t * t / n), 2_000.0)  # 0 beyond: not a float64
    series = (((4.0 * square + 33.0) * square + 240.0) * square + 855.0) / (10.0 * b * b)
    return np.sqrt(square) * (1.0 + (square + 3.0) / b - series)


def _student_density(n: Floats, t: Floats) -> Floats:
    return np.exp(_gamma_ratio(n / 2.0) - np.log(n * math.pi) / 2.0 - (n + 1.0) / 2.0 * np.log1p(t * t / n))


def _gamma_ratio(a: Floats) -> Floats:
    """ln(gamma(a + 1/2) / gamma(a)), by Stirling's series at a + 10."""
    high = a + 10.0
    found = high * np.log1p(0.5 / high) + (np.log(high) - 1.0) / 2.0 + _stirling(high + 0.5) - _stirling(high)
    for k in range(10):
        found -= np.log1p(0.5 / (a + k))
    return found


def _stirling(z: Floats) -> Floats:
    square = z * z
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / z


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """The continued fraction of the incomplete beta function, by Lentz's rule (Abramowitz and Stegun 26.5.8)."""
    found = lower = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    upper, going = np.ones_like(found), np.isfinite(found)
    for m in range(1, _MOST_STEPS):
        for part in (
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ):
            lower, upper = 1.0 / (1.0 + part * lower), 1.0 + part / upper
            step = lower * upper
            found = np.where(going, found * step, found)
        going &= np.abs(step - 1.0) > 1e-14  # a number is left as it is then, whatever its neighbours need
        if not going.any():
            break
    return found


def _spread(degrees: float) -> tuple[float, float]:
    """Between which two values the root of a mean of `degrees` squares lies."""
    return max(0.0, 1.0 - _REACH / math.sqrt(degrees)), 1.0 + _REACH / math.sqrt(degrees)


@cache
def _legendre() -> tuple[Floats, Floats]:
    """Nodes between 0 and 1, and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0
