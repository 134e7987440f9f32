"""`LoopThread`: an event loop in a separate thread, with a context open in it, for callers from any thread and loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

__all__ = ["LoopThread"]

T = TypeVar("T")
R = TypeVar("R")


class LoopThread(Generic[T]):
    """Enters the context that `opens` gives in its own loop, and runs work with what it yields until `close`.

    Raises what entering raises. The thread is a daemon: a process that ends without `close` does not wait for it.
    """

    def __init__(self, name: str, opens: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._opens = opens
        self._opened: Future[T] = Future()
        self._thread = threading.Thread(target=asyncio.run, args=(self._live(),), name=name, daemon=True)
        self._thread.start()
        self._opened.result()

    def submit(self, work: Callable[[T], Awaitable[R]]) -> "Future[R]":
        """Begin `work`; cancelling the future cancels it."""

        async def begun() -> R:
            return await work(self._opened.result())

        return asyncio.run_coroutine_threadsafe(begun(), self._loop)

    def close(self) -> None:
        """Leave the context and end the thread. Raises what leaving raises."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._failed: BaseException | None = None
        try:
            async with self._opens() as opened:
                self._opened.set_result(opened)
                await self._stop.wait()
        except BaseException as error:  # noqa: BLE001 - handed over to the thread that opens or closes
            if self._opened.done():
                self._failed = error
            else:
                self._opened.set_exception(error)
