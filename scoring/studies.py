"""What Dr.Mi-Bench asks of many reports at once: gold-plan injection, the best of k samples, efficiency, domains.

Functions over the scores of one metric; nothing is judged here. A missing score is absent and never 0, and every
figure says how many tasks are behind it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from adjudge.scoring.case import Report
from adjudge.scoring.kernels.arrays import Floats
from adjudge.scoring.kernels.bootstrap import bootstrap
from adjudge.scoring.kernels.frontier import pareto_frontier, pass_at_k
from adjudge.scoring.kernels.paired_tests import paired_t
from adjudge.scoring.scorecard import Scorecard

__all__ = [
    "BestOfK",
    "DomainInterval",
    "Efficiency",
    "Injection",
    "Score",
    "best_of_samples",
    "by_domain",
    "efficiency",
    "plan_injection",
    "scores_of",
    "written_tokens",
]

N = TypeVar("N", str, int)

Identity = tuple[str, str, int]
"""(system, task_id, sample)."""


class Score(NamedTuple):
    """One metric's value for one report; None if unscored. Several of one identity are the judge's repeats."""

    system: str
    task_id: str
    sample: int
    value: float | None


class Injection(msgspec.Struct, frozen=True):
    """What a system gains on a metric from another start, such as the gold plan: mean of the paired differences.

    `low` and `high` bound its 95% interval, `p` is of the paired t test; all are None with fewer than two tasks.
    `n_scored` of `n_total` tasks have a score of both.
    """

    system: str
    informed: str
    gain: float | None
    low: float | None
    high: float | None
    p: float | None
    cohens_d: float | None
    n_scored: int
    n_total: int


class BestOfK(msgspec.Struct, frozen=True):
    """A system's means over tasks: the best of the first k samples, and its unbiased estimate from all samples.

    `n_scored` of `n_total` tasks have k scored samples.
    """

    system: str
    k: int
    best: float | None
    unbiased: float | None
    n_scored: int
    n_total: int


class Efficiency(msgspec.Struct, frozen=True):
    """A system's mean score and mean cost over the reports that have both, and whether no other beats it."""

    system: str
    score: float | None
    cost: float | None
    on_frontier: bool
    n_scored: int
    n_total: int


class DomainInterval(msgspec.Struct, frozen=True):
    """A system's mean in a domain with its 95% percentile interval over tasks; no interval from fewer than two."""

    domain: str
    system: str
    mean: float | None
    low: float | None
    high: float | None
    n_scored: int
    n_total: int


class _Table(NamedTuple):
    """`values[system, task, sample]`, means over repeats; NaN where there is no score."""

    systems: list[str]
    tasks: list[str]
    values: Floats

    def means(self) -> Floats:
        """`[system, task]`: means over the samples that are scored."""
        return _mean(self.values, 2)


def scores_of(cards: Iterable[Scorecard], metric: str) -> list[Score]:
    """The scores of `metric` on scorecards that have it."""
    return [
        Score(card.system, card.task_id, card.sample, card.scores[metric])
        for card in cards
        if metric in card.scores
    ]


def written_tokens(report: Report) -> int | None:
    """The tokens that writing a report took, input left out; None where they are not known."""
    usage = report.usage
    if usage is None or usage.total_tokens is None or usage.input_tokens is None:
        return None
    return usage.total_tokens - usage.input_tokens


def plan_injection(scores: Iterable[Score], pairs: Mapping[str, str]) -> list[Injection]:
    """For each pair of a system and its informed form (isolated mode, gold plan), what the latter gains.

    Paired by task, samples averaged. A system without any score has no gain.
    """
    table = _table(scores)
    means, rows = table.means(), _places(table.systems)
    found = []
    for system, informed in pairs.items():
        nothing = np.full(len(table.tasks), np.nan)
        both = [means[rows[name]] if name in rows else nothing for name in (informed, system)]
        tested = paired_t(np.stack(both))
        found.append(
            Injection(
                system=system,
                informed=informed,
                gain=_known(tested.mean_difference[0]),
                low=_known(tested.low[0]),
                high=_known(tested.high[0]),
                p=_known(tested.p[0]),
                cohens_d=_known(tested.cohens_d[0]),
                n_scored=int(tested.n_used[0]),
                n_total=len(table.tasks),
            )
        )
    return found


