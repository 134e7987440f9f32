"""The pages of a case whose sites rested, and when it comes back for them.

Others go first where a case itself is why a site is in doubt: where one of its own pages was refused or timed out last,
it comes back once only, and later.
"""

from adjudge.fetchers.page import Page
from adjudge.fetchers.urls import NormalURL, site_of

__all__ = ["PAUSE", "Deferred"]

PAUSE = 1.0
"""Seconds between two looks at whether a site answers again: less than it rests (`fetchers/pace.py`, REST)."""
_BEHIND = 5  # pauses of those whose own page was refused or timed out
_DOUBT = ("page_rate_limited", "page_timeout")


class Deferred:
    """What became of the failed pages of a case: of these, only deferred ones are asked for a second time."""

    def __init__(self) -> None:
        self._failed: dict[NormalURL, Page] = {}
        self._waiting: dict[str, dict[NormalURL, None]] = {}  # by site
        self._pauses: dict[str, int] = {}  # of sites in doubt for what a page of this case came to

    def note(self, address: NormalURL, page: Page) -> None:
        """Learn what became of `address`."""
        site = site_of(address)
        if page.reason == "page_deferred":
            self._waiting.setdefault(site, {})[address] = None
            return
        waiting = self._waiting.get(site, {})
        waiting.pop(address, None)
        if not waiting:
            self._waiting.pop(site, None)
        if page.status == "failed":
            self._failed[address] = page
        if page.reason in _DOUBT:
            self._pauses.setdefault(site, 0)
        else:
            self._pauses.pop(site, None)

    def known(self, address: NormalURL) -> Page | None:
        """The failed page at `address`, if it was asked for."""
        return self._failed.get(address)

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to come back for."""
        return any(self._pauses.get(site, 0) < _BEHIND for site in self._waiting)

    def due(self) -> list[NormalURL]:
        """After another pause: a page of each site that may be tried now."""
        for site in self._waiting.keys() & self._pauses.keys():
            self._pauses[site] += 1
        return [
            next(iter(pages))
            for site, pages in self._waiting.items()
            if self._pauses.get(site, _BEHIND) == _BEHIND
        ]
