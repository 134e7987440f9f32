"""Pages per second, the longest blocking of the event loop, memory growth, and pages of hostile shapes.

    python -m benchmarks.fetch [--quick] [--json] [--only WORDS]

All sides read the same 500 documents (quick: 30; `benchmarks.pages`) from the same server process, 64 at once, and
produce the same fields (hash, title, description, text) with the same extraction function. Processes are started and
modules imported before the clock runs. The server shares the machine with both sides.

Cores that share a cache, or hyperthreads of one physical core, together do less than twice the work of one alone. Rows
`..., without fetching` measure this on the machine: the same extraction in bare processes, all cores at once beside
one.
"""

import asyncio
import functools
import hashlib
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from adjudge.engine.evaluation.memory import rare_collections
from adjudge.fetchers.extract import extract
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.limits import Limits
from adjudge.fetchers.page import Page
from adjudge.fetchers.process import Extractor, Unreadable
from benchmarks.page_server import page_server
from benchmarks.pages import Document, documents
from benchmarks.timing import Row, alone, compare, main, seconds
from tests.html_shapes import FLAT, SHAPES, shaped

IN_FLIGHT = 64
PAGES, QUICK_PAGES = 500, 30
PASSES = {"trafilatura": 1, "fast": 8}  # so that a sample of ours takes seconds, as the peer's does
SOAK = 20_000
QUICK_SOAK = 600
CORES = len(os.sched_getaffinity(0))
HTML = "text/html; charset=utf-8"
ELEMENTS = 60_000


class Ours:
    """A fetcher as it comes, warm; a call reads all of `urls` once more, into `pages`."""

    def __init__(self, urls: list[str], address: str, extractor: Extractor) -> None:
        self._urls = urls
        self._runner = asyncio.Runner()
        limits = Limits(in_flight=IN_FLIGHT, per_host=IN_FLIGHT)
        self._fetcher = HttpFetcher(limits, extractor=extractor, allow=[address])
        self.pages: list[Page] = []
        self.longest = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._fetcher.close())
        self._runner.close()

    def __call__(self) -> None:
        self._runner.run(self._read())

    async def _read(self) -> None:
        pulse = asyncio.create_task(self._pulse())
        self.pages = await asyncio.gather(*map(self._fetcher.read, self._urls))
        pulse.cancel()
        assert all(page.status == "read" for page in self.pages)

    async def _pulse(self) -> None:
        """Notes the longest that the loop has been away, in ms, beyond the 2 ms between two looks."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.002)
            self.longest = max(self.longest, (time.perf_counter() - began - 0.002) * 1e3)


def in_one_loop(urls: list[str]) -> None:
    """The peer: aiohttp and trafilatura in one event loop."""

    async def read(
        session: aiohttp.ClientSession, places: asyncio.Semaphore, url: str
    ) -> tuple[str, str, str]:
        async with places, session.get(url) as response:
            body = await response.read()
        found = extract(body, response.headers["Content-Type"], "trafilatura")
        return hashlib.sha256(body).hexdigest(), found.title, found.text

    async def run() -> None:
        places = asyncio.Semaphore(IN_FLIGHT)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=IN_FLIGHT)) as session:
            await asyncio.gather(*(read(session, places, url) for url in urls))

    asyncio.run(run())


def at_once(pool: Pool, extractor: Extractor, count: int) -> Callable[[], None]:
    """The share of one core, in each of `pool`'s processes at once."""

    def work() -> None:
        pool.starmap(_share, [(extractor, count)] * CORES, chunksize=1)

    return work


def _share(extractor: Extractor, count: int) -> None:
    with rare_collections():
        a_cores_share(_sample(count), extractor)()


_sample = functools.cache(documents)


