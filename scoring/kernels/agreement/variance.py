"""Where the variance of scores comes from, and how much of what it takes to resolve a difference.

The model is a generalizability study: score = mean + system + task + system x task + sample (the agent's own runs) +
judge + judge x report + repeat (the judge's own repetition), every effect random with mean 0. Components are estimated
by MIVQUE(0) (Rao 1971; Hartley, Rao and LaMotte 1978): the sums of squares of group totals are set equal to their
expectations. It is unbiased for any unbalanced design, needs no iteration, and is the analysis of variance where the
design is balanced.

Items of a test are analysed by the share of systems that meet them, and by their correlation with the rest of the test.
Missing values are NaN.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from adjudge.scoring.kernels.base.arrays import (
    Flags,
    Floats,
    Integers,
    KernelError,
    as_scores,
    as_share,
    compiled,
)
from adjudge.scoring.kernels.base.distributions import noncentral_t_cdf, student_cdf, student_quantile

Component = Literal["system", "task", "system_task", "sample", "judge", "judge_report", "repeat"]
COMPONENTS: tuple[Component, ...] = get_args(Component)

# What the rows of a component's group share. Every row is a repeat of its own.
LEVELS: dict[Component, tuple[str, ...]] = {
    "system": ("system",),
    "task": ("task",),
    "system_task": ("system", "task"),
    "sample": ("system", "task", "sample"),
    "judge": ("judge",),
    "judge_report": ("system", "task", "sample", "judge"),
}
MOST_TASKS = 10_000_000


class Components(msgspec.Struct, frozen=True):
    """Variance components, in squared units of the score."""

    variance: dict[Component, float | None]
    """unbiased, so a small component's estimate can be below 0; None where the design cannot tell"""
    share: dict[Component, float | None]
    """of the sum of the components, those below 0 taken as 0"""
    confounded: dict[Component, Component]
    """components that have the same groups as another, and which one holds them"""
    groups: dict[Component, int]
    """how many groups of rows each component has: systems, tasks, reports of one system and task, ..."""
    n_used: int
    """scores that are there"""


class Design(msgspec.Struct, frozen=True):
    """An experiment that resolves the difference asked for."""

    tasks: int
    samples: int
    judges: int
    repeats: int
    power: float
    reports: int
    """of each system: tasks x samples"""
    judgments: int
    """of each system: reports x judges x repeats"""


def variance_components(
    scores: ArrayLike,
    *,
    system: ArrayLike,
    task: ArrayLike,
    sample: ArrayLike | None = None,
    judge: ArrayLike | None = None,
) -> Components:
    """Random-effects components of scores in long form.

    A component with a single group is None. Components with the same groups (one sample of each report, one
    repeat of each judgment, one judge) cannot be told apart: the first in the order of the model holds them all,
    the others are None.

    scores: `[N]`, NaN for missing; rows with the same labels are repeats of the judge.
    system: labels `[N]`, whole numbers or strings.
    task: labels `[N]`.
    sample: labels `[N]` of the agent's runs of a system and task; None: one run.
    judge: labels `[N]`; None: one judge.
    Raises KernelError for labels and scores of different lengths, an infinite score, fewer than two scores, or a design
    in which components cannot be separated although their groups differ.
    """
    values = as_scores(scores, 1)
    present = ~np.isnan(values)
    if present.sum() < 2:
        raise KernelError("scores: at least two are needed")
    labels = {"system": system, "task": task, "sample": sample, "judge": judge}
    codes = {name: _codes(label, present, name) for name, label in labels.items()}
    groups = {name: _joined([codes[level] for level in levels]) for name, levels in LEVELS.items()}
    groups["repeat"] = np.arange(int(present.sum()))
    kept, confounded = _distinct(groups)
    estimates = _mivque(values[present], [groups[name] for name in kept])
    variance: dict[Component, float | None] = dict.fromkeys(COMPONENTS)
    variance.update(zip(kept, estimates.tolist(), strict=True))
    positive = {name: None if value is None else max(value, 0.0) for name, value in variance.items()}
    total = sum(value or 0.0 for value in positive.values())
    return Components(
        variance=variance,
        share={
            name: None if value is None or not total else value / total for name, value in positive.items()
        },
        confounded=confounded,
        groups={name: int(code.max()) + 1 for name, code in groups.items()},
        n_used=int(present.sum()),
    )


