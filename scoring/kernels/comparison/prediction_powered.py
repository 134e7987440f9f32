"""Means of people's scores, from people's scores of a few tasks and a judge's of all: prediction-powered inference.

PPI (Angelopoulos, Bates, Fannjiang, Jordan, Zrnic, Science 382, 2023) corrects the judge's mean by its mean error on
the labelled tasks; PPI++ (Angelopoulos, Duchi, Zrnic, arXiv:2311.01453, 2023) weighs the judge by a power that is
tuned to the data, so that a judge that says nothing does no harm:

    estimate = mean(human, labelled) + power * (mean(judge, unlabelled) - mean(judge, labelled))

The tuned power is cov(human, judge) / var(judge) / (1 + n / N), n labelled and N unlabelled tasks, here with both
moments of the labelled tasks: then it is the regression estimate of double sampling (Cochran, "Sampling Techniques",
12.6), whose interval by Student's t, its leverage included, holds its level for few labels too, where the papers'
normal interval covers too seldom. Labelled tasks must be drawn at random from all; the truth is the mean over all
such tasks, not over these alone. A tuned estimate is on people's scale whatever the judge's.
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adjudge.scoring.kernels.base.arrays import Floats, Integers, as_scores, as_share
from adjudge.scoring.kernels.base.errors import KernelError

__all__ = ["PredictionPowered", "powered_differences", "powered_means"]

LEAST_TUNED = 3  # labels from which a power can be tuned and its error known
_CELLS = 4_000_000  # differences of pairs per step


class PredictionPowered(msgspec.Struct, frozen=True):
    """Estimates of means, one element per system or pair; NaN where the labels do not define one."""

    estimate: Floats
    """NaN without a label"""
    standard_error: Floats
    low: Floats
    high: Floats
    """by Student's t; NaN with fewer than two labels"""
    power: Floats
    """the judge's weight; 0 where there are too few labels, no unlabelled task, or a judge that never varies"""
    n_labelled: Integers
    """tasks with a human label and a judge's score: labels without a judge's score are not used"""
    n_unlabelled: Integers
    """tasks with a judge's score alone"""
    level: float


def powered_means(
    judge: ArrayLike, human: ArrayLike, *, level: float = 0.95, power: float | None = None
) -> PredictionPowered:
    """The mean human score of every row.

    Args:
        judge: scores `[S, T]`, NaN where there is none.
        human: labels `[S, T]`, NaN where there is none.
        level: of the intervals.
        power: the judge's weight: None to tune it (PPI++), 1 for PPI, 0 for the labels alone.

    Raises:
        KernelError: shapes that do not fit, an infinite score, a level outside (0, 1), a power that is not finite.
    """
    scores, labels = _validated(judge, human, power)
    return _estimated(scores, labels, as_share(level, "level"), power)


def powered_differences(
    judge: ArrayLike, human: ArrayLike, *, level: float = 0.95, power: float | None = None
) -> PredictionPowered:
    """The mean paired difference of every pair of rows, first minus second, on the tasks that both have.

    Pairs are in the order of `numpy.triu_indices(S, 1)`. A task is labelled where both have a label and a judge's
    score. Arguments and errors are those of `powered_means`.
    """
    scores, labels = _validated(judge, human, power)
    level = as_share(level, "level")
    first, second = np.triu_indices(scores.shape[0], 1)
    step = max(1, _CELLS // max(1, scores.shape[1]))
    parts = [
        _estimated(scores[one] - scores[other], labels[one] - labels[other], level, power)
        for one, other in (
            (first[at : at + step], second[at : at + step]) for at in range(0, max(1, first.size), step)
        )
    ]
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in PredictionPowered.__struct_fields__
        if name != "level"
    }
    return PredictionPowered(**arrays, level=level)


