"""Watching a judge while it rewards: a second judge over a share of the rollouts, and fixed reports (canaries).

A policy that learns to please the first judge rather than to write better gains more and more with the first than with
the second. That growing gap is what reward hacking looks like. A weakness that both judges share stays invisible.

Canaries are fixed reports with known rewards, judged again at intervals; if their rewards change, the judge has
drifted. This detects another model behind the same name, changed weights or templates, and a broken cache. It does not
show how good the judge is, and misses drift on reports unlike the canaries.
"""

import asyncio
import hashlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from adjudge.engine.config.reward import LAST_STEP, AuditConfig, CanaryConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import StoreError
from adjudge.engine.rewards.reward import Reward, RewardError, RewardItem, as_items
from adjudge.fetchers.process import PoolError

__all__ = ["Audit", "CanaryWatch"]

_log = logging.getLogger(__name__)

WINDOW = 256
BULK = 1_000_000


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


class Canary(RewardItem, frozen=True, kw_only=True, omit_defaults=True):
    """A report with its known reward. Without `value`, the first reward in this process becomes the known one."""

    value: float | None = None

    @property
    def item(self) -> RewardItem:
        """The rollout to score."""
        return RewardItem(**{name: getattr(self, name) for name in RewardItem.__struct_fields__})


class CanariesScore(Protocol):
    """Scores canaries; with another `repeat` the judge is asked again instead of the store."""

    def __call__(
        self, items: Sequence[RewardItem], /, *, repeat: int = 0, step: int | None = None
    ) -> Awaitable[list[Reward]]:
        """The rewards of `items`."""
        ...


class CanaryWatch:
    """The canaries and how far they were off in the last round, with the last weights where these depend on the step.

    `drift` is the mean of reward minus known reward, `distance` the mean of its absolute value. `failed` canaries had
    no reward in the last round and are in neither mean; `rounds` counts rounds.
    """

    def __init__(self, canaries: Sequence[Canary], score: CanariesScore) -> None:
        self.rounds = 0
        self.drift = 0.0
        self.distance = 0.0
        self.failed = 0
        self._canaries = canaries
        self._known = [canary.value for canary in canaries]
        self._score = score

    @classmethod
    @asynccontextmanager
    async def running(cls, config: CanaryConfig, score: CanariesScore) -> AsyncIterator["CanaryWatch"]:
        """A watch that does a round now and every `every_s` seconds, in the background. Raises ConfigError."""
        watch = cls(await asyncio.to_thread(load_canaries, config.file), score)
        work = asyncio.ensure_future(watch._run(config.every_s))
        try:
            yield watch
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def round(self) -> None:
        """Judge all canaries again; if the store or the workers cannot be used, all of them failed."""
        values = await self._values()
        self._known = [
            value if known is None else known for known, value in zip(self._known, values, strict=True)
        ]
        gaps = [
            value - known
            for value, known in zip(values, self._known, strict=True)
            if value is not None and known is not None
        ]
        self.failed = len(values) - len(gaps)
        if gaps:
            self.drift = sum(gaps) / len(gaps)
            self.distance = sum(map(abs, gaps)) / len(gaps)
        self.rounds += 1

    async def _values(self) -> list[float | None]:
        items = [canary.item for canary in self._canaries]
        try:
            rewards = await self._score(items, repeat=time.time_ns() // 1000 % 2**32, step=LAST_STEP)
        except (PoolError, StoreError) as error:
            _log.error("a round of canaries failed: %s", error)
            return [None] * len(items)
        return [reward.value for reward in rewards]

    async def _run(self, every_s: float) -> None:
        while True:
            await self.round()
            await asyncio.sleep(every_s)


def load_canaries(file: str) -> list[Canary]:
    """The canaries of a JSON Lines file. Raises ConfigError."""
    try:
        lines = Path(file).read_bytes().splitlines()
        found = [msgspec.json.decode(line, type=Canary) for line in lines if line.strip()]
        as_items(found)
    except OSError as error:
        raise ConfigError(f"reward.canary.file: {file} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeError, RecursionError, RewardError) as error:
        raise ConfigError(f"reward.canary.file: {file}: invalid canary: {error}") from error
    if not found:
        raise ConfigError(f"reward.canary.file: {file} is empty; add at least one canary")
    return found
