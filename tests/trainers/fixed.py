"""Sources of fixed rewards, for what trainers make of them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from adjudge.engine.rewards.reward import Reward, RewardItem
from adjudge.engine.rewards.source import RewardSource


class _Fixed:
    def __init__(self, values: Sequence[float | None]) -> None:
        self._values = values

    async def score(self, items: list[RewardItem], **given: object) -> list[Reward]:
        return [
            Reward(value=value, status="scored")
            if value is not None
            else Reward(value=None, status="unscored", reason="deadline")
            for value, _ in zip(self._values, items, strict=True)
        ]


def fixed(values: Sequence[float | None]) -> RewardSource:
    """A source whose every call holds as many rollouts as there are `values`, and gets these."""

    @asynccontextmanager
    async def opens() -> AsyncIterator[_Fixed]:
        yield _Fixed(values)

    return RewardSource("fixed", opens, 30.0)
