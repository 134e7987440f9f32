"""Connections that have not sent a whole request yet: few of them, and none for long.

Clients that send half a request hold a file descriptor each; without a limit, a few hundred of them keep everybody else
out. A connection in the middle of a request that is being answered is never closed here.
"""

import asyncio
import resource
from collections.abc import Awaitable, Callable

from aiohttp import web

__all__ = ["Waiting"]

MOST = 512
FIRST_S = 10.0  # for the head of the first request
IDLE_S = 75.0  # for the head of a later one
_CHECK_S = 1.0

_Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Waiting:
    """Closes connections of `server` that wait too long for a request; the oldest first where more than `most` wait."""

    def __init__(self, server: web.Server, most: int | None = None) -> None:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = min(MOST, limit // 4) if most is None else most
        self._server = server
        self._handle: _Handler = server.request_handler
        server.request_handler = self._counted
        self._since: dict[web.RequestHandler, float] = {}
        self._served: set[web.RequestHandler] = set()
        self._timer: asyncio.TimerHandle | None = None

    def protocol(self) -> web.RequestHandler:
        """The protocol of a new connection, which may take the place of one that waits."""
        loop = asyncio.get_running_loop()
        made = self._server()
        self._since[made] = loop.time()
        if len(self._since) > self.most:
            self._close(next(iter(self._since)))
        if self._timer is None:
            self._timer = loop.call_later(_CHECK_S, self._check)
        return made

    def stop(self) -> None:
        """Close nothing from now on."""
        if self._timer is not None:
            self._timer.cancel()

    async def _counted(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        self._since.pop(connection, None)
        try:
            return await self._handle(request)
        finally:
            if connection.transport is not None:
                self._served.add(connection)
                self._since[connection] = asyncio.get_running_loop().time()

    def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection, since in list(self._since.items()):
            limit = IDLE_S if connection in self._served else FIRST_S
            if now - since > limit or (connection.transport is None and now - since > _CHECK_S):
                self._close(connection)
        self._timer = asyncio.get_running_loop().call_later(_CHECK_S, self._check) if self._since else None

    def _close(self, connection: web.RequestHandler) -> None:
        del self._since[connection]
        self._served.discard(connection)
        connection.force_close()
