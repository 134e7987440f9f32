"""Reading through the store: a page is fetched once, and one that is stored takes no task."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from adjudge.engine.config.fetch import Share
from adjudge.engine.evaluation.asker import Reader
from adjudge.engine.evaluation.evaluator import MOST_TIMEOUTS, CaseTools
from adjudge.engine.store import PageStore, Place
from adjudge.fetchers.flight import together
from adjudge.fetchers.page import Page, failed
from adjudge.fetchers.urls import NormalURL, normalise_url
from tests.tools import page

ADDRESSES = [normalise_url(f"https://{name}.example/") for name in "abc"]


class Counting:
    """A fetcher of pages that are there after `seconds`; `fetched` counts them."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.fetched = Counter[str]()
        self._seconds = seconds

    async def page(self, address: NormalURL) -> Page:
        self.fetched[address] += 1
        await asyncio.sleep(self._seconds)
        return page(address, f"The words of {address}.")

    async def close(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def reader(folder: Path, fetcher: Counting, share: Share | None = None) -> AsyncIterator[Reader]:
    store = PageStore(Place.of(str(folder)), "live", flush_seconds=0.01)
    await store.open()
    try:
        yield Reader(store, fetcher, share=share)
    finally:
        await store.close()


class Silent(Counting):
    """A fetcher whose pages all time out, and the most that were under way at once."""

    under_way = most = 0

    async def page(self, address: NormalURL) -> Page:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await super().page(address)
        self.under_way -= 1
        return failed(address, "page_timeout", "not received in time")


async def started(work: object) -> int:
    """How many tasks `work` starts."""
    loop, count = asyncio.get_running_loop(), 0

    def counted(loop: asyncio.AbstractEventLoop, coroutine: object, **more: object) -> "asyncio.Task[object]":
        nonlocal count
        count += 1
        return asyncio.Task(coroutine, loop=loop, **more)  # type: ignore[arg-type]

    loop.set_task_factory(counted)  # type: ignore[arg-type]
    try:
        await work  # type: ignore[misc]
    finally:
        loop.set_task_factory(None)
    return count


async def test_page_read_at_once_by_many_is_fetched_once(tmp_path: Path) -> None:
    fetcher = Counting(0.02)
    async with reader(tmp_path, fetcher) as reading:
        found = await asyncio.gather(*(reading.page(one) for one in ADDRESSES * 20))
        assert [one.url for one in found] == ADDRESSES * 20
        await reading.store.flush()
        again = await asyncio.gather(*(reading.page(one) for one in ADDRESSES * 20))
    assert again == found and fetcher.fetched == Counter(ADDRESSES)
    assert (reading.from_fetcher, reading.from_store) == (3, 60)


class Lacking(Counting):
    """A snapshot without a page."""

    async def page(self, address: NormalURL) -> Page:
        await super().page(address)
        return failed(address, "page_not_in_snapshot", "it is not there")


async def test_page_that_a_snapshot_lacks_counts_as_read_by_nobody(tmp_path: Path) -> None:
    """However often it is looked for: that depends on which reports are under way at once."""
    fetcher = Lacking()
    async with reader(tmp_path, fetcher) as reading:
        for _ in range(2):
            assert (await reading.page(ADDRESSES[0])).reason == "page_not_in_snapshot"
    assert fetcher.fetched[ADDRESSES[0]] == 2
    assert (reading.from_fetcher, reading.from_store) == (0, 0)


async def test_stored_page_takes_no_task(tmp_path: Path) -> None:
    async with reader(tmp_path, Counting()) as reading:
        await reading.page(ADDRESSES[0])
        assert await started(reading.page(ADDRESSES[0])) == 0
    async with reader(tmp_path, Counting()) as reading:
        await reading.page(ADDRESSES[0])  # its row group is read from the part
        assert await started(reading.page(ADDRESSES[0])) == 0


async def test_one_piece_of_work_is_done_in_place() -> None:
    async def said(word: str) -> str:
        await asyncio.sleep(0)
        return word

    assert await started(together(said("a"))) == 0
    assert await together(said("a"), said("b")) == ["a", "b"]


async def test_report_of_endless_pages_takes_its_share_only(tmp_path: Path) -> None:
    """However many silent sites it cites: few at once, and no more than so many in all."""
    silent = Silent(0.001)
    async with reader(tmp_path, silent, Share(of_a_site=2, in_all=16)) as pages:
        tools = CaseTools(None, pages, 0)  # type: ignore[arg-type]
        sites = [normalise_url(f"https://s{n}.example/{m}") for n in range(100) for m in range(3)]
        found = await asyncio.gather(*map(tools.page, sites))
        assert silent.most == 16
        reasons = Counter(page.reason for page in found)
        assert reasons.keys() == {"page_timeout", "page_deferred"}
        assert MOST_TIMEOUTS <= reasons["page_timeout"] < MOST_TIMEOUTS + 16
        again = await asyncio.gather(*map(tools.page, sites))
        assert [page.reason for page in again] == [page.reason for page in found]
        other = await CaseTools(None, pages, 0).page(sites[-1])  # type: ignore[arg-type]
        assert other.reason == "page_timeout"
