"""Shares concurrent work: equal work is done once."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """The results of `work`, done at the same time, in order. A single one is awaited in place, without a task."""
    return [await work[0]] if len(work) == 1 else await asyncio.gather(*work)


async def shared(task: "asyncio.Future[T]") -> T:
    """The result of `task`, which others may wait for too: it goes on when this caller is cancelled.

    Its error is raised to those who wait; once nobody waits, it is not logged either.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # Its cancellation may be lost: a gather in it ends with the error of a part that had failed just before.
        task.add_done_callback(forgotten)
        raise


def forgotten(task: "asyncio.Future[Any]") -> None:
    """Read the error of a `task` that is done: asyncio logs the errors that nobody read."""
    if not task.cancelled():
        task.exception()


class SingleFlight(Generic[K, T]):
    """Work in flight, by key: all callers with the same key share it. Work that nobody waits for is cancelled."""

    def __init__(self) -> None:
        self._tasks: dict[K, tuple[asyncio.Task[T], int]] = {}

    def __len__(self) -> int:
        """How many different keys are in flight."""
        return len(self._tasks)

    def __contains__(self, key: K) -> bool:
        """Whether `key` is in flight."""
        return key in self._tasks

    async def do(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work in flight for `key`, begun if there is none."""
        task, waiting = self._tasks.get(key, (None, 0))
        if task is None:
            task = asyncio.ensure_future(work())
            task.add_done_callback(lambda done: self._land(key, done))
        self._tasks[key] = task, waiting + 1
        try:
            return await shared(task)
        finally:
            self._leave(key, task)

    async def close(self) -> None:
        """Cancel what still runs and wait for its end."""
        tasks = [task for task, _ in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _leave(self, key: K, task: asyncio.Task[T]) -> None:
        flying, waiting = self._tasks.get(key, (None, 0))
        if flying is not task:
            return
        if waiting > 1:
            self._tasks[key] = task, waiting - 1
        else:
            task.cancel()
            self._land(key, task)

    def _land(self, key: K, task: asyncio.Task[T]) -> None:
        if self._tasks.get(key, (None, 0))[0] is task:
            del self._tasks[key]
