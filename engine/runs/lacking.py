"""What a run lacks, known before anything is judged: pages in its snapshot, and gold for its protocols."""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.formats.dataset import Located
from adjudge.fetchers.snapshot import read_index
from adjudge.fetchers.urls import ByPage, MalformedURL, NormalURL, normalise_url
from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol
from adjudge.scoring.text.citations import cited

__all__ = ["LOOKED_AT", "AbsentPages", "LackingGold", "absent_pages", "lacking_gold"]

LOOKED_AT = 100
"""Reports that are looked at: of a large run enough to see that the snapshot is another's."""
_EXAMPLES = 3


class AbsentPages(msgspec.Struct, frozen=True):
    """The first `reports` of a run cite `cited` pages; its snapshot lacks `lacking` of them, `such_as` among them."""

    reports: int
    cited: int
    lacking: int
    such_as: tuple[str, ...]

    def __str__(self) -> str:
        named = ", ".join(self.such_as) + (", ..." if self.lacking > len(self.such_as) else "")
        return (
            f"the snapshot lacks {self.lacking:,} of {plural(self.cited, 'page')} that "
            f"{plural(self.reports, 'report')} cite{'s' if self.reports == 1 else ''}, and they will count as "
            f"page_not_in_snapshot: {named}"
        )


def absent_pages(config: FetchConfig, reports: Iterable[Located]) -> AbsentPages | None:
    """What the snapshot of `config` lacks; None if nothing, or if pages come from elsewhere. Raises SnapshotError."""
    if config.mode != "snapshot" or config.snapshot is None:
        return None
    entries, _ = read_index(Path(config.snapshot))
    looked_at = [one.load() for one in islice(reports, LOOKED_AT)]
    urls: dict[NormalURL, None] = {}
    for report in looked_at:
        for triplet in cited(report.text, report.citations).triplets:
            try:
                urls[normalise_url(triplet.url)] = None
            except MalformedURL:
                continue
    held = ByPage(entries)
    lacking = [url for url in urls if held.find(url) is None]
    if not lacking:
        return None
    return AbsentPages(len(looked_at), len(urls), len(lacking), tuple(lacking[:_EXAMPLES]))


class LackingGold(msgspec.Struct, frozen=True):
    """`lacking` of `tasks` tasks have no gold that a `protocol` can use; `why` is the first one's reason."""

    protocol: str
    lacking: int
    tasks: int
    why: str

    def __str__(self) -> str:
        which = "all " if self.lacking == self.tasks > 1 else ""
        lack = "lacks" if self.lacking == 1 else "lack"
        return (
            f"{self.protocol}: {which}{plural(self.lacking, 'task')} {lack} the gold it needs and will be unscored: "
            f"{self.why}"
        )


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