def a_cores_share(sample: list[Document], extractor: Extractor) -> Callable[[], None]:
    """The extractor alone in this process, on as many pages as one of the cores would get."""

    def work() -> None:
        for document in sample[: len(sample) // CORES]:
            extract(document.body, HTML, extractor)

    return work


def memory(address: str, paths: list[str], count: int, extractor: Extractor) -> Row:
    """Resident memory of the fetcher and its workers after a quarter of `count` pages and after all of them."""

    async def run() -> tuple[float, float]:
        limits = Limits(in_flight=IN_FLIGHT, per_host=IN_FLIGHT)
        fetcher = HttpFetcher(limits, extractor=extractor, allow=[address])
        early = 0.0
        for first in range(0, count, len(paths)):
            pages = await asyncio.gather(*(fetcher.read(f"http://{address}{path}?{first}") for path in paths))
            assert all(page.status == "read" for page in pages)
            if first + len(paths) == count // 4:
                early = resident()
        late = resident()
        await fetcher.close()
        return early, late

    early, late = asyncio.run(run())
    name = f"resident memory after {count} pages, {extractor}"
    return Row(name, late, early, f"after {count // 4}", early / late, "MB", count, 1)


def hostile_shapes(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """60,000 nested elements, and of all hostile shapes the slowest, beside a flat page of as many bytes."""
    extractors: tuple[Extractor, ...] = ("trafilatura", "fast")
    for extractor in extractors:
        name = f"60,000 nested elements, {extractor}"
        if wanted(name):
            yield beside_flat(name, "nested <div>", ELEMENTS, extractor, quick)
        name = f"the slowest of {len(SHAPES)} hostile shapes, {extractor}"
        if wanted(name):
            times = ELEMENTS // 4 if quick else ELEMENTS
            yield beside_flat(name, slowest_shape(extractor, times // 10), times, extractor, quick)


def slowest_shape(extractor: Extractor, times: int) -> str:
    """The name of the shape that takes longest to read, or to refuse."""

    def taken(name: str) -> float:
        page = shaped(SHAPES[name], times)
        return seconds(lambda: read(page, extractor))

    return max(SHAPES, key=taken)


def beside_flat(name: str, shape: str, times: int, extractor: Extractor, quick: bool) -> Row:
    """A page of `shape` beside a flat page of the same length."""
    page = shaped(SHAPES[shape], times)
    flat = shaped(FLAT, len(page) // len(FLAT[1]))
    return compare(
        name,
        lambda: read(page, extractor),
        lambda: read(flat, extractor),
        peer_name=f"a flat page as long as that of {shape}",
        n=len(page),
        quick=quick,
    )


def read(body: bytes, extractor: Extractor) -> None:
    """The body's text, or the refusal to read it."""
    with suppress(Unreadable):
        extract(body, HTML, extractor)


def resident() -> float:
    """Megabytes that this process and its children hold."""
    me = os.getpid()
    children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in [me, *children])
    return pages * resource.getpagesize() / 1e6


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Every comparison, the sides alternating within each."""
    count = QUICK_PAGES if quick else PAGES
    sample = documents(count)
    paths = [document.path for document in sample]
    yield from hostile_shapes(quick, wanted)
    longest = 0.0
    with page_server(count) as address, rare_collections():
        urls = [f"http://{address}{path}" for path in paths]
        extractors: tuple[Extractor, ...] = ("trafilatura", "fast")
        for extractor in extractors:
            with Ours(urls, address, extractor) as ours:
                name = f"{count} pages, {extractor}"
                if wanted(name):
                    peer = "aiohttp + trafilatura in one loop"
                    yield compare(
                        name,
                        ours,
                        lambda: in_one_loop(urls),
                        peer_name=peer,
                        n=count,
                        quick=quick,
                        passes=PASSES[extractor],
                    )
                name = f"{count} pages, {extractor}, of what all cores could"
                if wanted(name):
                    peer = f"{count // CORES} pages extracted on one core"
                    share = a_cores_share(sample, extractor)
                    yield compare(name, ours, share, peer_name=peer, n=count, quick=quick)
                longest = max(longest, ours.longest)
        with get_context("spawn").Pool(CORES) as pool:
            for extractor in extractors:
                name = f"{count} pages, {extractor}, of what all cores could, without fetching"
                if wanted(name):
                    together = at_once(pool, extractor, count)
                    together()
                    peer = f"{count // CORES} pages extracted on one core"
                    share = a_cores_share(sample, extractor)
                    yield compare(name, together, share, peer_name=peer, n=count, quick=quick)
        if longest:
            yield alone("event loop held at most", longest, "ms", n=count)
        for extractor in extractors:
            pages = QUICK_SOAK if quick else SOAK
            if wanted(f"resident memory, {extractor}") and (extractor == "fast" or not quick):
                yield memory(address, paths, pages, extractor)


if __name__ == "__main__":
    main(__doc__, rows)
