"""This process's HTTP servers: access, connection limits, local pages, and the metrics endpoint.

Access needs the bearer token or, if no token is set, a connection from this machine.

Connections that have not yet sent a whole request are limited in number and time, because each holds a file descriptor:
otherwise a few hundred of them lock everybody else out. A connection whose request is being answered is never closed.

Pages for people are served on this machine only, and what they show is hostile. A content policy allows a page's own
scripts and styles and nothing else. A request whose Host is not a name of this machine is refused, so that no web page
can read them by making its own name resolve here. A request that changes something must come from one of the pages.
"""

import asyncio
import base64
import binascii
import hmac
import ipaddress
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import msgspec
from aiohttp import http, web
from yarl import URL

from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import UsageError
from adjudge.engine.telemetry.metrics import CONTENT_TYPE, Measured, page

TOKEN = "ADJUDGE_TOKEN"
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


class Access:
    """Admits requests that carry the token; without a token, all of them."""

    def __init__(self, token: str = "") -> None:
        self._token = token.encode()

    @classmethod
    def from_environment(cls, what: str, host: str) -> "Access":
        """By ADJUDGE_TOKEN, for `what` bound to `host`. Raises ConfigError for a public `host` without a token."""
        token = os.environ.get(TOKEN, "").strip()
        if not token and not _is_loopback(host):
            raise ConfigError(
                f"{what}: {host} can be reached from outside; set {TOKEN} to a secret, or bind 127.0.0.1"
            )
        return cls(token)

    @property
    def has_token(self) -> bool:
        """Whether a token is set."""
        return bool(self._token)

    def admits(self, authorization: str) -> bool:
        """Whether the value of an Authorization header is right, decided in constant time.

        The token comes as Bearer, or as the password of Basic, whatever the user's name: a client that can set no
        header can still be given a URL that holds the token as its password.
        """
        if not self._token:
            return True
        scheme, _, credentials = authorization.partition(" ")
        given = credentials.strip().encode("utf-8", "surrogateescape")
        if scheme.lower() == "basic":
            given = _password(given)
        return hmac.compare_digest(given, self._token) and scheme.lower() in ("bearer", "basic")

    def serves(self, host: str) -> bool:
        """Whether a request with this Host header is for this server.

        Without a token only a name of this machine is: no web page may reach a server here under another name.
        """
        return self.has_token or is_local(host)


def _password(credentials: bytes) -> bytes:
    """The password in the credentials of Basic (RFC 7617); nothing where they are none."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def is_local(authority: str) -> bool:
    """Whether the value of a Host header names this machine."""
    try:
        return URL.build(scheme="http", authority=authority).host in LOCAL_NAMES
    except ValueError:
        return False


def is_foreign(origin: str | None, authority: str) -> bool:
    """Whether a request with this Origin header was sent by a page of another site than the Host header names."""
    if origin is None:
        return False
    try:
        return URL(origin).authority.lower() != authority.lower()
    except ValueError:
        return True


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


async def listen(runner: web.BaseRunner, key: str, host: str, port: int, backlog: int = 128) -> str:
    """Bind `runner` to an address, port 0 to any free port; the URL, without a path.

    Raises UsageError, which begins with `key`, if the address cannot be bound; `runner` is cleaned up then.
    """
    logging.getLogger("aiohttp.server").addFilter(_without_request)
    await runner.setup()
    try:
        await _Site(runner, host, port, backlog=backlog).start()
    except OSError as error:
        await runner.cleanup()
        raise UsageError(f"{key}: {host} port {port} cannot be bound: {error.strerror}") from error
    return f"http://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}"


class _Site(web.BaseSite):
    """A TCP address whose connections do not wait for ever with half a request."""

    def __init__(self, runner: web.BaseRunner, host: str, port: int, *, backlog: int) -> None:
        super().__init__(runner, backlog=backlog)
        self._host, self._port = host, port
        assert runner.server is not None
        self._waiting = Waiting(runner.server)

    @property
    def name(self) -> str:
        """The address."""
        return f"{self._host} {self._port}"

    async def start(self) -> None:
        """Listen."""
        await super().start()
        self._server = await asyncio.get_running_loop().create_server(
            self._waiting.protocol, self._host, self._port, backlog=self._backlog
        )

    async def stop(self) -> None:
        """Accept nothing more."""
        self._waiting.stop()
        await super().stop()


async def serve_until_signal(
    server: AbstractAsyncContextManager[str], json: bool, with_stdin: bool = False
) -> None:
    """Open `server`, print its URL, and close it at SIGTERM or SIGINT, or when standard input ends if `with_stdin`.

    The URL is printed as it is, or as a JSON document {"url": ...} if `json`.
    """
    stop = asyncio.Event()
    if with_stdin:
        threading.Thread(target=_at_end, args=(asyncio.get_running_loop(), stop), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with server as url:
        sys.stdout.write(f"{msgspec.json.encode({'url': url}).decode() if json else url}\n")
        sys.stdout.flush()
        await stop.wait()


def _at_end(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Set `stop` when standard input has ended: the process that started this one is gone."""
    while os.read(0, 1 << 12):
        pass
    with suppress(RuntimeError):  # the loop has closed meanwhile
        loop.call_soon_threadsafe(stop.set)


def _without_request(record: logging.LogRecord) -> bool:
    """Shorten the record of a malformed request to one line: its error repeats headers, tokens included."""
    if record.exc_info and isinstance(record.exc_info[1], http.HttpProcessingError):
        record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
        record.msg, record.args = "a malformed HTTP request was refused", ()
    return True


HOST = "127.0.0.1"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def local_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse what is not from this machine, and what another site's page sends; give every response its headers."""
    host = request.headers.get("Host", "")
    if not is_local(host):
        response: web.StreamResponse = web.Response(status=421, text="not served under this name\n")
    elif request.method not in ("GET", "HEAD") and is_foreign(request.headers.get("Origin"), host):
        response = web.Response(status=403, text="sent by another site\n")
    else:
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.reason}\n")
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


@asynccontextmanager
async def metrics_at(address: str, variable: str, measured: Measured) -> AsyncIterator[None]:
    """Serve /metrics at `address` inside the block. Raises UsageError for one that cannot be used."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{variable}: {address!r} is not an address; write HOST:PORT, like 127.0.0.1:9400")
    access = Access.from_environment(variable, host)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if not access.serves(request.headers.get("Host", "")):
            return web.Response(status=421, text="not served under this name\n")
        if request.path != "/metrics":
            return web.Response(status=404, text="see /metrics\n")
        if not access.admits(request.headers.get("Authorization", "")):
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        return web.Response(body=page(measured.measured()), headers={"Content-Type": CONTENT_TYPE})

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=1.0)
    await listen(runner, variable, host, int(port))
    try:
        yield
    finally:
        await runner.cleanup()
