"""A reward server's own process, for tests of schedules."""

import contextlib
from collections.abc import AsyncIterator

from adjudge.engine.config.run import RunConfig
from adjudge.engine.rewards.scorer import open_rewards
from adjudge.engine.serving.server import RewardServer


@contextlib.asynccontextmanager
async def served(config: RunConfig) -> AsyncIterator[str]:
    async with open_rewards(config) as scorer:
        server = RewardServer(scorer)
        try:
            yield await server.start("127.0.0.1", 0)
        finally:
            await server.stop()
