"""Stops a run once the full run's order of systems is known; tasks come in seeded order, in batches."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from adjudge.engine.config.metrics import Name, named
from adjudge.engine.config.run import RunConfig, StopConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import nearest
from adjudge.engine.formats.dataset import Dataset
from adjudge.engine.runs.record import Resolution, ResolvedPair
from adjudge.scoring.contract.protocol import ScoringProtocol
from adjudge.scoring.contract.scorecard import Metric, Scorecard
from adjudge.scoring.kernels.comparison.confidence_sequences import confidence_sequence

BATCHES = 20  # of equal size, at most


class Resolver:
    """Hands out the tasks of `dataset` until the comparisons of `stop` are resolved. Raises ConfigError."""

    def __init__(self, stop: StopConfig, config: RunConfig, dataset: Dataset) -> None:
        self._stop = stop
        self._dataset = dataset
        self._protocols = config.resolved.protocols
        self._repeats = config.repeats
        self._protocol, self._metric = _found(stop.metric, self._protocols)
        self._pairs = _pairs(stop, dataset.systems)
        self._tasks = _ordered(dataset, config.seed)
        self._judged = 0
        self._values: dict[tuple[str, str], dict[tuple[int, int], float]] = defaultdict(dict)
        self._questions: Counter[str] = Counter()
        self._cards: Counter[str] = Counter()

    def batches(self) -> Iterator[Dataset]:
        """The next tasks with the reports of all systems; ends when all pairs are resolved or no task is left."""
        size = max(1, round(len(self._tasks) / BATCHES))
        by_task = defaultdict(list)
        for report in self._dataset.reports:
            by_task[report.task_id].append(report)
        while self._judged < len(self._tasks):
            names = self._tasks[self._judged : self._judged + size]
            tasks = {name: self._dataset.tasks[name] for name in names}
            yield Dataset(tasks, [report for name in names for report in by_task[name]], [])
            self._judged += len(names)
            if all(pair.ahead is not None for pair in self._resolved()):
                return

    def take(self, card: Scorecard) -> None:
        """Take in a scorecard of the batch; comparisons are ignored."""
        if card.rival:
            return
        self._cards[card.protocol] += 1
        self._questions[card.protocol] += len(card.judgments)
        value = card.scores.get(self._metric.name) if card.protocol == self._protocol else None
        if value is not None:
            self._values[card.system, card.task_id][card.sample, card.repeat] = value

    def result(self) -> Resolution:
        """How the run ended."""
        planned = len(self._dataset.reports) * self._repeats
        spared = {name: planned - count for name, count in self._cards.items()}
        return Resolution(
            protocol=self._protocol,
            metric=self._metric.name,
            error_rate=self._stop.error_rate,
            planned_tasks=len(self._tasks),
            judged_tasks=self._judged,
            pairs=tuple(self._resolved()),
            asked_questions=self._questions.total(),
            saved_questions=round(
                sum(self._questions[name] / self._cards[name] * count for name, count in spared.items())
            ),
            saved_scorecards=sum(spared.values()),
        )

    def _resolved(self) -> Iterator[ResolvedPair]:
        systems = self._dataset.systems
        row = {name: number for number, name in enumerate(systems)}
        scores = np.array(
            [[self._value(system, task) for task in self._tasks[: self._judged]] for system in systems]
        )
        differences = np.array([scores[row[a]] - scores[row[b]] for a, b in self._pairs])
        found = confidence_sequence(
            differences, len(self._tasks), error_rate=self._stop.error_rate / len(self._pairs)
        )
        for number, (a, b) in enumerate(self._pairs):
            resolved = found.resolved[number]
            at = int(resolved.argmax()) if resolved.any() else self._judged - 1
            low, high = float(found.low[number, at]), float(found.high[number, at])
            better = (high < 0.0) if self._metric.lower_is_better else (low > 0.0)
            yield ResolvedPair(
                a=a,
                b=b,
                ahead=(a if better else b) if resolved.any() else None,
                resolved_at=at + 1 if resolved.any() else None,
                difference=_finite(found.mean[number, -1]),
                low=_finite(low),
                high=_finite(high),
                n_used=int(found.n_used[number, -1]),
            )

    def _value(self, system: str, task: str) -> float:
        """The mean over samples and repeats, in their own order; NaN where nothing is scored."""
        values = self._values.get((system, task))
        return float(np.mean([values[key] for key in sorted(values)])) if values else float("nan")


def _found(said: str, protocols: tuple[ScoringProtocol, ...]) -> tuple[str, Metric]:
    known = {Name(one.name, metric.name): metric for one in protocols for metric in one.metrics}
    name = named(said, known, "until_resolved", ConfigError)
    if known[name].ratio is not None:
        raise ConfigError(
            f"until_resolved: {said!r} is pooled over tasks and has no per-task value; choose another metric"
        )
    return name.protocol, known[name]


def _pairs(stop: StopConfig, systems: list[str]) -> list[tuple[str, str]]:
    for a, b in stop.pairs:
        for system in (a, b):
            if system not in systems:
                raise ConfigError(f"until_resolved: unknown system {system!r}; {nearest(system, systems)}")
        if a == b:
            raise ConfigError(f"until_resolved: {a!r} is compared with itself; name two systems")
    if len(systems) < 2:
        raise ConfigError("until_resolved: needs the reports of at least two systems")
    return list(dict.fromkeys(stop.pairs)) or list(combinations(systems, 2))


def _ordered(dataset: Dataset, seed: int) -> list[str]:
    """Tasks that have a report, in an order that depends on the seed and each task's name, not on other tasks."""
    tasks = {report.task_id for report in dataset.reports}
    return sorted(tasks, key=lambda task: hashlib.blake2b(f"{seed}\n{task}".encode()).digest())


def _finite(value: float | np.float64) -> float | None:
    return float(value) if np.isfinite(value) else None
