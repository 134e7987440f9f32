"""`RewardSource`: what a trainer holds, callable from any thread and any event loop.

It runs on a `LoopThread`: an event loop in a separate thread, with a context open in it.
"""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from itertools import chain, repeat
from typing import Generic, Protocol, Self, TypeVar
from weakref import WeakSet

import msgspec

from adjudge.engine.config.reward import OutageConfig
from adjudge.engine.rewards.outage import Outages
from adjudge.engine.rewards.reward import Item, Reward, RewardItem, as_items, as_step

__all__ = ["LoopThread", "RewardSource"]

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


class Scorer(Protocol):
    """Gives the rewards, in one event loop."""

    def score(
        self, items: list[RewardItem], /, *, deadline: float | None, priority: int, step: int | None
    ) -> Awaitable[list[Reward]]:
        """The rewards of `items`, in their order."""
        ...


class RewardSource:
    """Rewards from the scorer that `opens` gives, which lives in its own event loop and thread.

    So nothing of it blocks the caller's loop. The first call opens it; so does one after `close`, and the first in a
    process that was forked. `deadline_s` holds for calls without a deadline; `outage` holds calls while judge or server
    is away, and stops the training when too many rewards fail.
    """

    def __init__(
        self,
        name: str,
        opens: Callable[[], AbstractAsyncContextManager[Scorer]],
        deadline_s: float,
        outage: OutageConfig | None = None,
    ) -> None:
        self.deadline_s = deadline_s
        self.outage = outage or OutageConfig()
        self._outages = Outages(self.outage)
        self._name = name
        self._opens = opens
        self._lock = threading.Lock()
        self._opened: Future[LoopThread[Scorer]] | None = None
        _SOURCES.add(self)

    async def score(
        self,
        items: Iterable[Item],
        *,
        deadline: float | None = None,
        priority: int = 0,
        since: float | None = None,
        step: int | None = None,
    ) -> list[Reward]:
        """The rewards of `items`, in their order; what has no answer after `deadline` seconds is None.

        The seconds count from `since`, a time in seconds since 1970 at which the trainer's own clock started; without
        it, from now. Without `deadline` the configured one holds; lower `priority` goes first. `step` is the trainer's,
        needed where weights depend on it. Raises RewardError for an item that is not a rollout, and for a missing step;
        OutageStop when too many rewards fail.
        """
        call = self._call(items, deadline, since, priority, step)
        opening = self._opening()
        if not opening.done():
            await asyncio.wait(
                [asyncio.wrap_future(opening)], timeout=call.left
            )  # others may wait for it too
        if not opening.done():
            return call.failed()
        return await asyncio.wrap_future(opening.result().submit(call.begin))

    def score_sync(
        self,
        items: Iterable[Item],
        *,
        deadline: float | None = None,
        priority: int = 0,
        since: float | None = None,
        step: int | None = None,
    ) -> list[Reward]:
        """`score`, for a caller that waits for it; also in a thread whose own event loop is running."""
        call = self._call(items, deadline, since, priority, step)
        try:
            thread = self._opening().result(call.left)
        except TimeoutError:
            return call.failed()
        return thread.submit(call.begin).result()

    def close(self) -> None:
        """Write what was answered and let everything go. A later call opens it again."""
        with self._lock:
            opening, self._opened = self._opened, None
        if opening is not None:
            opening.result().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _forget(self) -> None:
        """Begin without a thread: a process that was forked has none, and its locks may be held for ever."""
        self._lock = threading.Lock()
        self._opened = None

    def _call(
        self,
        items: Iterable[Item],
        deadline: float | None,
        since: float | None,
        priority: int,
        step: int | None,
    ) -> "_Call":
        passed = 0.0 if since is None else max(0.0, time.time() - since)
        seconds = self.deadline_s if deadline is None else deadline
        until = time.monotonic() + seconds - passed
        return _Call(as_items(items), until, seconds, priority, as_step(step), self._outages)

    def _opening(self) -> "Future[LoopThread[Scorer]]":
        """The thread, or the one that is being opened; an opening that failed is tried again by the next call."""
        with self._lock:
            found = self._opened
            if found is None or (found.done() and found.exception() is not None):
                found = self._opened = Future()
                threading.Thread(
                    target=self._open, args=(found,), name=f"{self._name} opens", daemon=True
                ).start()
            return found

    def _open(self, opened: "Future[LoopThread[Scorer]]") -> None:
        try:
            opened.set_result(LoopThread(self._name, self._opens))
        except BaseException as error:  # noqa: BLE001 - handed over to the callers
            opened.set_exception(error)


class _Call(msgspec.Struct):
    """Rollouts that are waited for until a moment of `time.monotonic`."""

    items: list[RewardItem]
    until: float
    seconds: float
    priority: int
    step: int | None
    outages: Outages

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self.until - time.monotonic())

    def begin(self, scorer: Scorer) -> Awaitable[list[Reward]]:
        """Score them in the time that is left; held by an outage, each time in as much as they had at first."""
        times = chain([self.left], repeat(self.seconds))

        def score() -> Awaitable[list[Reward]]:
            return scorer.score(self.items, deadline=next(times), priority=self.priority, step=self.step)

        return self.outages.held(score)

    def failed(self) -> list[Reward]:
        """The rewards if no scorer was open in time."""
        return [Reward(value=None, status="unscored", reason="deadline") for _ in self.items]


_SOURCES: "WeakSet[RewardSource]" = WeakSet()


def _forked() -> None:
    for source in _SOURCES:
        source._forget()


os.register_at_fork(after_in_child=_forked)
