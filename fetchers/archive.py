"""Pages frozen, exported, imported, and compared with the live web."""

import asyncio
import mimetypes
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.fetchers.http import Fetched, HttpFetcher
from adjudge.fetchers.media import media_type
from adjudge.fetchers.page import Fetcher, Page, PageReason, failed
from adjudge.fetchers.snapshot import INDEX, Entry, SnapshotError, render, write_index
from adjudge.fetchers.urls import MalformedURL, NormalURL, normalise_url

__all__ = [
    "Change",
    "Difference",
    "FrozenPages",
    "diff",
    "export_folder",
    "freeze",
    "read_parquet",
    "write_parquet",
]

Change = Literal["same", "changed", "moved", "dead", "unknown"]

_BATCH = 500
_NUMBERS = {"fetched_at": pa.float64(), "size": pa.int64()}
_SCHEMA = pa.schema(
    [pa.field(name, _NUMBERS.get(name, pa.string())) for name in Page.__struct_fields__],
)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a frozen page.

    same: equal text at the same place. changed: other text, or a page where there was none. moved: redirects
    elsewhere now. dead: gone now (404, 410, no such host). unknown: could not be read this time (`reason`).
    """

    url: str
    change: Change
    final_url: str
    """Where it is now."""
    text_differs: bool
    reason: PageReason | None


class FrozenPages(Fetcher):
    """A fetcher that answers from pages in memory, such as those of `read_parquet`."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._pages = {page.url: page for page in pages}

    async def page(self, address: NormalURL) -> Page:
        """The page held for `address`, or page_not_in_snapshot."""
        page = self._pages.get(address)
        return page or failed(address, "page_not_in_snapshot", "the frozen pages do not hold it")

    async def close(self) -> None:
        """Nothing is held open."""


async def freeze(urls: Iterable[str], fetcher: HttpFetcher, folder: str | Path) -> None:
    """Fetch `urls` into a new snapshot folder that keeps their bodies as served. Malformed ones are left out.

    Raises SnapshotError if the folder already holds a snapshot.
    """
    root = _new_snapshot(folder)

    async def one(number: int, url: NormalURL) -> Entry:
        fetched = await fetcher.fetch(url)
        return await asyncio.to_thread(_keep, fetched, root, number)

    entries = await asyncio.gather(*(one(number, url) for number, url in enumerate(_normal(urls), 1)))
    write_index(root, entries)


def export_folder(pages: Iterable[Page], folder: str | Path) -> None:
    """Write `pages` as a snapshot folder of HTML files that show their text; read back, every field is equal.

    Pages of malformed URLs are left out: those need no snapshot to fail again. Raises SnapshotError if the
    folder already holds a snapshot.
    """
    root = _new_snapshot(folder)
    entries = []
    for number, page in enumerate(pages, 1):
        if page.reason == "citation_malformed":
            continue
        file = f"p{number:06d}.html" if page.status == "read" else None
        if file is not None:
            (root / file).write_bytes(render(page.text))
        fields = {
            name: getattr(page, name) for name in Page.__struct_fields__ if name not in ("status", "text")
        }
        entries.append(Entry(file=file, rendered=file is not None, **fields))
    write_index(root, entries)


def write_parquet(pages: Iterable[Page], path: str | Path) -> None:
    """Write `pages` as one Parquet file whose columns are the fields of `Page`, whole or not at all."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    rows = iter(pages)
    with pq.ParquetWriter(partial, _SCHEMA, compression="zstd") as writer:
        while batch := list(islice(rows, _BATCH)):
            columns = [[getattr(page, name) for page in batch] for name in _SCHEMA.names]
            writer.write_table(pa.table(columns, schema=_SCHEMA))
    partial.replace(target)


def read_parquet(path: str | Path) -> Iterator[Page]:
    """The pages of a file that `write_parquet` made. Raises SnapshotError for any other file."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH):
                yield from msgspec.convert(batch.to_pylist(), list[Page])
    except (OSError, pa.ArrowInvalid, msgspec.ValidationError) as error:
        raise SnapshotError(f"{path}: not a file of pages ({error})") from None


async def diff(frozen: Iterable[Page], live: Fetcher) -> list[Difference]:
    """How the web differs from `frozen` pages now, in their order."""
    pages = list(frozen)
    current = await asyncio.gather(*(live.read(page.url) for page in pages))
    return [_difference(before, now) for before, now in zip(pages, current, strict=True)]


def _difference(before: Page, now: Page) -> Difference:
    change: Change = "same"
    if now.status == "failed":
        change = "same" if now.reason == before.reason else "dead" if now.reason == "page_gone" else "unknown"
    elif before.status == "read" and now.final_url != before.final_url:
        change = "moved"
    elif now.text != before.text:
        change = "changed"
    return Difference(
        url=before.url,
        change=change,
        final_url=now.final_url,
        text_differs=now.text != before.text,
        reason=now.reason,
    )


def _normal(urls: Iterable[str]) -> list[NormalURL]:
    found: dict[NormalURL, None] = {}
    for url in urls:
        try:
            found[normalise_url(url)] = None
        except MalformedURL:
            continue
    return list(found)


def _keep(fetched: Fetched, root: Path, number: int) -> Entry:
    page, file = fetched.page, None
    if fetched.body:
        file = f"p{number:06d}{mimetypes.guess_extension(media_type(fetched.content_type)) or '.bin'}"
        (root / file).write_bytes(fetched.body)
    return Entry(
        url=page.url,
        final_url=page.final_url,
        file=file,
        content_type=fetched.content_type,
        reason=page.reason,
        fetched_at=page.fetched_at,
        sha256=page.sha256,
        detail=page.detail,
    )


def _new_snapshot(folder: str | Path) -> Path:
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    if (root / INDEX).exists():
        raise SnapshotError(f"{root} already holds a snapshot; choose another folder")
    return root
