"""Equal work asked for at the same time is done once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

__all__ = ["SingleFlight"]

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Shares one running task among all who ask for its key while it runs.

    The task outlives a caller that is cancelled, and ends when the last one is.
    """

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}
        self._waiting: dict[str, int] = {}

    async def do(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work` for `key`, whoever started it."""
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(_run(work))
        self._waiting[key] = self._waiting.get(key, 0) + 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._running[key]
                task.cancel()

    async def close(self) -> None:
        """Cancel what still runs and wait for its end."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
