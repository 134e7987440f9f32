"""`adjudge fetch`: reads a file of URLs into the store and returns one row per URL."""

import argparse
import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from adjudge.engine.commands.exits import DONE, INCOMPLETE
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.config.redaction import printable_json
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.asker import Reader
from adjudge.engine.evaluation.assembly import make_fetcher
from adjudge.engine.store import PageStore, Place
from adjudge.engine.tables.terminal import Terminal
from adjudge.fetchers.limits import Limits, Timeouts
from adjudge.fetchers.page import Page
from adjudge.fetchers.process import Extractor
from adjudge.fetchers.urls import printable


class FetchRow(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one line of the file: `chars` of text, and the `seconds` from request to answer."""

    url: str
    """As written in the file."""
    final_url: str
    status: str
    reason: str | None
    content_type: str
    sha256: str
    chars: int
    seconds: float


class FetchSummary(msgspec.Struct, frozen=True):
    """How many lines were read and failed, and how many pages came from the store and from the network."""

    read: int
    failed: int
    from_store: int
    from_network: int


def fetch_config(
    *,
    allow: Iterable[str] = (),
    extractor: Extractor = "trafilatura",
    timeout: float | None = None,
    max_bytes: int | None = None,
) -> FetchConfig:
    """The command's options as configuration; `timeout` is seconds for a whole page. Raises UsageError."""
    usual, limits = Timeouts(), Limits()
    try:
        if max_bytes is not None:
            limits = Limits(max_bytes=max_bytes, max_pdf_bytes=max_bytes)
        if timeout is not None:
            usual = Timeouts(
                connect=min(usual.connect, timeout),
                read=min(usual.read, timeout),
                total=timeout,
                extract=min(usual.extract, timeout),
            )
        return FetchConfig(extractor=extractor, allow=list(allow), limits=limits, timeouts=usual)
    except ValueError as error:
        raise UsageError(f"fetch: {error}") from error


async def fetch_command(
    file: str | Path, store: str, config: FetchConfig, emit: Callable[[FetchRow], None]
) -> FetchSummary:
    """Read every URL of `file` (one per line, blank lines skipped) through the store; `emit` gets rows in file order.

    Raises UsageError if the file or an option cannot be used, and StoreError. If interrupted, it leaves what was read
    in the store, and the same call continues from there.
    """
    try:
        urls = (await asyncio.to_thread(Path(file).read_text, "utf-8", "replace")).split("\n")
        fetcher, source = make_fetcher(config)
    except OSError as error:
        raise UsageError(f"fetch: {file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"fetch: {error}") from error
    async with AsyncExitStack() as stack:
        if fetcher is not None:
            stack.push_async_callback(fetcher.close)
        pages = PageStore(Place.of(store), source, allow=config.allow)
        await pages.open()
        stack.push_async_callback(pages.close)
        reader = Reader(pages, fetcher)
        read = failed = 0
        async for row in _rows(reader, filter(None, map(str.strip, urls)), 4 * config.limits.in_flight):
            emit(row)
            read, failed = read + (row.status == "read"), failed + (row.status != "read")
    return FetchSummary(read, failed, reader.from_store, reader.from_fetcher)


async def _rows(reader: Reader, urls: Iterable[str], ahead: int) -> AsyncIterator[FetchRow]:
    """Rows in the order of `urls`, at most `ahead` of which are being read at once."""
    waiting: deque[asyncio.Task[FetchRow]] = deque()
    try:
        for url in urls:
            waiting.append(asyncio.create_task(_row(reader, url)))
            if len(waiting) == ahead:
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _row(reader: Reader, url: str) -> FetchRow:
    began = time.monotonic()
    page: Page = await reader.read(url)
    return FetchRow(
        url=printable(url),
        final_url=page.final_url,
        status=page.status,
        reason=page.reason,
        content_type=page.content_type,
        sha256=page.sha256,
        chars=len(page.text),
        seconds=round(time.monotonic() - began, 3),
    )


def run(options: argparse.Namespace) -> int:
    """Read URLs into a store."""
    settings = fetch_config(
        allow=options.allow, extractor=options.extractor, timeout=options.timeout, max_bytes=options.max_bytes
    )
    rows: list[FetchRow] = []
    malformed = 0

    def emit(row: FetchRow) -> None:
        nonlocal malformed
        malformed += row.reason == "citation_malformed"
        if options.json:
            rows.append(row)
        else:
            sys.stdout.write(printable_json(row) + "\n")
            sys.stdout.flush()

    summary = interruptible(fetch_command(options.file, options.store, settings, emit))
    if options.json:
        sys.stdout.write(printable_json(rows) + "\n")
    Terminal(stderr=True, highlight=False).print(
        f"{summary.read} read, {summary.failed} failed; {summary.from_store} from the store, "
        f"{summary.from_network} from the network"
    )
    return INCOMPLETE if malformed else DONE
