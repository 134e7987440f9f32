"""What the gold of tasks lacks for the protocols of a run, known before anything is asked."""

from collections.abc import Iterable, Sequence

import msgspec

from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol

__all__ = ["LackingGold", "lacking_gold"]


class LackingGold(msgspec.Struct, frozen=True):
    """`lacking` of `tasks` tasks have no gold that a `protocol` can use; `why` is the first one's reason."""

    protocol: str
    lacking: int
    tasks: int
    why: str

    def __str__(self) -> str:
        lack = "lacks" if self.lacking == 1 else "lack"
        whose = "no task has" if self.lacking == self.tasks else f"{plural(self.lacking, 'task')} {lack}"
        return f"{self.protocol}: {whose} the gold it needs, and will be unscored: {self.why}"


def lacking_gold(protocols: Iterable[ScoringProtocol], tasks: Sequence[Task]) -> list[LackingGold]:
    """The protocols for which tasks lack gold, in order."""
    found = []
    for protocol in protocols:
        if isinstance(protocol, CaseMetrics):
            whys = [why for task in tasks if (why := _why(protocol, task))]
            if whys:
                found.append(LackingGold(protocol.name, len(whys), len(tasks), whys[0]))
    return found


def _why(protocol: CaseMetrics, task: Task) -> str:
    try:
        protocol.metrics_of(Case(task=task, report=Report(task_id=task.id, system="-", text="-")))
    except GoldError as error:
        return str(error)
    return ""
