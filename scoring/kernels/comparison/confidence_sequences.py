"""Which of two systems a full run would put first, decided before its end: anytime-valid confidence sequences.

Tasks are judged in a random order. After every task there is an interval for the mean difference that *all* the planned
tasks would give. With probability 1 - error_rate all intervals of a sequence contain it, so one may look after every
task and stop at any. The differences are taken as draws from a normal distribution of unknown mean and spread. The
sequence is that of the mixture sequential t test (Lai, Annals of Statistics 4, 1976; Wang and Ramdas, Anytime-valid
t-tests and confidence sequences for Gaussian means with unknown variance, Sequential Analysis 44, 2025), with effect
sizes mixed over a normal distribution and the right Haar prior on the spread, here for a finite number of tasks: given
their mean, the differences d_1 ... d_n of n out of N tasks have the quadratic form

    sum (d_i - mean(d))**2 + m * (mean(d) - theta)**2,    m = n / (1 - n / N)

so the t sequence holds with m in place of n where the mean is concerned, and closes on theta at n = N. For other
distributions the error rate is approximate; no interval is given before LEAST tasks. (Sequences that assume only
bounds, such as betting ones, cannot separate systems whose differences are small beside the bounds within the hundreds
of tasks that benchmarks have.)
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers, KernelError, as_scores, as_share

LEAST = 10  # differences before the first interval: the tails of a few do not show
_SHARPEST = 1.0 / 3.0  # the share of the planned tasks at which intervals are meant to be sharpest


class ConfidenceSequence(msgspec.Struct, frozen=True):
    """Intervals after each task, `[P, T]`."""

    mean: Floats
    """of the differences until then; NaN before the first"""
    low: Floats
    high: Floats
    """-inf and inf before LEAST differences"""
    n_used: Integers
    error_rate: float

    @property
    def resolved(self) -> Flags:
        """Where an interval leaves out 0, `[P, T]`."""
        return (self.low > 0.0) | (self.high < 0.0)


def confidence_sequence(
    differences: ArrayLike, planned: int, *, error_rate: float = 0.05
) -> ConfidenceSequence:
    """The confidence sequence of every row's mean over all planned tasks.

    differences: `[P, T]` in the order in which tasks were judged; NaN for a task that one of the pair has no
        score for. Such a task is not among those of the pair's mean; those to come are taken to have a score.
    planned: tasks of the full run, at least T.
    error_rate: of each row; divide it by their number for all rows together.
    Raises KernelError for another shape, an infinite difference, fewer planned tasks than judged, or a rate
    outside (0, 1).
    """
    values = as_scores(differences, 2, "differences")
    rate = as_share(error_rate, "error_rate")
    if planned < values.shape[1]:
        raise KernelError(f"planned: {planned} tasks, but {values.shape[1]} are judged")
    present = ~np.isnan(values)
    n = np.cumsum(present, axis=1)
    # Counting from the first difference keeps equal differences exactly equal.
    first = np.take_along_axis(values, present.argmax(axis=1)[:, None], axis=1) if values.size else values
    shifted = np.where(present, values - first, 0.0)
    total = shifted.cumsum(axis=1)
    population = planned - np.cumsum(~present, axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = total / n
        squares = np.maximum((shifted * shifted).cumsum(axis=1) - total * mean, 0.0)
        half = _half_widths(n, population, squares, _mixture(planned, rate), rate)
    centre = np.where(n > 0, mean + first, np.nan)
    half = np.where((n >= LEAST) | (n == population), half, np.inf)
    at = np.where(n > 0, centre, 0.0)
    return ConfidenceSequence(mean=centre, low=at - half, high=at + half, n_used=n, error_rate=rate)


def _half_widths(n: Integers, population: Integers, squares: Floats, mixture: float, rate: float) -> Floats:
    """Where the mixture's Bayes factor against a mean reaches 1 / rate (Ville's inequality)."""
    m = n / (1.0 - n / population)
    grown = 1.0 + mixture * m
    bound = (np.sqrt(grown) / rate) ** (2.0 / n)
    half = np.sqrt((bound - 1.0) * squares / (m * (1.0 - bound / grown)))
    half = np.where(bound < grown, half, np.inf)
    return np.where((n == population) & (n > 0), 0.0, half)


def _mixture(planned: int, rate: float) -> float:
    """The variance of effect sizes that makes intervals about sharpest after that share of the planned tasks."""
    odds = 2.0 * np.log(1.0 / rate)
    judged = planned * _SHARPEST / (1.0 - _SHARPEST)
    return float((odds + np.log(1.0 + odds)) / max(judged, 1.0))
