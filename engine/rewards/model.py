"""`RewardModel`: what a trainer holds, to be called from any thread and any event loop."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterable

from adjudge.engine.config.run import RunConfig
from adjudge.engine.rewards.loop_thread import LoopThread
from adjudge.engine.rewards.reward import Item, Reward, RewardError, RewardItem, as_items
from adjudge.engine.rewards.scorer import RewardScorer, open_rewards

__all__ = ["Reward", "RewardError", "RewardItem", "RewardModel"]


class RewardModel:
    """Scores rollouts by the section `reward:` of a configuration (or of the file at a path). Raises UsageError.

    Its engine runs in an event loop and a thread of its own, so that nothing of it blocks the caller's. It is opened
    by the first call; `close` writes what is not yet stored. Picklable: a copy opens an engine of its own.
    """

    def __init__(self, config: RunConfig | str | os.PathLike[str]) -> None:
        self.config = config if isinstance(config, RunConfig) else RunConfig.load(config)
        self.config.check_reward()
        self._lock = threading.Lock()
        self._thread: LoopThread[RewardScorer] | None = None

    def __reduce__(self) -> tuple[type["RewardModel"], tuple[RunConfig]]:
        """Only the configuration travels."""
        return RewardModel, (self.config,)

    async def score(
        self, items: Iterable[Item], *, deadline: float | None = None, priority: int = 0
    ) -> list[Reward]:
        """The rewards of `items`, in their order (see `RewardScorer.score`)."""
        work = _scoring(items, deadline, priority)
        thread = await asyncio.to_thread(self._opened) if self._thread is None else self._opened()
        return await asyncio.wrap_future(thread.submit(work))

    def score_sync(
        self, items: Iterable[Item], *, deadline: float | None = None, priority: int = 0
    ) -> list[Reward]:
        """`score`, for a caller that waits for it; also in a thread whose own event loop is running."""
        return self._opened().submit(_scoring(items, deadline, priority)).result()

    def close(self) -> None:
        """Write what was answered, and let judge and fetcher go. A later call opens them again."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()

    def __enter__(self) -> "RewardModel":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _opened(self) -> LoopThread[RewardScorer]:
        with self._lock:
            if self._thread is None:
                self._thread = LoopThread("adjudge rewards", lambda: open_rewards(self.config))
            return self._thread


def _scoring(
    items: Iterable[Item], deadline: float | None, priority: int
) -> Callable[[RewardScorer], Awaitable[list[Reward]]]:
    taken = as_items(items)
    return lambda scorer: scorer.score(taken, deadline=deadline, priority=priority)