def plan(
    components: Components,
    difference: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    judges: int = 1,
    most_samples: int = 8,
    most_repeats: int = 8,
) -> list[Design]:
    """The designs that resolve a difference between two systems' means with a paired t test over tasks.

    Both systems answer the same tasks and have the same judges, so task and judge effects cancel. The variance of
    one task's difference is 2 (system_task + sample / a + judge_report / (a j) + repeat / (a j r)) for a samples, j
    judges and r repeats; power is that of the two-sided test (noncentral t). Components that are None or below
    0 count as 0, those confounded with another as the one that holds them.

    components: of a pilot.
    difference: between the systems' true means, in units of the score.
    power: chance to find it significant.
    alpha: of the test.
    judges: on every report.
    most_samples: of the agent, considered.
    most_repeats: of the judge, considered.

    Returns:
        For every number of samples and repeats the fewest tasks; designs that another one equals or beats in
        tasks, reports and judgments are left out. Fewest reports first.

    Raises KernelError for an option out of range, or a difference that needs more than 10,000,000 tasks.
    """
    power, alpha = as_share(power, "power"), as_share(alpha, "alpha")
    if not 0 < difference < np.inf or min(judges, most_samples, most_repeats) < 1:
        raise KernelError("difference must be positive, and judges, most_samples and most_repeats at least 1")
    found = {name: max(value or 0.0, 0.0) for name, value in components.variance.items()}
    designs = []
    for samples, repeats in product(range(1, most_samples + 1), range(1, most_repeats + 1)):
        one = found["system_task"] + found["sample"] / samples + found["judge_report"] / (samples * judges)
        of_difference = 2 * (one + found["repeat"] / (samples * judges * repeats))
        effect = difference / np.sqrt(max(of_difference, 1e-300))
        tasks = _fewest_tasks(effect, power, alpha)
        reports = tasks * samples
        reached = _power(effect, tasks, alpha)
        designs.append(
            Design(tasks, samples, judges, repeats, reached, reports, judgments=reports * judges * repeats)
        )
    return list(_undominated(designs))


def _codes(labels: ArrayLike | None, present: Flags, name: str) -> Integers:
    if labels is None:
        return np.zeros(int(present.sum()), np.int64)
    array = np.asarray(labels)
    if array.shape != present.shape:
        raise KernelError(f"{name}: {array.shape} labels for {present.shape} scores")
    return np.unique(array[present], return_inverse=True)[1].astype(np.int64)


def _joined(codes: list[Integers]) -> Integers:
    """Numbers of the distinct combinations of codes."""
    joined = codes[0]
    for code in codes[1:]:
        joined = np.unique(joined * (int(code.max()) + 1) + code, return_inverse=True)[1].astype(np.int64)
    return joined


def _distinct(groups: dict[Component, Integers]) -> tuple[list[Component], dict[Component, Component]]:
    """The components with groups of their own, and for the others the one with the same groups."""
    kept: list[Component] = []
    confounded: dict[Component, Component] = {}
    for name, code in groups.items():
        if code.max() == 0:
            continue
        same = next(
            (
                other
                for other in kept
                if groups[other].max() == code.max() == _joined([groups[other], code]).max()
            ),
            None,
        )
        if same is None:
            kept.append(name)
        else:
            confounded[name] = same
    return kept, confounded


def _mivque(values: Floats, groups: list[Integers]) -> Floats:
    """Solves E[sum of squared group totals] = observed, for totals of the centred scores."""
    n = float(values.size)
    centred = values - values.mean()
    sizes = [np.bincount(code).astype(np.float64) for code in groups]
    observed = np.array([np.sum(np.bincount(code, weights=centred) ** 2) for code in groups])
    orders = [np.argsort(code, kind="stable") for code in groups]
    expected = np.empty((len(groups), len(groups)))
    for i, one in enumerate(groups):
        for j, other in enumerate(groups[: i + 1]):
            shared = _shared_squares(orders[i], one, other, sizes[j].size)
            both = float(np.sum(sizes[i][one] * sizes[j][other]))
            margins = float(np.sum(sizes[i] ** 2) * np.sum(sizes[j] ** 2))
            expected[i, j] = expected[j, i] = shared - 2 * both / n + margins / n**2
    scale = np.sqrt(np.diag(expected))
    solution, _, rank, _ = np.linalg.lstsq(expected / np.outer(scale, scale), observed / scale, rcond=1e-11)
    if rank < len(groups):
        raise KernelError("scores: the components cannot be separated in this design")
    return np.asarray(solution / scale)


