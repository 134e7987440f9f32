"""Gold that can be drafted and reviewed item by item, as a protocol describes it."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol, Tools
from adjudge.scoring.contract.scorecard import Evidence, Missing

__all__ = ["MET", "Drafting", "DraftsFrom", "GoldItem", "GoldItems", "GoldSource", "joined"]


MAX_SOURCE_CHARS = 100_000

MET = 0.5
"""The share of an item's points from which a report counts as meeting it."""

DraftsFrom = Literal["task", "document"]
"""The source of drafts: the task's prompt (and documents, if there are any), or documents alone."""


class GoldSource(msgspec.Struct, frozen=True):
    """A document that gold is drafted from and checked against."""

    name: str
    text: str


def joined(sources: Sequence[GoldSource]) -> str:
    """The documents as one text, each under its name, as far as a judge is shown it."""
    return "\n\n".join(f"{one.name}\n\n{one.text}" for one in sources)[:MAX_SOURCE_CHARS]


class GoldItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a task's gold: in which `part`, and its words as gold has them.

    A `fact` is something that the source says, a `requirement` something that a report must do, an `anchor` a keyword
    to use and a `deviation` one to avoid. `explanation` is what else a judge is shown of it, `truth` whether a fact
    with a label is true.

    `line` is how the evidence of a scorecard names the item, whose value is `full` for a report that meets it; ""
    where no line is about it. A `matched` item is met if any line names it as its outcome. A `penalty` takes points
    away.
    """

    part: str
    item: str
    kind: Literal["fact", "requirement", "anchor", "deviation"]
    explanation: str = ""
    truth: bool | None = None
    line: str = ""
    full: float = 1.0
    matched: bool = False
    penalty: bool = False

    @property
    def text(self) -> str:
        """The item with its explanation."""
        return f"{self.item}: {self.explanation}" if self.explanation else self.item

    def given(self, evidence: Iterable[Evidence]) -> float | None:
        """The points of a report with this `evidence` for the item, as a share of `full`; None if unknown."""
        if self.matched:
            return float(any(self.item in line.outcome.words for line in evidence))
        for line in evidence:
            if line.what == self.line and line.value is not None:
                return line.value / self.full
        return None


class GoldItems(msgspec.Struct, frozen=True, kw_only=True):
    """All items of a task's gold, in order.

    `weights` holds, by part, weights that should sum to 1; `sources` are the documents that the gold itself carries.
    """

    items: tuple[GoldItem, ...]
    weights: dict[str, tuple[float, ...]] = {}
    sources: tuple[GoldSource, ...] = ()


@runtime_checkable
class Drafting(ScoringProtocol, Protocol):
    """A protocol whose gold the judge can draft, whole or in part, and whose items can be reviewed."""

    @property
    def drafts_from(self) -> DraftsFrom:
        """The source of drafts; a class variable if the protocol is a struct."""
        ...

    async def draft(
        self, case: Case, tools: Tools, sources: Sequence[GoldSource] = ()
    ) -> msgspec.Raw | Missing:
        """The gold of the case's task, whole, with what it lacked; the report is not looked at. Raises GoldError."""
        ...

    def gold_items(self, case: Case) -> GoldItems:
        """The items of the task's gold as it is, without asking a judge; none if it has none. Raises GoldError."""
        ...


def invalid_gold(protocol: ScoringProtocol, tasks: Iterable[Task]) -> list[str]:
    """What is wrong with the gold of each of `tasks` whose gold the protocol cannot read; missing gold is left out."""
    found = []
    if isinstance(protocol, CaseMetrics):
        for task in tasks:
            try:
                protocol.metrics_of(Case(task=task, report=Report(task_id=task.id, system="any", text="")))
            except GoldError as error:
                if error.reason == "gold_invalid":
                    found.append(str(error))
    return found
