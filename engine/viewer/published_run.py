"""A run as it is published: without the gold that its benchmark keeps to itself."""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.records.record import RunRecord
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ReportQuery
from adjudge.scoring.contract.protocol import ExplainedCriterion
from adjudge.scoring.contract.scorecard import Evidence, Scorecard

__all__ = ["PublishedRun", "withheld"]

_KEPT = 16  # reports whose scorecards are kept: each has dozens of pages


def withheld(record: RunRecord) -> dict[str, str]:
    """The protocols of a run whose gold is not to be published, and why."""
    loaders = protocol_loaders()
    found = {name: getattr(loaders[name](), "withheld", "") for name in record.metrics if name in loaders}
    return {name: why for name, why in found.items() if why}


class PublishedRun(OpenRun):
    """The run in `folder`, its evidence without what the protocols `withheld` keep. Raises UsageError."""

    def __init__(self, folder: str, withheld: Mapping[str, str]) -> None:
        super().__init__(folder)
        self._withheld = withheld
        self._criteria: dict[tuple[str, str, int, int, str], list[ExplainedCriterion]] = {}
        self._found: dict[tuple[str, str, int, int], list[Scorecard]] = {}

    async def find_cards(self, wanted: ReportQuery) -> list[Scorecard]:
        """The scorecards of a report; what names withheld gold is replaced by a sentence."""
        identity = (wanted.system, wanted.task, wanted.sample, wanted.repeat)
        if identity not in self._found:
            while len(self._found) >= _KEPT:
                del self._found[next(iter(self._found))]
            self._found[identity] = [self._published(card) for card in await super().find_cards(wanted)]
        return self._found[identity]

    async def explained(self, wanted: ReportQuery, protocol: str) -> list[ExplainedCriterion]:
        """What stands behind the criteria of a report's task; nothing where its gold is withheld."""
        if protocol in self._withheld:
            return []
        identity = (wanted.system, wanted.task, wanted.sample, wanted.repeat, protocol)
        if identity not in self._criteria:
            while len(self._criteria) >= _KEPT:
                del self._criteria[next(iter(self._criteria))]
            self._criteria[identity] = await super().explained(wanted, protocol)
        return self._criteria[identity]

    async def every_card(self, system: str, task: str) -> list[Scorecard]:
        """All scorecards of a system for a task, by sample and repeat. Raises StoreError."""
        wanted = [
            ReportQuery(system=system, task=task, sample=sample, repeat=repeat)
            for sample, repeat in self._numbers.get((system, task), ())
        ]
        return [card for one in wanted for card in await self.find_cards(one)]

    def tasks_of(self, system: str) -> list[str]:
        """The tasks that a system has scores for, in the order of the run's."""
        return [task for task in self.record.tasks if (system, task) in self._numbers]

    @cached_property
    def _numbers(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """The samples and repeats of each system and task that has scores."""
        identities = self.scores.select(["system", "task_id", "sample", "repeat"])
        columns = [identities[name].to_pylist() for name in identities.column_names]
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for system, task, sample, repeat in sorted(set(zip(*columns, strict=True))):
            found.setdefault((system, task), []).append((sample, repeat))
        return found

    def _published(self, card: Scorecard) -> Scorecard:
        why = self._withheld.get(card.protocol)
        if why is None:
            return card
        said = f"The evidence is not published: it tells the gold of {card.protocol}, which is {why}."
        return msgspec.structs.replace(card, evidence=(Evidence(what=said, outcome=""),))
