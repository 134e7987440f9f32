"""A small HTTP/1.1 server in its own thread, whose routes write raw bytes, and its log."""

import asyncio
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

HTML = "text/html; charset=utf-8"


@dataclass
class Request:
    """One request: when it arrived and when its answer ended (monotonic seconds, the server's clock)."""

    method: str
    path: str
    headers: dict[str, str]
    began: float
    ended: float = 0.0
    peer: tuple[str, int] = ("", 0)


@dataclass
class Exchange:
    """The request and the connection that a route answers."""

    request: Request
    writer: asyncio.StreamWriter
    times: int  # how often this path has been asked for, this time included

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(
        self,
        body: bytes,
        *headers: str,
        status: str = "200 OK",
        content_type: str = HTML,
    ) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        if content_type:
            lines.append(f"Content-Type: {content_type}")
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)

    async def redirect(self, location: str, status: str = "302 Found") -> None:
        await self.reply(b"", f"Location: {location}", status=status)

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        self.writer.transport.abort()


Route = Callable[[Exchange], Awaitable[None]]


@dataclass
class Server:
    """`routes` by path; others go to `otherwise`. Use as a context manager; `url(path)` while it runs."""

    routes: dict[str, Route] = field(default_factory=dict)
    otherwise: Route | None = None
    tls: ssl.SSLContext | None = None
    log: list[Request] = field(default_factory=list)
    port: int = 0
    connections: int = 0

    def __enter__(self) -> Self:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [request.path for request in self.log]

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self.tls, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:  # also of a client that has not read what was sent
            writer.transport.abort()
        await asyncio.sleep(0.01)  # an aborted transport closes its socket a moment later

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._answered(reader, writer))
        self._tasks.add(task)
        self._writers.append(writer)
        self.connections += 1
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        request = Request(method, path, headers, time.monotonic(), peer=writer.get_extra_info("peername"))
        self.log.append(request)
        exchange = Exchange(request, writer, self.paths().count(path) if path in self.routes else 1)
        route = self.routes.get(path, self.otherwise)
        try:
            if route is None:
                await exchange.reply(b"nothing here", status="404 Not Found")
            else:
                await route(exchange)
        finally:
            request.ended = time.monotonic()
        return not writer.is_closing()
