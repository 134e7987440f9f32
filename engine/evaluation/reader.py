"""Reading: the store of pages first, then the fetcher; two equal URLs in flight are one read."""

from adjudge.engine.store import PageStore
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.fetchers.flight import SingleFlight
from adjudge.fetchers.page import Fetcher, Page, PageSource, failed
from adjudge.fetchers.urls import NormalURL

__all__ = ["Reader"]


class Reader(PageSource):
    """Reads pages from `store`, else from `fetcher`, and stores them.

    Without a fetcher, a page that is not stored is page_not_in_snapshot.

    `source` is the store's. `from_store` and `from_fetcher` count the pages, `metrics` in detail. One event loop.
    """

    def __init__(self, store: PageStore, fetcher: Fetcher | None, metrics: Metrics | None = None) -> None:
        self.source = store.source
        self.metrics = metrics or Metrics()
        self.from_store = 0
        self.from_fetcher = 0
        self.store = store
        self._fetcher = fetcher
        self._flights: SingleFlight[NormalURL, Page] = SingleFlight()

    async def page(self, address: NormalURL) -> Page:
        """The page at `address`. Raises only StoreError."""
        if address not in self._flights and (stored := await self.store.get(address)) is not None:
            self.from_store += 1
            self.metrics.stored(self.store.name)
            return stored
        return await self._flights.do(address, lambda: self._fetched(address))

    async def _fetched(self, address: NormalURL) -> Page:
        if self._fetcher is None:
            return failed(address, "page_not_in_snapshot", "this URL was never read into the store")
        page = await self._fetcher.page(address)
        self.metrics.fetched(page)
        # A page that the snapshot lacks was not read, and each report that cites it looks for it again.
        if page.reason != "page_not_in_snapshot":
            self.from_fetcher += 1
            self.store.put(address, page)
        return page
