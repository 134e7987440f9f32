"""What a run scores, in batches: reports, all or of as many tasks as needed; then comparisons of systems."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats.dataset import Dataset, drawn
from adjudge.engine.runs.record import Resolution, Spending
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Comparing
from adjudge.scoring.contract.scorecard import Scorecard

if TYPE_CHECKING:
    from adjudge.engine.runs.resolver import Resolver
    from adjudge.engine.runs.tournament import Rounds


class Course:
    """The course of a run of `config` over `dataset`. What comes next may depend on the scorecards taken in.

    Raises ConfigError.
    """

    def __init__(self, config: RunConfig, dataset: Dataset) -> None:
        self._dataset, self._repeats = dataset, config.repeats
        self._resolver, self._rounds = _resolver(config, dataset), _rounds(config, dataset)
        alone = sum(not isinstance(one, Comparing) for one in config.resolved.protocols)
        self.scorecards = len(dataset.reports) * config.repeats * alone
        self.scorecards += 0 if self._rounds is None else self._rounds.scorecards

    @property
    def steps(self) -> list[Callable[[Scorecard], None]]:
        """Takes in every scorecard before the next batch."""
        followers = (self._resolver, self._rounds)
        return [one.take for one in followers if one is not None]

    def batches(self, spending: Spending) -> Iterator[Iterator[Case]]:
        """The cases of every batch; `spending` adds up what their reports took."""
        parts = [self._dataset] if self._resolver is None else self._resolver.batches()
        for part in parts:
            yield spending.watch(part.cases(self._repeats))
        if self._rounds is not None:
            yield from self._rounds.batches()

    def sample(self, repeats: int = 1, share: float = 1.0) -> Iterator[Case]:
        """The cases before any answer is known: the right number of comparisons, but not the actual pairs.

        A `share` below 1 draws as much of the reports and of the comparisons, always the same ones.
        """
        compared = () if self._rounds is None else self._rounds.sample(repeats, share)
        reports = drawn(self._dataset.reports, share)
        return chain(msgspec.structs.replace(self._dataset, reports=reports).cases(repeats), compared)

    def stopped(self) -> Resolution | None:
        """How the run ended, if it was to stop when its comparisons were resolved."""
        return None if self._resolver is None else self._resolver.result()


# Each imports statistics where it is needed: other runs need them for their leaderboard alone.


def _resolver(config: RunConfig, dataset: Dataset) -> "Resolver | None":
    if (stop := config.resolved.stop) is None:
        return None
    from adjudge.engine.runs.resolver import Resolver

    return Resolver(stop, config, dataset)


def _rounds(config: RunConfig, dataset: Dataset) -> "Rounds | None":
    if (comparing := config.resolved.comparing) is None:
        return None
    from adjudge.engine.runs.tournament import Rounds

    return Rounds(comparing, config, dataset)
