"""The means that people would give, from a judge's scores of everything and people's scores or labels of a sample.

**From people's scores of a few tasks:** prediction-powered inference. PPI (Angelopoulos, Bates, Fannjiang, Jordan,
Zrnic, Science 382, 2023) corrects the judge's mean by its mean error on the labelled tasks; PPI++ (Angelopoulos, Duchi,
Zrnic, arXiv:2311.01453, 2023) weights the judge by a power that is tuned to the data, so that an uninformative judge
does no harm:

    estimate = mean(human, labelled) + power * (mean(judge, unlabelled) - mean(judge, labelled))

The tuned power is cov(human, judge) / var(judge) / (1 + n / N), n labelled and N unlabelled tasks, here with both
moments of the labelled tasks: then it is the regression estimate of double sampling (Cochran, "Sampling Techniques",
12.6), whose interval by Student's t, its leverage included, holds its level for few labels too, where the papers'
normal interval covers too seldom. Labelled tasks must be drawn at random from all; the truth is the mean over all such
tasks, not over these alone. A tuned estimate is on people's scale whatever the judge's.

**From people's labels of some items:** double sampling for stratification (Cochran, 12.2). A task's score is a weighted
sum over its items (statements, criteria), each with one of a few verdicts by the judge. Items to label are drawn at
random within strata: the items of a system with one verdict of the judge. Drawn evenly from the strata, rare verdicts
are labelled as often as common ones, so the labels alone say nothing about the whole. Instead every item of a stratum
gets the mean of the stratum's labels, weighted as the items are. That is the prediction-powered estimate with the best
power for each verdict; a judge whose verdicts are uninformative does no harm.

The truth is the mean over all tasks of which these are a random sample. A task's own value adds the residuals of its
labelled items, scaled up to the size of their strata. There are as many such values as tasks, and their spread is the
variance, however the items of a report depend on each other (linearisation by clusters; Särndal, Swensson, Wretman,
"Model Assisted Survey Sampling", 9.4). Few labels that all agree do not show that people always agree: a stratum's
spread is at least that with a third of a label added at either end (Kerman's neutral prior, 2011). Intervals are
Student's, with Welch's degrees of freedom of the two parts.
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import Floats, Integers, KernelError, as_scores, as_share
from adjudge.scoring.kernels.base.distributions import student_quantile

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

    judge: scores `[S, T]`, NaN where there is none.
    human: labels `[S, T]`, NaN where there is none.
    level: of the intervals.
    power: the judge's weight: None to tune it (PPI++), 1 for PPI, 0 for the labels alone.
    Raises KernelError for shapes that do not fit, an infinite score, a level outside (0, 1), or a power that is
    not finite.
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
        half = student_quantile(freedom, 0.5 + level / 2.0) * np.sqrt(variance)
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
    scores: ArrayLike, items: LabelledItems, *, bounds: tuple[float, float] = (0.0, 1.0), level: float = 0.95
) -> LabelledMean:
    """The mean of `scores` with the judge's values of all items replaced by what people's labels say of them.

    scores: the tasks' scores by the judge `[T]`, each with a value.
    items: the items of these tasks.
    bounds: the lowest and the highest value of a label.
    level: of the interval.
    Raises KernelError for arrays that do not fit, a missing or infinite score, weight or judge's value, or a level
    outside (0, 1).
    """
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
    items = LabelledItems(task=task.astype(np.int64), weight=weight, judge=judge, human=human, stratum=places)
    level = as_share(level, "level")
    strata = _strata(items)
    if not own.size or not strata.drawn.all():
        nan = float("nan")
        return LabelledMean(
            estimate=nan,
            standard_error=nan,
            low=nan,
            high=nan,
            power=nan,
            n_labelled=int((~np.isnan(items.human)).sum()),
            n_items=items.human.size,
        )
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
    half = float(student_quantile(degrees, 0.5 + level / 2.0)) * np.sqrt(variance)
    return LabelledMean(
        estimate=estimate,
        standard_error=float(np.sqrt(variance)),
        low=estimate - float(half),
        high=estimate + float(half),
        power=_slope(items, strata),
        n_labelled=int(labelled.sum()),
        n_items=labelled.size,
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
