"""Work that is waited for from anywhere: plain code, an event loop, a notebook whose loop is already running."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.rewards.loop_thread import LoopThread

__all__ = ["awaited", "finished"]

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]


def finished(work: Work[T]) -> T:
    """The result of `work`, also where an event loop is running in this thread. Ctrl-C lets it write what it has."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return interruptible(work())
    thread = LoopThread("adjudge", _nothing)
    future = thread.submit(lambda _: work())
    try:
        return future.result()
    finally:
        future.cancel()
        thread.close()


async def awaited(work: Work[T]) -> T:
    """The result of `work`, which runs in a loop of its own: the caller's need not be free. Cancelling cancels it."""
    thread = await asyncio.to_thread(LoopThread, "adjudge", _nothing)
    future = thread.submit(lambda _: work())
    try:
        return await asyncio.wrap_future(future)
    finally:
        future.cancel()
        await asyncio.to_thread(thread.close)


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield
