"""Fixed reports whose rewards are known, judged anew from time to time: when they change, the judge has drifted.

It notices another model behind the same name, changed weights or templates, a broken cache. It says nothing of
how good the judge is, and a drift on reports unlike the canaries goes unnoticed.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from adjudge.engine.config.errors import ConfigError
from adjudge.engine.config.reward import CanaryConfig
from adjudge.engine.rewards.reward import Reward, RewardItem
from adjudge.engine.store import StoreError
from adjudge.fetchers.pool import PoolError

__all__ = ["Canary", "CanaryWatch"]

_log = logging.getLogger(__name__)


class Canary(RewardItem, frozen=True, kw_only=True):
    """A report with its known reward. Without `value`, the first that this process sees is taken for known."""

    value: float | None = None

    @property
    def item(self) -> RewardItem:
        """What is scored."""
        return RewardItem(text=self.text, task_id=self.task_id, prompt=self.prompt, sample=self.sample)


class Score(Protocol):
    """How canaries are judged; another `repeat` is another question to the judge."""

    def __call__(self, items: Sequence[RewardItem], /, *, repeat: int = 0) -> Awaitable[list[Reward]]:
        """The rewards of `items`."""
        ...


class CanaryWatch:
    """`drift` is the mean of reward less known reward, `distance` the mean without sign; `rounds` counts rounds.

    `failed` canaries of the last round have no reward; they are in neither mean.
    """

    def __init__(self, canaries: Sequence[Canary], score: Score) -> None:
        self.rounds = 0
        self.drift = 0.0
        self.distance = 0.0
        self.failed = 0
        self._canaries = canaries
        self._known = [canary.value for canary in canaries]
        self._score = score

    @classmethod
    @asynccontextmanager
    async def running(cls, config: CanaryConfig, score: Score) -> AsyncIterator["CanaryWatch"]:
        """A watch with a round now and one every `every_s` seconds, in the background. Raises ConfigError."""
        watch = cls(await asyncio.to_thread(load_canaries, config.file), score)
        work = asyncio.ensure_future(watch._run(config.every_s))
        try:
            yield watch
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def round(self) -> None:
        """Judge all canaries anew; a store or workers that cannot be used fail them all."""
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
            rewards = await self._score(items, repeat=time.time_ns() // 1000 % 2**32)
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
    except OSError as error:
        raise ConfigError(f"reward.canary.file: {file} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ConfigError(f"reward.canary.file: {file}: not a canary: {error}") from error
    if not found:
        raise ConfigError(f"reward.canary.file: {file} holds no canary")
    return found