def best_of_samples(scores: Iterable[Score], k: int, threshold: float | None = None) -> list[BestOfK]:
    """Each system's score of the best of k samples of the agent; with a `threshold`, pass@k: 1 from it on, else 0."""
    table = _table(scores)
    values = table.values
    if threshold is not None:
        values = np.where(np.isnan(values), np.nan, values >= threshold)
    found = pass_at_k(values, k)
    best, unbiased = _mean(found.best_of_k, 1), _mean(found.unbiased, 1)
    return [
        BestOfK(
            system,
            k,
            _known(best[row]),
            _known(unbiased[row]),
            int((found.n_used[row] >= k).sum()),
            len(table.tasks),
        )
        for row, system in enumerate(table.systems)
    ]


def efficiency(scores: Iterable[Score], costs: Mapping[Identity, float | None]) -> list[Efficiency]:
    """Each system's score against its cost (seconds, or tokens written), by report, and the Pareto frontier."""
    reports: dict[str, list[tuple[float, float]]] = {}
    total: dict[str, int] = {}
    for score in scores:
        total[score.system] = total.get(score.system, 0) + 1
        cost = costs.get(score[:3])
        known = reports.setdefault(score.system, [])
        if score.value is not None and cost is not None:
            known.append((score.value, cost))
    systems = sorted(reports)
    nothing = (np.nan, np.nan)
    means = [np.mean(reports[system], axis=0) if reports[system] else nothing for system in systems]
    points = np.array(means, dtype=np.float64).reshape(len(systems), 2)
    frontier = pareto_frontier(points[:, 0], points[:, 1])
    return [
        Efficiency(
            system,
            _known(points[row, 0]),
            _known(points[row, 1]),
            bool(frontier[row]),
            len(reports[system]),
            total[system],
        )
        for row, system in enumerate(systems)
    ]


def by_domain(scores: Iterable[Score], domains: Mapping[str, str], seed: int = 0) -> list[DomainInterval]:
    """Every system's mean in every domain, its tasks resampled. `domains` is each task's; one without is left out."""
    table = _table(scores)
    means = table.means()
    found: list[DomainInterval] = []
    for domain in sorted(set(domains.values())):
        columns = [place for place, task in enumerate(table.tasks) if domains.get(task) == domain]
        if not columns:
            continue
        drawn = bootstrap(means[:, columns], seed=seed)
        found.extend(
            DomainInterval(
                domain,
                system,
                _known(drawn.estimate[row]),
                _known(drawn.percentile[row, 0]),
                _known(drawn.percentile[row, 1]),
                int(drawn.n_used[row]),
                len(columns),
            )
            for row, system in enumerate(table.systems)
        )
    return found


def _table(scores: Iterable[Score]) -> _Table:
    repeats: dict[Identity, list[float]] = {}
    for score in scores:
        known = repeats.setdefault(score[:3], [])
        if score.value is not None:
            known.append(score.value)
    systems = sorted({system for system, _, _ in repeats})
    tasks = sorted({task for _, task, _ in repeats})
    samples = sorted({sample for _, _, sample in repeats})
    values = np.full((len(systems), len(tasks), len(samples)), np.nan)
    rows, columns, layers = _places(systems), _places(tasks), _places(samples)
    for (system, task, sample), known in repeats.items():
        if known:
            values[rows[system], columns[task], layers[sample]] = sum(known) / len(known)
    return _Table(systems, tasks, values)


def _places(names: Sequence[N]) -> dict[N, int]:
    return {name: place for place, name in enumerate(names)}


def _mean(values: Floats, axis: int) -> Floats:
    """Means of what is there along an axis; NaN where nothing is."""
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(present, values, 0.0).sum(axis=axis) / present.sum(axis=axis)
    return mean


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
