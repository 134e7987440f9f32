"""What a snapshot lacks of the pages that reports cite, known before anything is judged."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import msgspec

from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.formats.dataset import Located
from adjudge.fetchers.snapshot import read_index
from adjudge.fetchers.urls import ByPage, MalformedURL, NormalURL, normalise_url
from adjudge.judges.plural import plural
from adjudge.scoring.text.citations import cited

__all__ = ["LOOKED_AT", "AbsentPages", "absent_pages"]

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
