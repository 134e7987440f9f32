"""Which comparisons of systems a run makes: all, or rounds of the most informative ones given the answers so far.

A comparison is a pair of systems and a task (and a sample, where systems have several). Rounds make the choice a
function of the answers alone, regardless of their order and the number of workers.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, groupby
from typing import NamedTuple

import msgspec
import numpy as np

from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import nearest
from adjudge.engine.formats.dataset import Dataset, drawn
from adjudge.scoring.contract.case import Case, Report
from adjudge.scoring.contract.protocol import Comparing
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.kernels.comparison.strengths import most_telling

ROUNDS = 20


class _Match(NamedTuple):
    """A comparison of two systems, `a` before `b`, by the task's place in the data set."""

    place: int
    task: str
    a: str
    b: str
    sample: int


class Rounds:
    """Hands out the comparisons of `protocol` in rounds; the scorecards of each must be taken in before the next.

    A system without a report for a task is compared by an empty one, which loses. Raises ConfigError.
    """

    def __init__(self, protocol: Comparing, config: RunConfig, dataset: Dataset) -> None:
        self._protocol = protocol
        self._repeats = config.repeats
        self._dataset = dataset
        self._by_task = defaultdict(list)
        for one in dataset.reports:
            self._by_task[one.task_id].append(one)
        self._pairs = _pairs(protocol, dataset.systems)
        self._waiting = {pair: _ordered(dataset, pair, config.seed) for pair in self._pairs}
        there = sum(map(len, self._waiting.values()))
        self._budget = min(there, protocol.budget or there)
        self.there = there  # how many comparisons there are
        row = {name: place for place, name in enumerate(dataset.systems)}
        self._place = {pair: (row[pair[0]], row[pair[1]]) for pair in self._pairs}
        self._won = np.zeros((len(row), len(row)))

    @property
    def scorecards(self) -> int:
        """How many scorecards there will be."""
        return self._budget * self._repeats

    def batches(self) -> Iterator[Iterator[Case]]:
        """The cases of every round."""
        rounds = 1 if self._protocol.budget is None or self._budget == self.there else ROUNDS
        for number in range(rounds):
            size = self._budget * (number + 1) // rounds - self._budget * number // rounds
            if size:
                yield self._cases(self._next(size), self._repeats)

    def sample(self, repeats: int, share: float) -> Iterator[Case]:
        """As many cases as the run will score, before any answer is known: of each pair as many as of the others.

        A `share` below 1 draws as much of them.
        """
        rows = max(map(len, self._waiting.values()))
        every = (found[row] for row in range(rows) for found in self._waiting.values() if row < len(found))
        matches = [match for match, _ in zip(every, range(self._budget), strict=False)]
        return self._cases(sorted(drawn(matches, share)), repeats)

    def take(self, card: Scorecard) -> None:
        """Take in a scorecard of the round; one without a value carries no information."""
        won = card.scores.get(self._protocol.metrics[0].name)
        pair = card.system, card.rival
        if card.protocol != self._protocol.name or won is None:
            return
        a, b = self._place[pair]
        self._won[a, b] += won
        self._won[b, a] += 1.0 - won

    def _next(self, size: int) -> list[_Match]:
        """The comparisons of the next round, by task."""
        if size >= sum(map(len, self._waiting.values())):
            counts = {pair: len(found) for pair, found in self._waiting.items()}
        else:
            left = np.zeros_like(self._won)
            for pair, found in self._waiting.items():
                left[self._place[pair]] = len(found)
            more = most_telling(self._won / self._repeats, left, size)
            counts = {pair: int(more[self._place[pair]]) for pair in self._pairs}
        chosen = [self._waiting[pair].pop() for pair, count in counts.items() for _ in range(count)]
        return sorted(chosen)

    def _cases(self, matches: Iterable[_Match], repeats: int) -> Iterator[Case]:
        """The cases of `matches`, which come task by task: each report of a task is read once."""
        for task, of_task in groupby(matches, key=lambda match: match.task):
            wanted = list(of_task)
            systems = {name for match in wanted for name in (match.a, match.b)}
            reports: defaultdict[str, list[Report]] = defaultdict(list)
            for one in sorted(self._by_task[task], key=lambda one: one.sample):
                if one.system in systems:  # numbered as comparisons are
                    of_system = reports[one.system]
                    of_system.append(msgspec.structs.replace(one.load(), sample=len(of_system)))
            for match in wanted:
                own, rival = (_report(reports[name], match, name) for name in (match.a, match.b))
                for repeat in range(repeats):
                    yield Case(task=self._dataset.tasks[task], report=own, rival=rival, repeat=repeat)


def _report(reports: Sequence[Report], match: _Match, system: str) -> Report:
    """The system's report of this sample, or an empty one."""
    if match.sample < len(reports):
        return reports[match.sample]
    return Report(task_id=match.task, system=system, sample=match.sample, text="")


def _pairs(protocol: Comparing, systems: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of systems that are compared, in order; with a baseline, it comes second."""
    name, baseline = protocol.name, protocol.baseline
    if len(systems) < 2:
        raise ConfigError(
            f"protocols: {name}: needs the reports of at least two systems; add some to reports:"
        )
    if baseline is None:
        return list(combinations(systems, 2))
    if baseline not in systems:
        raise ConfigError(
            f"protocols: {name}: baseline: unknown system {baseline!r}; {nearest(baseline, systems)}"
        )
    others = [one for one in systems if one != baseline]
    return [(one, baseline) if one < baseline else (baseline, one) for one in others]


def _ordered(dataset: Dataset, pair: tuple[str, str], seed: int) -> list[_Match]:
    """All comparisons of a pair, in an order that the seed and the tasks' names decide; the last go first.

    Tasks without reports are skipped; samples are paired in order.
    """
    samples: dict[str, dict[str, int]] = {}
    for one in dataset.reports:
        if one.system in pair:
            of_task = samples.setdefault(one.task_id, {})
            of_task[one.system] = of_task.get(one.system, 0) + 1
    places = {name: place for place, name in enumerate(dataset.tasks)}
    found = [
        _Match(places[task], task, *pair, sample)
        for task, counts in samples.items()
        for sample in range(min(counts.get(name, 1) for name in pair))
    ]
    words = "\n".join((str(seed), *pair))
    return sorted(
        found, key=lambda match: hashlib.blake2b(f"{words}\n{match.task}\n{match.sample}".encode()).digest()
    )
