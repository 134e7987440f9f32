"""Worker processes that read bodies, off the event loop and within a hard time limit each."""

import msgspec

from adjudge.fetchers.frames import Extraction, Extractor, Job, Reply
from adjudge.fetchers.page import PageReason
from adjudge.fetchers.process import ADDRESS_SPACE, WorkerPool

__all__ = ["ExtractorPool", "Unextracted"]


class Unextracted(Exception):
    """No text came out of a body; `reason` is the page's."""

    def __init__(self, reason: PageReason, detail: str) -> None:
        super().__init__(detail)
        self.reason: PageReason = reason
        self.detail = detail


class ExtractorPool:
    """At most `workers` processes, started when first needed, each reading one body at a time.

    A worker that exceeds `seconds` on one page is killed; one that died or grew beyond 1 GiB is replaced. A page
    that kills two workers is abandoned.
    """

    def __init__(
        self, workers: int, *, extractor: Extractor, seconds: float, address_space: int = ADDRESS_SPACE
    ) -> None:
        self._seconds = seconds
        self._pool = WorkerPool(workers, Reply, "adjudge.fetchers.worker", extractor, str(address_space))

    async def extract(self, body: bytes, content_type: str) -> Extraction:
        """What `body` says. The limit counts from when a worker takes it. Raises Unextracted, PoolError."""
        job = msgspec.msgpack.encode(Job(body, content_type, self._seconds))
        try:
            # The first death may have had another cause than the page.
            reply = await self._pool.answer(job, self._seconds) or await self._pool.answer(job, self._seconds)
        except TimeoutError:
            raise Unextracted("page_timeout", f"not parsed within {self._seconds:g} s") from None
        if reply is None:
            raise Unextracted("page_unsupported", "it kills the parser")
        if reply.found is None:
            raise Unextracted("page_unsupported", reply.problem)
        return reply.found

    async def close(self) -> None:
        """End every worker."""
        await self._pool.close()
