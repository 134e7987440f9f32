"""What a citation points at, read or failed, with the same fields either way.

A URL's failure is data, never an exception. Its reason says who caused it:

=====================  ==============  ==================================================================
reason                 cause           what happened
=====================  ==============  ==================================================================
page_gone              source          404, 410, a host name that does not exist while others do, or a page that
                                       says itself that it is not there
page_blocked           source          refused by the guard: a report may not send us there
page_barred            source          401, 402, 403, 451, robots.txt; a login, a bot check, a request for consent
                                       or a paid article's beginning in the page's place
page_empty             source          without any text, or with none before a browser has run its scripts
page_timeout           source          no connection, no byte or no whole page in time, while other hosts
                                       answered
page_server_error      source          while other hosts answered: 5xx and any other refusal after the
                                       retries; TLS that does not verify; connection refused, reset or cut
                                       short; a name server that fails; too many redirects, or one to
                                       nowhere; broken encoding
page_unsupported       source          not a text we read (an image, an archive, an encrypted PDF), larger
                                       than the byte limit, HTML nested too deep, a PDF without text, or a
                                       page that breaks the parser or holds it beyond its limit
page_not_in_snapshot   source          not among the pages there are: those of a snapshot, of the store, or
                                       of a rollout
network_unavailable    infrastructure  a timeout or a failing server while no other host answered, or no
                                       other name resolved
page_deferred          infrastructure  never requested: our own pace or budget kept it waiting to the end
page_rate_limited      infrastructure  the site still answered 429 to the end of our patience, or asked for a
                                       longer wait than ours
pages_off              infrastructure  no page is read in this run (`fetch: off`)
snapshot_damaged       infrastructure  the snapshot lists the page, but its file cannot be read
citation_malformed     report          not a usable http or https URL
=====================  ==============  ==================================================================

A `source` failure depends on the URL that the report chose, and counts against the citation everywhere. An
infrastructure failure says nothing about the report.
"""

from abc import abstractmethod
from typing import Literal, Protocol

import msgspec

from adjudge.fetchers.urls import MalformedURL, NormalURL, normalise_url, printable, storable

__all__ = [
    "MAX_DETAIL",
    "Fetcher",
    "Page",
    "PageReason",
    "PageSource",
    "address_of",
    "could_be_read",
    "failed",
    "kind_of",
    "may_be_read",
    "media_type",
]

Kind = Literal["html", "pdf", "xml", "text"]

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_XML = frozenset({"text/xml", "application/xml"})
_TEXT = frozenset({"application/json", "application/x-ndjson", "application/yaml"})
# Not worth a byte: no server gives these names to a text. Some give them to a PDF, and say so.
_MEDIA = ("image/", "audio/", "video/", "font/", "model/")

# WHATWG MIME Sniffing, 7.1: what HTML begins with, before a space or ">".
_PAGES = (b"<!doctype html", b"<html")
_TAG_ENDS = (b" ", b">", b"\n", b"\r", b"\t")
_TAGS = (
    *(*_PAGES, b"<head", b"<script", b"<iframe", b"<h1", b"<div", b"<font", b"<table", b"<a"),
    *(b"<style", b"<title", b"<b", b"<body", b"<br", b"<p", b"<!--"),
)
_BEGINNING = 1445  # bytes that a browser looks at
_NOT_BINARY = bytes({*range(256)} - {*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})
_MOST_BINARY = 0.05  # of a labelled text; of random bytes a tenth is
_ARCHIVE = b"PK\3\4"
_MARKUP = b"{\\rtf"  # of a word processor
_SIGNATURES = (
    *(
        _ARCHIVE,
        b"Rar!",
        b"7z\xbc\xaf",
        b"\x1f\x8b",
        b"\xfd7zXZ",
        b"BZh",
        b"\xd0\xcf\x11\xe0",
        b"\x7fELF",
        b"MZ",
    ),
    *(
        b"\x89PNG",
        b"GIF8",
        b"\xff\xd8\xff",
        b"RIFF",
        b"\0\0\1\0",
        b"II*\0",
        b"MM\0*",
        b"OggS",
        b"ID3",
        b"wOF",
    ),
    *(b"SQLite format 3\0", b"PAR1", b"\x89HDF"),
)


def media_type(content_type: str) -> str:
    """The type of a Content-Type header in lower case without its parameters; "" if it has none."""
    essence = content_type.partition(";")[0].strip().lower()
    return essence[:100] if "/" in essence and essence.isascii() else ""


def may_be_read(content_type: str) -> bool:
    """Whether a body of this type is worth a request's wait: it is no picture, sound or font by its name."""
    media = media_type(content_type)
    return not media.startswith(_MEDIA) or "pdf" in media


def could_be_read(content_type: str, beginning: bytes) -> bool:
    """Whether a body that begins so may turn out to be something we read."""
    return beginning.startswith(_ARCHIVE) or kind_of(content_type, beginning) is not None


