"""A second judge over a share of the rollouts: the gap between the two, and whether it grows.

A policy that learns to please the first judge rather than to write better earns more and more with the first than with
the second. That growing gap is what reward hacking looks like. A weakness that both judges share stays unseen.
"""

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from adjudge.engine.config.reward import AuditConfig
from adjudge.engine.errors import StoreError
from adjudge.engine.rewards.reward import Reward, RewardItem
from adjudge.fetchers.process import PoolError

__all__ = ["Audit"]

WINDOW = 256
BULK = 1_000_000
_log = logging.getLogger(__name__)


class Score(Protocol):
    """Scores rollouts with the second judge."""

    def __call__(
        self, items: Sequence[RewardItem], /, *, priority: int = 0, step: int | None = None
    ) -> Awaitable[list[Reward]]:
        """The rewards of `items`."""
        ...


class Audit:
    """Rollouts that wait to be scored again, and the gaps found: first judge minus second, in units of the reward.

    It counts rollouts: `done` were scored by both judges, `failed` by the first alone, `skipped` were chosen while too
    many others were waiting.
    """

    def __init__(self, config: AuditConfig, score: Score) -> None:
        self.done = 0
        self.failed = 0
        self.skipped = 0
        self._config = config
        self._score = score
        self._waiting: asyncio.Queue[tuple[RewardItem, float, int | None]] = asyncio.Queue(config.waiting)
        self._first: list[float] = []
        self._last: deque[float] = deque(maxlen=WINDOW)

    @classmethod
    @asynccontextmanager
    async def running(cls, config: AuditConfig, score: Score) -> AsyncIterator["Audit"]:
        """An audit that runs in the background inside the block."""
        audit = cls(config, score)
        work = asyncio.ensure_future(audit._run())
        try:
            yield audit
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    @property
    def gap(self) -> float:
        """The mean gap of the last 256 rollouts; 0 before the first."""
        return sum(self._last) / len(self._last) if self._last else 0.0

    @property
    def growth(self) -> float:
        """`gap` minus the mean gap of the first 256 rollouts."""
        return self.gap - sum(self._first) / len(self._first) if self._first else 0.0

    def offer(self, item: RewardItem, reward: Reward, step: int | None = None) -> None:
        """Queue a rollout that the first judge has scored at `step`, if it is chosen and there is room. Never waits."""
        if reward.value is None or not self._is_chosen(item):
            return
        try:
            self._waiting.put_nowait((item, reward.value, step))
        except asyncio.QueueFull:
            self.skipped += 1

    def _is_chosen(self, item: RewardItem) -> bool:
        """Choose by a hash of the text: the same rollouts in any order, and no policy can avoid it."""
        said = item.said if isinstance(item.said, str) else msgspec.json.encode(item.said).decode()
        digest = hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self._config.share * 2**64

    async def _run(self) -> None:
        while True:
            item, value, step = await self._waiting.get()
            try:
                (second,) = await self._score([item], priority=BULK, step=step)
            except (PoolError, StoreError) as error:
                _log.error("a rollout was not audited: %s", error)
                self.failed += 1
                continue
            if second.value is None:
                self.failed += 1
                continue
            self.done += 1
            gap = value - second.value
            self._last.append(gap)
            if len(self._first) < WINDOW:
                self._first.append(gap)
