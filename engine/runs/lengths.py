"""How long a system's reports are, as scorecards pass."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["MeanLength", "ReportLengths", "best_known"]


class MeanLength(msgspec.Struct, frozen=True, kw_only=True):
    """Means over so many `reports` of a system: words, about how many tokens, addresses cited."""

    reports: int
    words: float
    tokens: float
    citations: float


class ReportLengths:
    """Adds up lengths of reports, each once for a protocol, at the judge's first repeat."""

    def __init__(self) -> None:
        self._reports: Counter[tuple[str, str]] = Counter()
        self._sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])

    def take(self, card: Scorecard) -> None:
        """Add the report of `card`, if its length is known."""
        if card.repeat or card.length is None:
            return
        of = card.system, card.protocol
        self._reports[of] += 1
        for place, one in enumerate((card.length.words, card.length.tokens, card.length.citations)):
            self._sums[of][place] += one

    def result(self) -> dict[str, MeanLength]:
        """The means of every system until now, from the protocol that saw the most of its reports."""
        found = []
        for (system, protocol), count in sorted(self._reports.items()):
            words, tokens, citations = (one / count for one in self._sums[system, protocol])
            found.append({system: MeanLength(reports=count, words=words, tokens=tokens, citations=citations)})
        return best_known(found)


def best_known(several: Iterable[dict[str, MeanLength]]) -> dict[str, MeanLength]:
    """Of every system the means over the most reports, the first of equals."""
    found: dict[str, MeanLength] = {}
    for one in several:
        for system, mean in one.items():
            if system not in found or mean.reports > found[system].reports:
                found[system] = mean
    return found
