"""Frozen pages: a folder read in place of the network, with the same extraction as live pages.

The folder contains `index.jsonl`, one JSON object (`Entry`) per page, and the files that it names.
"""

import asyncio
import errno
import hashlib
import html
import mimetypes
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from adjudge.fetchers.failures import Failure, TooLarge, status_failure
from adjudge.fetchers.files import write_whole
from adjudge.fetchers.flight import SingleFlight
from adjudge.fetchers.limits import DEFAULT_LIMITS, DEFAULT_TIMEOUTS, Limits, Timeouts
from adjudge.fetchers.page import Fetcher, Page, PageReason, failed, kind_of, media_type
from adjudge.fetchers.pool import ExtractorPool
from adjudge.fetchers.process import Extractor
from adjudge.fetchers.signs import failure_of
from adjudge.fetchers.urls import ByPage, MalformedURL, NormalURL, normalise_url, storable

INDEX = "index.jsonl"
_RENDERED = ("<!DOCTYPE html>\n<meta charset=utf-8>\n<pre>", "</pre>\n")
_BETWEEN = "</pre>\n<pre>"  # never in a text: its "<" are escaped


class SnapshotError(ValueError):
    """The snapshot cannot be used; the message names the file, the line and the fault."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One page of a snapshot: a file to be read, or a failure (`reason`, or a `status_code` that is one)."""

    url: str
    final_url: str = ""
    file: str | None = None
    """Relative to the folder, which it cannot leave."""
    content_type: str = ""
    """As the server's header gave it; guessed from the file's name if empty."""
    status_code: int | None = None
    reason: PageReason | None = None
    title: str = ""
    """Stands for the extracted one if given; `description` likewise."""
    description: str = ""
    fetched_at: float = 0.0
    sha256: str = ""
    """Of the body that was fetched; the file's own if empty."""
    size: int = 0
    """Bytes of the body that was fetched, of a file that is `rendered`; else the file's own."""
    detail: str = ""
    rendered: bool = False
    """The file is the page's extracted texts in a frame (`render`), and is taken as it is."""


class RejectedEntry(NamedTuple):
    """A line of the index that is left out, and why."""

    file: str
    line: int
    why: str


class SnapshotFetcher(Fetcher):
    """Reads the pages of `folder` and never touches the network. What it does not hold is page_not_in_snapshot.

    `rejected` are the lines of the index that cannot be used. Raises SnapshotError if there is no index, or no line of
    it can be used.
    """

    def __init__(
        self,
        folder: str | Path,
        limits: Limits = DEFAULT_LIMITS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        *,
        extractor: Extractor = "trafilatura",
    ) -> None:
        self._folder = Path(folder)
        self._limits = limits
        self._entries, self.rejected = read_index(self._folder)
        self._pages = ByPage(self._entries)
        self._pool = ExtractorPool(limits.processes(extractor), extractor=extractor, seconds=timeouts.extract)
        self._flight: SingleFlight[NormalURL, Page] = SingleFlight()

    @property
    def urls(self) -> list[NormalURL]:
        """The URLs it holds, in the order of the index."""
        return list(self._entries)

    async def page(self, address: NormalURL) -> Page:
        """The frozen page; two readings are equal in every field."""
        found = self._pages.find(address)
        if found is None:
            return failed(address, "page_not_in_snapshot", "the frozen pages do not hold it")
        known, entry = found
        if known != address:
            entry = msgspec.structs.replace(entry, final_url=entry.final_url or known)
        return await self._flight.do(address, lambda: self._thawed(address, entry))

    async def pages(self) -> AsyncIterator[Page]:
        """All of them, in the order of the index."""
        urls = self.urls
        for first in range(0, len(urls), 100):
            for page in await asyncio.gather(*map(self.page, urls[first : first + 100])):
                yield page

    async def close(self) -> None:
        """End the worker processes."""
        await self._flight.close()
        await self._pool.close()

    async def _thawed(self, url: NormalURL, entry: Entry) -> Page:
        said = _failure(entry)
        if said is not None or entry.file is None:
            return _frame(url, entry, said or Failure("snapshot_damaged", "no file"))
        try:
            body = await asyncio.to_thread(_body, self._folder, entry.file, self._limits.most("pdf"))
        except OSError as error:
            return _frame(url, entry, Failure("snapshot_damaged", f"{entry.file}: {error.strerror}"))
        header = entry.content_type or mimetypes.guess_type(entry.file)[0] or "text/html"
        most = self._limits.most(kind_of(header, body))
        if len(body) > most:
            return _frame(url, entry, TooLarge(most))
        if entry.rendered:
            text, beside = unrender(body)
            return msgspec.structs.replace(_frame(url, entry), text=text, beside=beside)
        digest = entry.sha256 or hashlib.sha256(body).hexdigest()
        known = msgspec.structs.replace(entry, content_type=header, sha256=digest)
        try:
            found = await self._pool.extract(body, header)
            if (failure := failure_of(found)) is not None:
                raise failure
        except Failure as failure:
            return _frame(url, known, failure)
        return msgspec.structs.replace(
            _frame(url, known),
            title=entry.title or found.title,
            description=entry.description or found.description,
            text=found.text,
            beside=found.beside,
            size=len(body),
        )


