"""Tasks that run beside the main flow, and whose failure ends it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

__all__ = ["Background"]


class Background:
    """Tasks of one event loop. A failure of one is raised in every `until`, now and later."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._broken: list[asyncio.Task[None]] = []
        self._failed = asyncio.Event()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` as a task."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._broken.append(task)
            self._failed.set()

    async def until(self, event: "asyncio.Future[Any]") -> None:
        """Wait for `event`, or for the failure of a task, which is raised."""
        failed = asyncio.ensure_future(self._failed.wait())
        try:
            await asyncio.wait([event, failed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            failed.cancel()
        for task in self._broken:
            task.result()

    async def cancel(self) -> None:
        """Cancel every task that still runs, and wait until all have ended."""
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