@compiled
def _shared_squares(order: Integers, first: Integers, second: Integers, size: int) -> float:
    """Sum of squared numbers of rows shared by a group of `first` and one of `second`; `order` sorts `first`."""
    counts = np.zeros(size, np.int64)
    total, start = 0.0, 0
    while start < order.size:
        end = start
        while end < order.size and first[order[end]] == first[order[start]]:
            counts[second[order[end]]] += 1
            end += 1
        for row in range(start, end):
            total += counts[second[order[row]]]
        for row in range(start, end):
            counts[second[order[row]]] = 0
        start = end
    return total


def _power(effect: float, tasks: int, alpha: float) -> float:
    """Power of a two-sided paired t test for a standardised difference."""
    degrees, shift = tasks - 1.0, effect * math.sqrt(tasks)
    critical = float(student_quantile(degrees, 1 - alpha / 2))
    missed = noncentral_t_cdf(degrees, shift, critical) - noncentral_t_cdf(degrees, shift, -critical)
    return 1 - missed


def _fewest_tasks(effect: float, power: float, alpha: float) -> int:
    most = 2
    while _power(effect, most, alpha) < power:
        most *= 2
        if most > MOST_TASKS:
            raise KernelError(f"difference: too small to be resolved with {MOST_TASKS:,} tasks")
    least = most // 2 + 1 if most > 2 else 2
    while least < most:
        middle = (least + most) // 2
        if _power(effect, middle, alpha) < power:
            least = middle + 1
        else:
            most = middle
    return least


def _undominated(designs: list[Design]) -> Iterator[Design]:
    def cost(design: Design) -> tuple[int, int, int]:
        return design.reports, design.judgments, design.tasks

    chosen: list[Design] = []
    for design in sorted(designs, key=cost):
        mine = cost(design)
        if not any(all(a <= b for a, b in zip(cost(other), mine, strict=True)) for other in chosen):
            chosen.append(design)
            yield design


class ItemFigures(NamedTuple):
    """By item: the mean of its `n` values, its `correlation` with the mean of the other items, and a test of that.

    `p_negative` is one-sided: how likely a correlation as negative is by chance. It and `correlation` are NaN with
    fewer than three values, or where one of the two does not vary.
    """

    mean: Floats
    correlation: Floats
    p_negative: Floats
    n: Integers


def item_figures(values: ArrayLike) -> ItemFigures:
    """Figures of the items of `values` [items, tested]."""
    scores = as_scores(values, 2, "values")
    present = ~np.isnan(scores)
    filled = np.where(present, scores, 0.0)
    others = present.sum(axis=0) - present
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = (filled.sum(axis=0) - filled) / others
        used = present & (others > 0)
        n = used.sum(axis=1)
        x, y = (_centred(one, used, n) for one in (filled, rest))
        xx, yy, xy = (x * x).sum(axis=1), (y * y).sum(axis=1), (x * y).sum(axis=1)
        varies = (n > 2) & (xx > 1e-18) & (yy > 1e-18)
        r = np.where(varies, np.clip(xy / np.sqrt(xx * yy), -1.0, 1.0), np.nan)
        t = r * np.sqrt((n - 2) / (1 - r * r))
        mean = filled.sum(axis=1) / present.sum(axis=1)
    p = np.where(np.isnan(r), np.nan, student_cdf(np.maximum(n - 2, 1), t))
    return ItemFigures(mean, r, p, present.sum(axis=1))


def _centred(values: Floats, used: np.ndarray, n: Integers) -> Floats:
    shown = np.where(used, values, 0.0)
    return np.where(used, shown - (shown.sum(axis=1) / n)[:, None], 0.0)
