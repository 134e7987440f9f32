"""Pages as a WARC file, the format of web archives, and the pages of any WARC file as a snapshot folder.

Only extracted texts were kept of fetched pages, so every page read is a `conversion` record of its main text, and every
page has a `metadata` record of type PAGE: as JSON, its entry of the snapshot's index and what stands beside the main
text. Other readers see the main texts; `unpack_warc` restores every field.
"""

import io
import mimetypes
import time
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from adjudge.fetchers.bodies import receive
from adjudge.fetchers.failures import Failure, status_failure
from adjudge.fetchers.files import whole_file
from adjudge.fetchers.limits import DEFAULT_LIMITS
from adjudge.fetchers.page import Page, media_type
from adjudge.fetchers.snapshot import Entry, SnapshotError, entry_of, new_folder, render, write_index
from adjudge.fetchers.urls import MalformedURL, NormalURL, join_url, normalise_url

if TYPE_CHECKING:
    from adjudge.fetchers.warc_records import Record

PAGE = "application/vnd.adjudge.page+json"
MAX_PAGES = 1_000_000


class _Described(Entry, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An entry of the index, and what the page shows beside its main text."""

    beside: str = ""


_REDIRECTS = (301, 302, 303, 307, 308)


def write_warc(pages: Iterable[Page], path: str | Path) -> None:
    """Write `pages` as one compressed WARC file, whole or not at all.

    Raises ImportError where the optional package warcio is missing.
    """
    from warcio.warcwriter import WARCWriter  # optional

    with whole_file(Path(path)) as unfinished, unfinished.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for page in pages:
            if page.reason == "citation_malformed":
                continue
            headers = {"WARC-Date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(page.fetched_at))}
            if page.status == "read":
                text = _write(
                    writer, "conversion", page, page.text.encode(), "text/plain; charset=utf-8", headers
                )
                headers["WARC-Refers-To"] = text.rec_headers.get_header("WARC-Record-ID")
            described = _Described(**msgspec.structs.asdict(entry_of(page)), beside=page.beside)
            _write(writer, "metadata", page, msgspec.json.encode(described), PAGE, headers)


def _write(
    writer: Any, kind: str, page: Page, block: bytes, content_type: str, headers: dict[str, str]
) -> Any:
    record = writer.create_warc_record(
        " ".join(page.final_url.split()),  # nothing that ends a header's line
        kind,
        payload=io.BytesIO(block),
        length=len(block),
        warc_content_type=content_type,
        warc_headers_dict=dict(headers),
    )
    writer.write_record(record)
    return record


async def unpack_warc(path: str | Path, folder: str | Path, max_bytes: int = DEFAULT_LIMITS.max_bytes) -> int:
    """Write the pages of a WARC file into a new snapshot folder; how many they are. The first of equal URLs counts.

    Reads HTTP responses and their redirects, resources and revisits of any archive, and the texts of `write_warc`.
    Bodies of more than `max_bytes` become page_unsupported. Raises SnapshotError, OSError, and ImportError where the
    optional package warcio is missing.
    """
    from adjudge.fetchers.warc_records import records  # optional

    unpacking = _Unpacking(new_folder(folder), max_bytes)
    for record in records(Path(path), max_bytes):
        await unpacking.add(record)
        if len(unpacking.entries) > MAX_PAGES:
            raise SnapshotError(f"{path}: more than {MAX_PAGES:,} pages; split the file")
    return unpacking.finish(Path(path))


class _Unpacking:
    """The pages so far, and the URLs that stand for others."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.entries: dict[NormalURL, Entry] = {}
        self._root = root
        self._max_bytes = max_bytes
        self._other_urls: dict[NormalURL, NormalURL] = {}
        self._text: Record | None = None

    async def add(self, record: "Record") -> None:
        """Take in one record. A text waits for the next record, which may describe its page."""
        text, self._text = self._text, None
        if record.kind == "metadata" and media_type(record.content_type) == PAGE:
            self._described(record, text if text and text.identity == record.refers_to else None)
            return
        if text is not None:
            self._plain(text)
        if record.kind == "conversion":
            self._text = record
        elif record.kind in ("response", "resource", "revisit"):
            await self._served(record)

    def finish(self, path: Path) -> int:
        """Write the index; how many pages it has. Raises SnapshotError if there are none."""
        if self._text is not None:
            self._plain(self._text)
        for url in self._other_urls:
            if (found := self._where(url)) is not None:
                final_url = found.final_url or found.url
                entry = msgspec.structs.replace(found, url=url, final_url=final_url)
                self.entries.setdefault(url, entry)
        if not self.entries:
            raise SnapshotError(f"{path}: no record is a page; pass a WARC file of responses or texts")
        write_index(self._root, self.entries.values())
        return len(self.entries)

    def _described(self, record: "Record", text: "Record | None") -> None:
        try:
            described = msgspec.json.decode(record.body or b"", type=_Described)
            url = normalise_url(described.url)
        except (msgspec.MsgspecError, MalformedURL, RecursionError, UnicodeDecodeError) as error:
            raise SnapshotError(f"{record.uri[:200]!r}: not the description of a page ({error})") from error
        if url in self.entries:
            return
        file = None
        if text is not None and text.body is not None:
            file = self._kept(render(text.body.decode("utf-8", "replace"), described.beside), ".html")
        elif described.reason is None:
            raise SnapshotError(f"{url}: its text is missing or longer than {self._max_bytes:,} bytes")
        entry = Entry(**{name: getattr(described, name) for name in Entry.__struct_fields__})
        self.entries[url] = msgspec.structs.replace(entry, file=file, rendered=file is not None)

    def _plain(self, text: "Record") -> None:
        url = _normal(text.uri)
        if url is None or url in self.entries or not media_type(text.content_type).startswith("text/"):
            return
        if text.body is None:
            self.entries[url] = self._failed(url, self._too_long(), text)
            return
        file = self._kept(render(text.body.decode("utf-8", "replace")), ".html")
        self.entries[url] = Entry(
            url=url, file=file, rendered=True, content_type="text/plain", fetched_at=_seconds(text.date)
        )

    async def _served(self, record: "Record") -> None:
        url = _normal(record.uri)
        if url is None or url in self.entries or url in self._other_urls:
            return
        if record.kind == "revisit" or record.status in _REDIRECTS:
            try:
                target = normalise_url(record.uri) if not record.location else join_url(url, record.location)
            except MalformedURL:
                return
            if target != url:
                self._other_urls[url] = target
            return
        failure = status_failure(record.status, "") if record.status else None
        if failure is not None:
            self.entries[url] = Entry(url=url, status_code=record.status, fetched_at=_seconds(record.date))
            return
        try:
            if record.body is None:
                raise self._too_long()
            body = await receive(_pieces(record.body), record.encoding, self._max_bytes)
        except Failure as found:
            self.entries[url] = self._failed(url, found, record)
            return
        kind = mimetypes.guess_extension(media_type(record.content_type)) or ".bin"
        self.entries[url] = Entry(
            url=url,
            file=self._kept(body.content, kind),
            content_type=record.content_type[:300],
            fetched_at=_seconds(record.date),
        )

    def _where(self, url: NormalURL) -> Entry | None:
        """The page that `url` leads to, in as many steps as a live page may take."""
        for _ in range(DEFAULT_LIMITS.redirects + 1):
            if (found := self.entries.get(url)) is not None:
                return found
            if (target := self._other_urls.get(url)) is None:
                return None
            url = target
        return None

    def _kept(self, body: bytes, ending: str) -> str:
        file = f"p{len(self.entries) + 1:06d}{ending}"
        (self._root / file).write_bytes(body)
        return file

    def _too_long(self) -> Failure:
        return Failure("page_unsupported", f"larger than {self._max_bytes:,} bytes")

    def _failed(self, url: NormalURL, failure: Failure, record: "Record") -> Entry:
        return Entry(url=url, reason=failure.reason, detail=failure.detail, fetched_at=_seconds(record.date))


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _normal(uri: str) -> NormalURL | None:
    """The URL in its normal form; None for what is not a page's, such as `dns:` and `urn:`."""
    try:
        return normalise_url(uri)
    except MalformedURL:
        return None


def _seconds(date: str) -> float:
    try:
        return max(datetime.fromisoformat(date).timestamp(), 0.0)
    except (ValueError, OverflowError):
        return 0.0
