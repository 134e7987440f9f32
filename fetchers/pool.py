"""Worker processes that read bodies, off the event loop and within a hard time limit each."""

import msgspec

from adjudge.fetchers.failures import Failure
from adjudge.fetchers.process import ADDRESS_SPACE, Budget, Extraction, Extractor, Job, Reply, WorkerPool


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
        """The text of `body`. The limit runs while a worker has it. Raises Failure (page_unsupported), PoolError."""
        job = msgspec.msgpack.encode(Job(body, content_type, self._seconds))
        budget = Budget(self._seconds)
        try:
            # The first death may have had another cause than the page.
            reply = await self._pool.answer(job, budget) or await self._pool.answer(job, budget)
        except TimeoutError:
            raise Failure("page_unsupported", f"not parsed within {self._seconds:g} s") from None
        if reply is None:
            raise Failure("page_unsupported", "it kills the parser")
        if reply.found is None:
            raise Failure("page_unsupported", reply.problem)
        return reply.found

    async def close(self) -> None:
        """End every worker."""
        await self._pool.close()
