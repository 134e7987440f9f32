"""`RewardSource`: what a trainer holds, to be called from any thread and any event loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, Self

from adjudge.engine.rewards.loop_thread import LoopThread
from adjudge.engine.rewards.reward import Item, Reward, RewardItem, as_items

__all__ = ["RewardSource"]


class Scorer(Protocol):
    """What gives the rewards, in one event loop."""

    def score(
        self, items: list[RewardItem], /, *, deadline: float | None, priority: int
    ) -> Awaitable[list[Reward]]:
        """The rewards of `items`, in their order."""
        ...


class RewardSource:
    """Rewards from the scorer that `opens` gives, which lives in an event loop and thread of its own.

    So nothing of it blocks the caller's loop. The first call opens it; a call after `close` opens it again.
    """

    def __init__(self, name: str, opens: Callable[[], AbstractAsyncContextManager[Scorer]]) -> None:
        self._name = name
        self._opens = opens
        self._lock = threading.Lock()
        self._thread: LoopThread[Scorer] | None = None

    async def score(
        self, items: Iterable[Item], *, deadline: float | None = None, priority: int = 0
    ) -> list[Reward]:
        """The rewards of `items`, in their order; what has no answer after `deadline` seconds is None.

        Without `deadline` the configured one holds; lower `priority` goes first. Raises RewardError for an item that is
        not a rollout.
        """
        work = _scoring(items, deadline, priority)
        thread = await asyncio.to_thread(self._opened) if self._thread is None else self._opened()
        return await asyncio.wrap_future(thread.submit(work))

    def score_sync(
        self, items: Iterable[Item], *, deadline: float | None = None, priority: int = 0
    ) -> list[Reward]:
        """`score`, for a caller that waits for it; also in a thread whose own event loop is running."""
        work = _scoring(items, deadline, priority)
        return self._opened().submit(work).result()

    def close(self) -> None:
        """Write what was answered and let everything go. A later call opens it again."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _opened(self) -> LoopThread[Scorer]:
        with self._lock:
            if self._thread is None:
                self._thread = LoopThread(self._name, self._opens)
            return self._thread


def _scoring(
    items: Iterable[Item], deadline: float | None, priority: int
) -> Callable[[Scorer], Awaitable[list[Reward]]]:
    rollouts = as_items(items)
    return lambda scorer: scorer.score(rollouts, deadline=deadline, priority=priority)
