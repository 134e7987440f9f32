"""A reward server in the test's own process, and its client."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from adjudge.engine.config.run import RunConfig
from adjudge.engine.rewards.scorer import open_rewards
from adjudge.engine.serving.server import RewardServer
from adjudge.engine.telemetry.http import Access
from tests.worlds import world

TEXT = "It states fact number 0. The measured value was 42 units."


class Client:
    """A client of a server in this process."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def post(self, path: str, body: object, **options: object) -> tuple[int, object]:
        data = body if isinstance(body, bytes) else json.dumps(body)
        async with self.session.post(self.url + path, data=data, **options) as response:
            return response.status, json.loads(await response.read())

    async def get(self, path: str, **options: object) -> tuple[int, str]:
        async with self.session.get(self.url + path, **options) as response:
            return response.status, await response.text()


@contextlib.asynccontextmanager
async def serving(
    folder: Path, judge: object = "lexical", token: str = "", **reward: object
) -> AsyncIterator[tuple[Client, RewardServer]]:
    config = world(folder, judge=judge, reward={"metric": "score_clipped", **reward})
    async with open_rewards(RunConfig.load(config)) as scorer, aiohttp.ClientSession() as session:
        server = RewardServer(scorer, Access(token))
        url = await server.start("127.0.0.1", 0)
        try:
            yield Client(session, url), server
        finally:
            await server.stop()