def _failure(entry: Entry) -> Failure | None:
    """The index's entry for a page that failed."""
    if entry.reason is not None:
        return Failure(entry.reason, entry.detail)
    return None if entry.status_code is None else status_failure(entry.status_code, "")


def _frame(url: NormalURL, entry: Entry, failure: Failure | None = None) -> Page:
    """All of a page but its text."""
    return Page(
        url=url,
        final_url=entry.final_url or url,
        status="failed" if failure else "read",
        reason=failure.reason if failure else None,
        fetched_at=entry.fetched_at,
        content_type=media_type(entry.content_type),
        sha256=entry.sha256,
        title="" if failure else entry.title,
        description="" if failure else entry.description,
        text="",
        detail=failure.detail if failure else "",
        size=entry.size,
    )


def new_folder(folder: str | Path) -> Path:
    """Make the folder of a new snapshot. Raises SnapshotError if it already holds one."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    if (root / INDEX).exists():
        raise SnapshotError(f"{root} already holds a snapshot; choose another folder")
    return root


def write_pages(pages: Iterable[Page], folder: str | Path) -> None:
    """Write `pages` as a snapshot folder of HTML files that show their text; read back, every field is equal.

    Pages of malformed URLs are left out: those need no snapshot to fail again. Raises SnapshotError if the
    folder already holds a snapshot.
    """
    root = new_folder(folder)
    entries = []
    for number, page in enumerate(pages, 1):
        if page.reason == "citation_malformed":
            continue
        file = f"p{number:06d}.html" if page.status == "read" else None
        if file is not None:
            (root / file).write_bytes(render(page.text, page.beside))
        entries.append(entry_of(page, file))
    write_index(root, entries)


def entry_of(page: Page, file: str | None = None) -> Entry:
    """All of `page` but its texts, which `file` holds as `render` writes them."""
    left_out = ("status", "text", "beside")
    fields = {name: getattr(page, name) for name in Page.__struct_fields__ if name not in left_out}
    return Entry(file=file, rendered=file is not None, **fields)


def write_index(folder: Path, entries: Iterable[Entry]) -> None:
    """Write the index of `folder`, whole or not at all."""
    write_whole(folder / INDEX, b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))


def render(text: str, beside: str = "") -> bytes:
    """Main text and what stands beside it as an HTML file that a browser shows and `unrender` takes back exactly."""
    texts = [text, beside] if beside else [text]
    return _BETWEEN.join(map(html.escape, texts)).join(_RENDERED).encode()


def unrender(body: bytes) -> tuple[str, str]:
    """The main text of a file that `render` made, and what stands beside it."""
    whole = body.decode("utf-8", "replace").removeprefix(_RENDERED[0]).removesuffix(_RENDERED[1])
    text, _, beside = whole.partition(_BETWEEN)
    return html.unescape(text), html.unescape(beside)


def read_index(folder: Path) -> tuple[dict[NormalURL, Entry], list[RejectedEntry]]:
    """The entries of a snapshot's index by URL, and the lines left out. Raises SnapshotError if none is usable."""
    path = folder / INDEX
    if folder.is_file():
        raise SnapshotError(
            f"{folder}: a file; if it is a WARC file, run adjudge snapshot FILE --out DIR and pass DIR"
        )
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror}; a snapshot is a folder with an {INDEX}") from None
    entries: dict[NormalURL, Entry] = {}
    rejected: list[RejectedEntry] = []
    decoder = msgspec.json.Decoder(Entry)
    root = folder.resolve()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = decoder.decode(line)
            url = normalise_url(entry.url)
            _check(entry, root)
            if entries.setdefault(url, entry) != entry:
                raise SnapshotError(f"{url} is listed before with other content")
        except MalformedURL as error:
            rejected.append(RejectedEntry(str(path), number, f"the URL {error}"))
        except (msgspec.MsgspecError, ValueError, OSError, RecursionError) as error:
            rejected.append(RejectedEntry(str(path), number, storable(str(error))))
    if rejected and not entries:
        first = rejected[0]
        raise SnapshotError(f"{first.file}:{first.line}: {first.why}; no line of the index can be used")
    return entries, rejected


def _check(entry: Entry, root: Path) -> None:
    if entry.file is None:
        if entry.reason is None and (
            entry.status_code is None or status_failure(entry.status_code, "") is None
        ):
            raise SnapshotError("needs a file, a reason, or the status_code of a failure")
        return
    path = (root / entry.file).resolve()
    if not path.is_relative_to(root):
        raise SnapshotError(f"{entry.file!r} is outside the folder")
    if not path.is_file():
        raise SnapshotError(f"{entry.file!r} is missing")


def _body(folder: Path, file: str, max_bytes: int) -> bytes:
    """The file's first bytes. Raises OSError, also for a link that now leads out of the folder."""
    root = folder.resolve()
    path = (root / file).resolve()
    if not path.is_relative_to(root):
        raise PermissionError(errno.EPERM, "leads out of the snapshot")
    with open(path, "rb", opener=_opener(root)) as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return opened.read(max_bytes + 1)


def _opener(root: Path) -> Callable[[str, int], int]:
    """An opener of files below `root` that follows no link, so that nothing can be swapped after the check."""

    def opener(path: str, flags: int) -> int:
        *folders, name = Path(path).relative_to(root).parts
        at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for folder in folders:
                inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = inner
            return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        finally:
            os.close(at)

    return opener