def kind_of(content_type: str, body: bytes) -> Kind | None:
    """How to read `body`, or None if we cannot: by its bytes, as browsers tell it; by its label where they do not."""
    beginning = body[:_BEGINNING]
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n\x0c").lower()
    said = _kind_said(media_type(content_type))
    if start.startswith(b"%pdf-") or (said == "pdf" and b"%PDF-" in beginning):
        return "pdf"
    binary = _binary_share(beginning, content_type)
    if (
        start.startswith(_MARKUP)
        or not may_be_read(content_type)
        or (binary and beginning.startswith(_SIGNATURES))
    ):
        return None
    if _begins_as_html(start, _PAGES if said == "xml" else _TAGS) and said not in ("html", "text"):
        return "html"
    if said == "pdf":
        return None
    if said is not None:
        return said if binary <= _MOST_BINARY else None
    if start.startswith(b"<?xml"):
        return "xml"
    return None if binary else "text"


def _binary_share(beginning: bytes, content_type: str) -> float:
    """The share of bytes that no text has, UTF-16 aside."""
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            (beginning[:-1] if len(beginning) == _BEGINNING else beginning).decode("utf-16")
        except UnicodeDecodeError:
            return 1.0
        return 0.0
    if not beginning or "utf-16" in content_type.lower():
        return 0.0
    return len(beginning.translate(None, _NOT_BINARY)) / len(beginning)


def _begins_as_html(lowered: bytes, tags: tuple[bytes, ...]) -> bool:
    return any(
        lowered.startswith(tag) and (tag == b"<!--" or lowered[len(tag) : len(tag) + 1] in _TAG_ENDS)
        for tag in tags
    )


def _kind_said(media: str) -> Kind | None:
    if media in _HTML:
        return "html"
    if media.endswith("/pdf") or media == "application/x-pdf":
        return "pdf"
    if media in _XML or media.endswith("+xml"):
        return "xml"
    if media.startswith("text/") or media in _TEXT or media.endswith("+json"):
        return "text"
    return None


PageReason = Literal[
    "page_timeout",
    "page_server_error",
    "page_not_in_snapshot",
    "page_unsupported",
    "page_gone",
    "page_blocked",
    "page_barred",
    "page_empty",
    "page_deferred",
    "page_rate_limited",
    "pages_off",
    "snapshot_damaged",
    "network_unavailable",
    "citation_malformed",
]

MAX_DETAIL = 300


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One URL as it was found. A failed page has the same fields, empty where nothing is known."""

    url: str
    """The URL in its normal form (`fetchers.urls`); as it was given if it has none."""
    final_url: str
    """Where the redirects ended; the last one tried if the page failed."""
    status: Literal["read", "failed"]
    reason: PageReason | None
    """None exactly when `status` is "read"."""
    fetched_at: float
    """Seconds since 1970, UTC; 0 if a snapshot does not say, or nothing was fetched."""
    content_type: str
    """Media type in lower case, without parameters; "" if unknown."""
    sha256: str
    """Of the body, after its content encoding was undone, in hex; "" if it was not read whole."""
    title: str
    description: str
    text: str
    """The main text."""
    detail: str = ""
    """What happened, for people: at most 300 characters."""
    size: int = 0
    """Bytes of the body, after its content encoding was undone; 0 if the page failed."""
    beside: str = ""
    """What a browser shows beside the main text: lines that are not in it."""

    @property
    def visible(self) -> str:
        """All that a browser shows: the main text, then what stands beside it."""
        return f"{self.text}\n\n{self.beside}" if self.beside else self.text


def failed(
    url: str,
    reason: PageReason,
    detail: str,
    *,
    final_url: str = "",
    fetched_at: float = 0.0,
    content_type: str = "",
    sha256: str = "",
) -> Page:
    """A page that could not be read. `final_url` defaults to `url`."""
    return Page(
        url=url,
        final_url=final_url or url,
        status="failed",
        reason=reason,
        fetched_at=fetched_at,
        content_type=content_type,
        sha256=sha256,
        title="",
        description="",
        text="",
        detail=storable(detail[:MAX_DETAIL]),
    )


def address_of(url: str) -> NormalURL | Page:
    """The normal form of `url`, or a failed page, citation_malformed, if it is not a usable URL."""
    try:
        return normalise_url(url)
    except MalformedURL as error:
        return failed(printable(url), "citation_malformed", str(error))


class PageSource(Protocol):
    """Where pages come from: `read` takes any text for a URL and normalises it once, `page` takes normal URLs only."""

    async def read(self, url: str) -> Page:
        """The page behind `url`, or the reason it cannot be read."""
        address = address_of(url)
        return address if isinstance(address, Page) else await self.page(address)

    @abstractmethod
    async def page(self, address: NormalURL) -> Page:
        """The page at `address`, or the reason it cannot be read."""
        ...


class Fetcher(PageSource, Protocol):
    """Fetches pages: answers every URL, raises for none of them, fetches equal ones in flight once."""

    async def close(self) -> None:
        """Release connections and worker processes; the fetcher cannot be used again."""
        ...
