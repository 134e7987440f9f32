"""The mean over tasks that people would give, from their labels of some of the items that a judge gave verdicts on.

A task's score is a weighted sum over its items (statements, criteria), each of which a judge gave one of a few
verdicts. Items to label are drawn at random within strata: the items of a system with one verdict of the judge. Drawn
evenly from the strata, rare verdicts are labelled as often as common ones, so the labels alone say nothing about the
whole; double sampling for stratification does (Cochran, "Sampling Techniques", 12.2): every item of a stratum counts
the mean of the stratum's labels, weighted as the items are. That is the prediction-powered estimate with the best
power for each verdict; a judge whose verdicts say nothing does no harm.

The truth is the mean over all tasks of which these are a random sample. A task's own value, with the residuals of its
labelled items raised to the size of their strata, has as many of them as there are tasks, so their spread is the
variance, whatever ties the items of a report to each other (linearisation by clusters; Särndal, Swensson, Wretman,
"Model Assisted Survey Sampling", 9.4). Few labels that all agree do not show that people always agree: a stratum's
spread is at least that with a third of a label added at either end (Kerman's neutral prior, 2011). Intervals are
Student's, with Welch's degrees of freedom of the two parts.
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adjudge.scoring.kernels.base.arrays import Floats, Integers, as_scores, as_share
from adjudge.scoring.kernels.base.errors import KernelError

__all__ = ["LabelledItems", "LabelledMean", "labelled_mean"]

NEUTRAL = 1.0 / 3.0  # of a label, at either end


class LabelledItems(msgspec.Struct, frozen=True, kw_only=True):
    """Items, an element each.

    `task` is the place of its task, `weight` what the item adds to the task's score per unit of value, `judge` the
    judge's value, `human` people's or NaN where nobody labelled it, `stratum` the number of its stratum. Items of one
    stratum have weights of one sign.
    """

    task: Integers
    weight: Floats
    judge: Floats
    human: Floats
    stratum: Integers


class LabelledMean(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the tasks' scores by people's labels; NaN where the labels do not define a figure."""

    estimate: float
    """NaN without a task, or with a stratum that has no label"""
    standard_error: float
    low: float
    high: float
    """NaN with fewer than two tasks, or all labels in one"""
    power: float
    """people's values on the judge's, the slope: 1 for a judge as good as people, 0 for chance, NaN for one verdict"""
    n_labelled: int
    n_items: int


class _Strata(msgspec.Struct, frozen=True):
    """Of each stratum: the items' whole weight, how far labelled items are raised to it, the share without a label."""

    of: Integers
    whole: Floats
    raised: Floats
    drawn: Integers
    left: Floats
    means: Floats


def labelled_mean(
    scores: ArrayLike,
    items: LabelledItems,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
) -> LabelledMean:
    """The mean of `scores` with the judge's values of all items replaced by what people's labels say of them.

    Args:
        scores: the tasks' scores by the judge `[T]`, each with a value.
        items: the items of these tasks.
        bounds: the lowest and the highest value of a label.
        level: of the interval.

    Raises:
        KernelError: arrays that do not fit, a missing or infinite score, weight or judge's value, an invalid level.
    """
    own, items = _validated(scores, items)
    level = as_share(level, "level")
    strata = _strata(items)
    if not own.size or not strata.drawn.all():
        return _undefined(items)
    values = own + np.bincount(items.task, items.weight * (strata.means[strata.of] - items.judge), own.size)
    estimate, n = float(values.mean()), own.size
    labelled = ~np.isnan(items.human)
    with_labels = np.unique(items.task[labelled]).size
    variance, degrees = float("nan"), 1.0
    if n > 1 and with_labels != 1:
        clusters, lacking = _residuals(items, strata, n, bounds)
        between = float(values.var(ddof=1)) / n
        variance = float((values + clusters).var(ddof=1)) / n + lacking / n**2
        sampled = max(variance - between, 0.0)
        of_labels = max(1, min(int(labelled.sum()) - strata.whole.size, with_labels - 1))
        parts = between**2 / (n - 1) + sampled**2 / of_labels
        degrees = variance**2 / parts if parts else 1.0
    half = float(special.stdtrit(degrees, 0.5 + level / 2.0)) * np.sqrt(variance)
    return LabelledMean(
        estimate=estimate,
        standard_error=float(np.sqrt(variance)),
        low=estimate - float(half),
        high=estimate + float(half),
        power=_slope(items, strata),
        n_labelled=int(labelled.sum()),
        n_items=labelled.size,
    )


