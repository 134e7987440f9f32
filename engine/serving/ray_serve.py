"""The reward server as a Ray Serve application: several replicas behind one address, replaced when they fail.

    serve run adjudge.engine.serving.ray_serve:app config=adjudge.yaml

Each replica is a whole reward server on loopback that writes its own parts of the store; requests are passed to it
unchanged, token included. Through Serve, /metrics is that of an arbitrary replica: run one replica per node, and scrape
each at the address in ADJUDGE_METRICS.
"""

import os
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
from ray import serve
from starlette.requests import Request
from starlette.responses import Response

from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.rewards.scorer import open_rewards
from adjudge.engine.serving.server import RewardServer
from adjudge.engine.telemetry.endpoint import metrics_served
from adjudge.engine.telemetry.http import TOKEN, Access
from adjudge.engine.telemetry.logs import begin, form

_PASSED = ("Authorization", "Content-Type", "Content-Encoding")
_GIVEN = ("Content-Type", "Retry-After", "WWW-Authenticate", "Allow")


class RewardService:
    """One replica. It does not start without ADJUDGE_TOKEN in its environment: Serve can be reached from outside."""

    def __init__(self) -> None:
        self._open = AsyncExitStack()

    async def reconfigure(self, config: str) -> None:
        """Serve the configuration file `config` from now on. Raises ConfigError and StoreError."""
        begin(form())
        token = os.environ.get(TOKEN, "").strip()
        if not token:
            raise ConfigError(f"reward service: set {TOKEN} to a secret in the environment of the cluster")
        await self._open.aclose()
        opened = AsyncExitStack()
        self._scorer = await opened.enter_async_context(open_rewards(RunConfig.load(config)))
        server = RewardServer(self._scorer, Access(token))
        self._url = await server.start("127.0.0.1", 0)
        opened.push_async_callback(server.stop)
        await opened.enter_async_context(metrics_served(self._scorer.evaluator))
        self._client = await opened.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)
        )
        self._open = opened

    async def __call__(self, request: Request) -> Response:
        """Pass `request` to the server in this replica."""
        headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        asked = self._client.request(
            request.method, self._url + request.url.path, data=await request.body(), headers=headers
        )
        async with asked as answer:
            given = {name: answer.headers[name] for name in _GIVEN if name in answer.headers}
            return Response(await answer.read(), answer.status, given)

    async def __del__(self) -> None:
        await self._open.aclose()


def app(arguments: dict[str, str]) -> serve.Application:
    """The application; `arguments["config"]` is the path of the configuration."""
    made: Any = serve.deployment(name="RewardService", user_config=arguments["config"])
    bound: serve.Application = made(RewardService).bind()
    return bound
