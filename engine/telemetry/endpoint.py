"""The metrics of a run over HTTP while it lasts, at HOST:PORT from the environment variable ADJUDGE_METRICS.

The workers of a cluster send theirs to the driver, so one page covers all of them.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web

from adjudge.engine.config.access import Access
from adjudge.engine.config.errors import ConfigError
from adjudge.engine.telemetry.families import CONTENT_TYPE, Family, page
from adjudge.engine.telemetry.listener import listen

__all__ = ["ADDRESS", "metrics_served"]

ADDRESS = "ADJUDGE_METRICS"


class _Measured(Protocol):
    def measured(self) -> list[Family]: ...


@asynccontextmanager
async def metrics_served(measured: _Measured) -> AsyncIterator[None]:
    """Serve /metrics inside the block if ADJUDGE_METRICS is set. Raises UsageError for an unusable address."""
    address = os.environ.get(ADDRESS, "").strip()
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{ADDRESS}: {address!r} is not an address; write HOST:PORT, like 127.0.0.1:9400")
    access = Access.from_environment(ADDRESS, host)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if not access.serves(request.headers.get("Host", "")):
            return web.Response(status=421, text="not served under this name\n")
        if request.path != "/metrics":
            return web.Response(status=404, text="see /metrics\n")
        if not access.admits(request.headers.get("Authorization", "")):
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        return web.Response(body=page(measured.measured()), headers={"Content-Type": CONTENT_TYPE})

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=1.0)
    await listen(runner, ADDRESS, host, int(port))
    try:
        yield
    finally:
        await runner.cleanup()
