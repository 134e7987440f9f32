"""The store of pages: what a URL pointed at when it was read."""

import hashlib
from collections.abc import Sequence

import pyarrow as pa

from adjudge.engine.store.parts import CACHED_GROUPS, FLUSH_SECONDS, PartStore, TableKind
from adjudge.engine.store.place import Place
from adjudge.engine.store.table import Table, answering
from adjudge.fetchers.guard import Guard
from adjudge.fetchers.page import Page
from adjudge.fetchers.urls import split_url

__all__ = ["PAGES", "PageStore"]

_NAMES = pa.dictionary(pa.int32(), pa.string())

PAGES = TableKind(
    "pages",
    pa.schema(
        [
            ("key", pa.binary(16)),
            ("source", _NAMES),
            ("url", pa.string()),
            ("final_url", pa.string()),
            ("status", _NAMES),
            ("reason", _NAMES),
            ("content_type", _NAMES),
            ("sha256", pa.string()),
            ("title", pa.string()),
            ("description", pa.string()),
            ("text", pa.string()),
            ("detail", pa.string()),
            ("size", pa.int64()),
            ("written_at", pa.timestamp("us", "UTC")),
        ]
    ),
    row_group=32,
)


class PageStore(Table):
    """Pages by source and URL. `source` says where they are read from: live ones and each snapshot are kept apart.

    What the guard refused is kept apart too, so that a page read under another policy answers for its block, and is
    no answer where `allow` (as the guard takes it) names the address that it ended at.
    """

    def __init__(
        self,
        place: Place,
        source: str,
        *,
        allow: Sequence[str] = (),
        retry_unscored: bool = False,
        flush_seconds: float = FLUSH_SECONDS,
        cached: int = CACHED_GROUPS,
    ) -> None:
        self.source = source
        self._guard = Guard(allow) if allow else None
        super().__init__(PartStore(place, PAGES, answering(retry_unscored), flush_seconds, cached))

    def _key(self, url: str, *, blocked: bool = False) -> bytes:
        text = f"{self.source}\n{url}" + "\nblocked" * blocked
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def _allowed(self, url: str) -> bool:
        if self._guard is None:
            return False
        parts = split_url(url)
        return not parts.userinfo and self._guard.allows(parts.host, parts.port)

    async def get(self, url: str) -> Page | None:
        """The stored page of `url`, or None."""
        row = await self._parts.get(self._key(url)) or await self._parts.get(self._key(url, blocked=True))
        if row is None:
            return None
        (
            _,
            _,
            kept,
            final,
            status,
            reason,
            content_type,
            sha256,
            title,
            description,
            text,
            detail,
            size,
            at,
        ) = row
        if reason == "page_blocked" and self._allowed(final):
            return None
        return Page(
            url=kept,
            final_url=final,
            status=status,
            reason=reason,
            fetched_at=at / 1e6,
            content_type=content_type,
            sha256=sha256,
            title=title,
            description=description,
            text=text,
            detail=detail,
            size=size or 0,
        )

    def put(self, url: str, page: Page) -> None:
        """Keep `page` under the URL it was asked by. Raises StoreError if an earlier part could not be written."""
        row = (
            self._key(url, blocked=page.reason == "page_blocked"),
            self.source,
            page.url,
            page.final_url,
            page.status,
            page.reason,
            page.content_type,
            page.sha256,
            page.title,
            page.description,
            page.text,
            page.detail,
            page.size,
            round(page.fetched_at * 1e6),
        )
        self._parts.put(row, 400 + len(page.text))
