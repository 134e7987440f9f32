"""What a run could not read of the pages that its reports cite, by host and reason."""

from typing import get_args

import msgspec

from adjudge.fetchers.page import PageReason
from adjudge.fetchers.urls import MalformedURL, site_of
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["Unread", "UnreadPages"]

_REASONS = frozenset(get_args(PageReason)) - {"citation_malformed", "pages_off"}
_MOST = 200  # hosts and reasons that are kept
_LONGEST = 200  # characters of an example


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """The `pages` of a `host` that were not read for one `reason`; "" stands for all further hosts.

    `example` is the first of their addresses in alphabetical order.
    """

    host: str
    reason: str
    pages: int
    example: str


class UnreadPages:
    """Counts pages that were not read, as scorecards pass; the same whatever their order."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, str], set[int]] = {}
        self._examples: dict[tuple[str, str], str] = {}

    def take(self, card: Scorecard) -> None:
        """Count what `card` names."""
        for line in () if card.key else card.evidence:  # one with a key rests on no page
            if line.url and line.reason in _REASONS:
                try:
                    key = site_of(line.url), line.reason
                except MalformedURL:
                    continue
                self._pages.setdefault(key, set()).add(hash(line.url))
                self._examples[key] = min(self._examples.get(key, line.url), line.url)

    def result(self) -> tuple[Unread, ...]:
        """What was not read until now, most pages first."""
        found = [
            Unread(
                host=host, reason=reason, pages=len(pages), example=self._examples[host, reason][:_LONGEST]
            )
            for (host, reason), pages in self._pages.items()
        ]
        return joined(found)


def joined(found: list[Unread]) -> tuple[Unread, ...]:
    """What several runs could not read, most pages first; hosts beyond 200 are counted together."""
    counts: dict[tuple[str, str], Unread] = {}
    for one in found:
        before = counts.get((one.host, one.reason))
        counts[one.host, one.reason] = (
            one
            if before is None
            else msgspec.structs.replace(
                before, pages=max(before.pages, one.pages), example=min(before.example, one.example)
            )
        )
    ordered = sorted(counts.values(), key=lambda one: (not one.host, -one.pages, one.host, one.reason))
    rest: dict[str, Unread] = {}
    for one in ordered[_MOST:]:
        before = rest.get(one.reason)
        pages = one.pages if before is None else before.pages + one.pages
        example = one.example if before is None else before.example
        rest[one.reason] = Unread(host="", reason=one.reason, pages=pages, example=example)
    return (*ordered[:_MOST], *rest.values())
