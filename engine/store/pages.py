"""The store of pages: what each URL returned when it was read."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
import pyarrow as pa

from adjudge.engine.store.part import NAMES, Key, Name, TableKind, Text, Time
from adjudge.engine.store.parts import PartStore, Table, answering
from adjudge.engine.store.place import Place
from adjudge.engine.store.writer import FLUSH_SECONDS
from adjudge.fetchers.page import Page, PageReason
from adjudge.fetchers.urls import Allowed, split_url

__all__ = ["PAGES", "PageRow", "PageStore"]


class PageRow(msgspec.Struct, frozen=True, gc=False):
    """A page as it is stored.

    `size` is in bytes, None in parts of schema 1; `written_at` is when the page was fetched, in microseconds since the
    epoch.
    """

    key: Key
    """Hash of `source` and URL."""
    source: Name
    """Where pages are read from (`live`, or a snapshot by its hash), and by which extractor and downloader."""
    url: Text
    """The URL in its normal form, or unchanged if it has none."""
    final_url: Text
    """Where the redirects ended; the last one tried if the page failed."""
    status: Annotated[Literal["read", "failed"], NAMES]
    """`read` or `failed`."""
    reason: Annotated[PageReason | None, NAMES]
    """Why the page could not be read; null if it was."""
    content_type: Name
    """Media type in lower case, without parameters; empty if unknown."""
    sha256: Text
    """Of the body, in hexadecimal; empty if it was not read whole."""
    title: Text
    """The page's title."""
    description: Text
    """The page's own description of itself."""
    text: Text
    """The main text that was extracted from the page, which a judge is shown first."""
    detail: Text
    """What happened, for people: at most 300 characters."""
    beside: Annotated[str | None, pa.string()]
    """What a browser shows beside the main text; a statement that the main text does not support is asked of it too.

    Null in older stores.
    """
    size: Annotated[int | None, pa.int64()]
    """Bytes of the body; 0 if the page failed, null in the oldest stores."""
    written_at: Time
    """When the page was fetched."""


PAGES = TableKind("pages", PageRow, row_group=32, cached=2048, named_by=("url", "source"), journaled=False)


class PageStore(Table[PageRow]):
    """Pages by source and URL. `source` says where they are read from: live pages and each snapshot have separate keys.

    Pages that the guard blocked have separate keys. A page read under another policy therefore takes precedence
    over its block, and a block does not answer if `allow` (in the guard's syntax) names the address it ended at.
    """

    def __init__(
        self,
        place: Place,
        source: str,
        *,
        allow: Sequence[str] = (),
        retry_unscored: bool = False,
        flush_seconds: float = FLUSH_SECONDS,
        cached: int | None = None,
    ) -> None:
        self.source = source
        self._exceptions = Allowed(allow) if allow else None
        super().__init__(PartStore(place, PAGES, answering(retry_unscored), flush_seconds, cached))

    def _key(self, url: str, *, blocked: bool = False) -> bytes:
        text = f"{self.source}\n{url}" + "\nblocked" * blocked
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def _allowed(self, url: str) -> bool:
        if self._exceptions is None:
            return False
        parts = split_url(url)
        return not parts.userinfo and self._exceptions.holds(parts.host, parts.port)

    async def get(self, url: str) -> Page | None:
        """The stored page of `url`, or None."""
        row = await self._parts.get(self._key(url)) or await self._parts.get(self._key(url, blocked=True))
        if row is None:
            return None
        if row.reason == "page_blocked" and self._allowed(row.final_url):
            return None
        return Page(
            url=row.url,
            final_url=row.final_url,
            status=row.status,
            reason=row.reason,
            fetched_at=row.written_at / 1e6,
            content_type=row.content_type,
            sha256=row.sha256,
            title=row.title,
            description=row.description,
            text=row.text,
            detail=row.detail,
            size=row.size or 0,
            beside=row.beside or "",
        )

    def put(self, url: str, page: Page) -> None:
        """Keep `page` under the requested `url`. Raises StoreError if an earlier part could not be written."""
        row = PageRow(
            key=self._key(url, blocked=page.reason == "page_blocked"),
            source=self.source,
            url=page.url,
            final_url=page.final_url,
            status=page.status,
            reason=page.reason,
            content_type=page.content_type,
            sha256=page.sha256,
            title=page.title,
            description=page.description,
            text=page.text,
            detail=page.detail,
            beside=page.beside,
            size=page.size,
            written_at=round(page.fetched_at * 1e6),
        )
        self._parts.put((row, 400 + len(page.text) + len(page.beside)))
