"""The only way out of a browser: a proxy on this machine that connects through the guard, within one page's limits.

It takes HTTP proxy requests: CONNECT for a tunnel, and whole URLs of plain HTTP. What it refuses, or cannot reach, is
closed without an answer, since a browser would show an answer as if it were the page; `failure` says what happened.
"""

import asyncio
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self

import aiohappyeyeballs

from adjudge.fetchers.boundary import boundary
from adjudge.fetchers.failures import Failure, TooLarge
from adjudge.fetchers.guard import Guard
from adjudge.fetchers.limits import Timeouts
from adjudge.fetchers.urls import MalformedURL, Parts, normalise_url, split_url

__all__ = ["GuardedProxy"]

_MAX_HEAD = 64 << 10
_PIECE = 64 << 10
_MOST_CONNECTIONS = 128
_END = b"\r\n\r\n"
# Between browser and proxy only (RFC 9110, 7.6.1).
_NOT_PASSED_ON = (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization")


class GuardedProxy:
    """The traffic of one page, at most `max_bytes` from the network. Use as a context manager; `url` while it runs.

    Names are resolved once and stay what they were, so that a name cannot move while the page runs.
    """

    def __init__(self, guard: Guard, timeouts: Timeouts, max_bytes: int) -> None:
        self._guard = guard
        self._timeouts = timeouts
        self._max_bytes = max_bytes
        self._received = 0
        self._addresses: dict[tuple[str, int], list[aiohappyeyeballs.AddrInfoType]] = {}
        self._failures: dict[tuple[str, int], Failure] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_MAX_HEAD)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def url(self) -> str:
        """What the browser is told."""
        assert self._server is not None, "the proxy is not running"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def is_full(self) -> bool:
        """Whether the page has had all that it may receive."""
        return self._received > self._max_bytes

    def failure(self, url: str) -> Failure | None:
        """Why nothing came from the server of `url`, if that is so."""
        if self.is_full:
            return TooLarge(self._max_bytes)
        try:
            parts = split_url(url)
        except MalformedURL:
            return None
        return self._failures.get((parts.host, parts.port))

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._accepted(reader, writer))
        self._connections.add(task)

        if self._server is None or not self._server.is_serving():  # it was waiting when the page ended
            task.cancel()

        def over(task: asyncio.Task[None]) -> None:
            self._connections.discard(task)
            writer.transport.abort()

        task.add_done_callback(over)  # also of a task that ends before it begins

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The browser may go at any moment, and what it sends may be nothing that a proxy is sent.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            async with self._slots:
                head: bytes | None = await reader.readuntil(_END)
                while head is not None:
                    head = await self._exchange(head, reader, writer)
                writer.close()
                async with asyncio.timeout(self._timeouts.read):
                    await writer.wait_closed()

    async def _exchange(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """Answer the request that `head` begins. The head of the next one on this connection, or None at its end.

        A browser asks the next thing once it has the answer to the last, whose end it alone knows.
        """
        line, *headers = head.removesuffix(_END).split(b"\r\n")
        method, target, version = line.split(b" ")
        tunnel = method == b"CONNECT"
        parts = split_url(normalise_url(("https://" if tunnel else "") + target.decode("ascii")))
        connected = await self._connect(parts)
        if connected is None:
            return None
        there, site = connected
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            kept = [one for one in headers if _name(one) not in _NOT_PASSED_ON]
            asked = b" ".join((method, _target(target), version))
            site.write(b"\r\n".join((asked, *kept, b"Connection: close")) + _END)
        asking = asyncio.create_task(
            _copied(reader, site) if tunnel else _asked(reader, site, _length(headers))
        )
        answering = asyncio.create_task(self._answer(there, writer, parts))
        try:
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
            return None if answering.done() else asking.result()
        finally:
            asking.cancel()
            answering.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)
            site.transport.abort()

    async def _answer(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, parts: Parts) -> None:
        """Pass on what the server sends, to its end or to the page's limit."""
        try:
            while not self.is_full:
                async with asyncio.timeout(self._timeouts.read):
                    piece = await there.read(_PIECE)
                if not piece:
                    return
                self._received += len(piece)
                writer.write(piece)
                await writer.drain()
        except TimeoutError:
            silent = Failure("page_timeout", "nothing received in time", again=True)
            self._failures.setdefault((parts.host, parts.port), silent)

    async def _connect(self, parts: Parts) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A connection to the server that `parts` name; None, and its failure is kept, if there is to be none."""
        try:
            with boundary():
                async with asyncio.timeout(self._timeouts.connect):
                    connected = await aiohappyeyeballs.start_connection(
                        await self._resolved(parts),
                        happy_eyeballs_delay=0.25,
                        socket_factory=self._guard.socket,
                    )
                    return await asyncio.open_connection(sock=connected)
        except Failure as failure:
            self._failures[parts.host, parts.port] = failure
            return None

    async def _resolved(self, parts: Parts) -> list[aiohappyeyeballs.AddrInfoType]:
        place = parts.host, parts.port
        if place not in self._addresses:
            host = f"[{parts.host}]" if ":" in parts.host else parts.host
            self._guard.check(f"{parts.scheme}://{host}:{parts.port}/")
            found = await self._guard.resolver.resolve(parts.host, parts.port, socket.AF_UNSPEC)
            self._addresses[place] = [
                (one["family"], socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (one["host"], parts.port))
                for one in found
            ]
        return self._addresses[place]


async def _copied(reader: asyncio.StreamReader, site: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        site.write(piece)
        await site.drain()


async def _asked(reader: asyncio.StreamReader, site: asyncio.StreamWriter, length: int) -> bytes:
    """Send the `length` bytes of a request's body; the next request's head."""
    while length:
        piece = await reader.readexactly(min(length, _PIECE))
        length -= len(piece)
        site.write(piece)
        await site.drain()
    return await reader.readuntil(_END)


def _name(header: bytes) -> bytes:
    return header.partition(b":")[0].strip().lower()


def _length(headers: list[bytes]) -> int:
    """Bytes of a request's body. Browsers say it: they send no plain HTTP in chunks."""
    return next((int(one.partition(b":")[2]) for one in headers if _name(one) == b"content-length"), 0)


def _target(url: bytes) -> bytes:
    """The path and query of an absolute URL, as the browser wrote them."""
    path = url.split(b"://", 1)[1]
    begins = min((place for place in (path.find(b"/"), path.find(b"?")) if place >= 0), default=len(path))
    return path[begins:] if path[begins : begins + 1] == b"/" else b"/" + path[begins:]