def _validated(scores: ArrayLike, items: LabelledItems) -> tuple[Floats, LabelledItems]:
    own = as_scores(scores, 1, "scores")
    weight, judge, human = (as_scores(getattr(items, name), 1, name) for name in ("weight", "judge", "human"))
    task, stratum = (np.asarray(getattr(items, name)) for name in ("task", "stratum"))
    if len({one.shape for one in (weight, judge, human, task, stratum)}) > 1:
        raise KernelError("items: arrays of different lengths")
    if np.isnan(own).any() or np.isnan(weight).any() or np.isnan(judge).any():
        raise KernelError("a score, weight or judge's value is missing; leave such tasks and items out")
    if task.size and not (task.min() >= 0 and task.max() < own.size):
        raise KernelError(f"task: a place outside the {own.size} tasks")
    places = np.unique(stratum, return_inverse=True)[1].reshape(-1)
    found = LabelledItems(task=task.astype(np.int64), weight=weight, judge=judge, human=human, stratum=places)
    return own, found


def _undefined(items: LabelledItems) -> LabelledMean:
    nan, labelled = float("nan"), int((~np.isnan(items.human)).sum())
    return LabelledMean(
        estimate=nan,
        standard_error=nan,
        low=nan,
        high=nan,
        power=nan,
        n_labelled=labelled,
        n_items=items.human.size,
    )


def _strata(items: LabelledItems) -> _Strata:
    count = int(items.stratum.max(initial=-1)) + 1
    labelled = ~np.isnan(items.human)
    of, weight = items.stratum[labelled], items.weight[labelled]
    size, drawn = np.bincount(items.stratum, minlength=count), np.bincount(of, minlength=count)
    whole: Floats = np.bincount(items.stratum, items.weight, count).astype(np.float64)
    known: Floats = np.bincount(of, weight, count).astype(np.float64)
    said = np.bincount(of, weight * items.human[labelled], count)
    nothing = np.zeros(count)
    return _Strata(
        of=items.stratum,
        whole=whole,
        raised=np.divide(whole, known, out=nothing.copy(), where=known != 0.0),
        drawn=drawn,
        left=1.0 - drawn / np.maximum(size, 1),
        means=np.divide(said, known, out=nothing.copy(), where=known != 0.0),
    )


def _residuals(
    items: LabelledItems, strata: _Strata, tasks: int, bounds: tuple[float, float]
) -> tuple[Floats, float]:
    """The raised residuals of each task, and what the squares of all lack where few labels agree too well.

    A stratum that was labelled whole is known, and lacks nothing.
    """
    labelled = ~np.isnan(items.human)
    of, human = items.stratum[labelled], items.human[labelled]
    again = 1.0 + strata.left / np.maximum(strata.drawn - 1, 1)
    share = strata.raised[of] * items.weight[labelled]
    residuals = human - strata.means[of]
    count = strata.whole.size
    squares = np.bincount(of, (share * residuals) ** 2, count) * again
    low, high = bounds
    added = strata.drawn + 2.0 * NEUTRAL
    middle = (strata.drawn * strata.means + NEUTRAL * (low + high)) / added
    spread: Floats = np.bincount(of, (human - middle[of]) ** 2, count).astype(np.float64)
    spread += NEUTRAL * ((low - middle) ** 2 + (high - middle) ** 2)
    least = np.bincount(of, share**2, count) * spread / added
    lacking = float((np.maximum(least - squares, 0.0) * strata.left).sum())
    own = np.bincount(items.task[labelled], share * np.sqrt(again)[of] * residuals, tasks)
    others = max(np.unique(items.task[labelled]).size - 1, 1)
    return own * np.sqrt(1.0 + (1.0 - labelled.mean() if labelled.size else 0.0) / others), lacking


def _slope(items: LabelledItems, strata: _Strata) -> float:
    """The slope of the strata's means of labels on the judge's values, weighted by the strata."""
    judged = np.bincount(strata.of, items.weight * items.judge, strata.whole.size)
    judge = np.divide(judged, strata.whole, out=np.zeros(strata.whole.size), where=strata.whole != 0.0)
    size = np.abs(strata.whole)
    if not size.sum():
        return float("nan")
    centred = judge - (size * judge).sum() / size.sum()
    squares = float((size * centred**2).sum())
    return float((size * centred * strata.means).sum()) / squares if squares > 1e-12 else float("nan")
