"""External downloaders: a scraping service or a browser, for pages that plain HTTP cannot get.

A package offers one under the entry point `adjudge.fetchers`: a msgspec struct whose fields are its options, with the
methods of `Downloader`. The fetcher around it applies the guard, limits, pace, robots.txt and extraction.
"""

from typing import Any, Protocol

import msgspec

__all__ = ["Download", "Downloader", "installed_downloaders"]

ENTRY_POINTS = "adjudge.fetchers"


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a URL: the page's own HTTP status, and its body with all encodings undone."""

    body: bytes
    content_type: str = "text/html; charset=utf-8"
    status_code: int = 200
    final_url: str = ""
    """Where redirects ended; the URL itself if empty."""


class Downloader(Protocol):
    """Gets one URL at a time, many at once, in the event loop of the run, which it must not block."""

    @property
    def version(self) -> str:
        """Another one whenever pages could come out differently: pages are stored under it."""
        ...

    async def download(self, url: str) -> Download:
        """The page at a public http or https URL. An exception means that the downloader failed, not the page."""
        ...

    async def close(self) -> None:
        """Release what is held open."""
        ...


def installed_downloaders() -> dict[str, Any]:
    """The entry points of all installed downloaders, by name."""
    from importlib.metadata import entry_points  # commands that look something up need none

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