def _validated(judge: ArrayLike, human: ArrayLike, power: float | None) -> tuple[Floats, Floats]:
    scores, labels = as_scores(judge, 2, "judge"), as_scores(human, 2, "human")
    if scores.shape != labels.shape:
        raise KernelError(f"human: shape {labels.shape}, but judge {scores.shape}")
    if power is not None and not np.isfinite(power):
        raise KernelError(f"power must be finite, not {power}")
    return scores, labels


def _estimated(judge: Floats, human: Floats, level: float, power: float | None) -> PredictionPowered:
    labelled = ~np.isnan(judge) & ~np.isnan(human)
    unlabelled = ~np.isnan(judge) & np.isnan(human)
    n, rest = labelled.sum(axis=1), unlabelled.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        people, mean_human, _ = _centred(human, labelled)
        said, mean_said, spread = _centred(judge, labelled)
        _, mean_rest, spread_rest = _centred(judge, unlabelled)
        weight = _power(people, said, spread, n, rest, power)
        estimate = mean_human + np.where(rest > 0, weight * (mean_rest - mean_said), 0.0)
        if power is None:
            tuned = weight != 0.0
            slope = np.where(tuned, weight * (1.0 + n / rest), 0.0)
            # A tuned power is the slope of a regression, which takes a degree of freedom and has leverage.
            degrees = n - 1 - tuned
            mean_all = (n * mean_said + rest * mean_rest) / (n + rest)
            leverage = np.where(tuned, (mean_all - mean_said) ** 2 / spread, 0.0)
            everyone = spread + spread_rest + n * rest / (n + rest) * (mean_rest - mean_said) ** 2
            of_judge = np.where(tuned, slope**2 * everyone / (n + rest - 1) / (n + rest), 0.0)
            degrees_of_judge = n + rest - 1
        else:
            slope, degrees, leverage = weight, n - 1, np.zeros(n.size)
            of_judge = np.where(weight != 0.0, weight**2 * spread_rest / (rest - 1) / rest, 0.0)
            degrees_of_judge = rest - 1
        residual = ((people - slope[:, None] * said) ** 2).sum(axis=1) / degrees
        of_residual = np.where(degrees > 0, residual * (1.0 / n + leverage), np.nan)
        variance = of_residual + of_judge
        # Welch and Satterthwaite's degrees of freedom of a sum of two variances.
        sure = variance == 0.0
        shares = of_residual**2 / degrees + np.where(of_judge > 0.0, of_judge**2 / degrees_of_judge, 0.0)
        freedom = np.where(sure, 1.0, variance**2 / np.where(sure, 1.0, shares))
        half = special.stdtrit(freedom, 0.5 + level / 2.0) * np.sqrt(variance)
    return PredictionPowered(
        estimate=estimate,
        standard_error=np.sqrt(variance),
        low=estimate - half,
        high=estimate + half,
        power=weight,
        n_labelled=n.astype(np.int64),
        n_unlabelled=rest.astype(np.int64),
        level=level,
    )


def _centred(values: Floats, chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[Floats, ...]:
    """The chosen values of each row minus their mean (0 elsewhere), the means, and the sums of squares about them."""
    first = np.take_along_axis(values, chosen.argmax(axis=1)[:, None], axis=1) if values.shape[1] else values
    shifted = np.where(chosen, values - first.sum(axis=1, keepdims=True), 0.0)  # equal values: exactly 0
    shift = shifted.sum(axis=1) / chosen.sum(axis=1)
    centred = np.where(chosen, shifted - shift[:, None], 0.0)
    return centred, first.sum(axis=1) + shift, (centred**2).sum(axis=1)


def _power(
    people: Floats, said: Floats, spread: Floats, n: Integers, rest: Integers, power: float | None
) -> Floats:
    if power is not None:
        return np.where(rest > 1, power, 0.0)
    usable = (n >= LEAST_TUNED) & (rest > 0) & (spread > 0.0)
    return np.where(usable, (people * said).sum(axis=1) / spread / (1.0 + n / rest), 0.0)
