"""One OpenAI-compatible server over HTTP: sends requests, receives replies, and keeps secrets out of its messages.

Connections are kept open between requests. httptools reads the responses, so a request costs a third of the processor
time that aiohttp's sessions take, which do much that a judge does not need: redirects, cookies, traces.
"""

import asyncio
import os
import random
import re
import socket
import ssl
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.request import getproxies_environment, proxy_bypass

import aiohappyeyeballs
import brotli
import httptools
import msgspec
from yarl import URL

from adjudge.judges.completions import (
    HINTS,
    BrokenReply,
    Completion,
    Model,
    Overheard,
    asked_wait,
    cache_tokens,
    complaint,
    completion,
    failure_inside,
    is_spent,
    models,
)
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import (
    KEY_VARIABLE,
    THINKING_TOKENS,
    FromEnvironment,
    JudgeReason,
    Omitted,
    Profile,
    Redaction,
    is_server_address,
    shown_url,
)

ADDRESSES_S = 60.0  # that the addresses of the host's name are kept
IDLE_S = 15.0  # then a connection may be dead without a word: routers forget it
MAX_BARE_BYTES = 65_536  # of a response, one after the other without a byte of its body
_EYEBALLS_S = 0.25  # until a second address of the host is tried (RFC 8305)
_CLOSED = "the server closed the connection"
_ENDED = "the connections to the server have been closed"
_SMALL = 65_536  # such a body is copied behind its head, and sent in one go


class ConnectionFailed(Exception):
    """No connection, or no whole response over it."""


class Response(msgspec.Struct, frozen=True):
    """A final response; `body` is None if it is too large, `headers` are those of `HINTS` by their names."""

    status: int
    body: bytes | None
    headers: Mapping[str, str]


_CONNECTED = re.compile(r"HTTP/1\.[01] 2[0-9][0-9]")


def proxy_of(url: URL) -> URL | None:
    """The proxy that the environment names for `url` (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY), or None.

    None on this machine's own addresses. Raises JudgeError for one that is not of HTTP.
    """
    proxies = getproxies_environment()
    named = proxies.get(url.scheme) or proxies.get("all")
    host = url.raw_host or ""
    if not named or _OWN.fullmatch(host) or proxy_bypass(f"{host}:{url.port}", proxies):
        return None
    try:
        proxy = URL(named if "://" in named else f"http://{named}")
        is_usable = proxy.scheme == "http" and proxy.raw_host is not None and proxy.port is not None
    except ValueError:
        is_usable = False
    if not is_usable:
        raise JudgeError(
            f"the proxy {shown_url(named)} of the environment: must look like http://HOST:PORT; correct it, "
            f"or add {host} to NO_PROXY"
        )
    return proxy


_OWN = re.compile(r"localhost|127\.[0-9.]+|::1")


class Connections:
    """As many connections to the server of `url` as there are requests at once; for one event loop.

    `headers` go with every request. Connecting takes at most `connect_timeout_s`, a request from sending to the last
    byte at most `timeout_s`; a body is read up to `max_body_bytes`.
    """

    def __init__(
        self,
        url: URL,
        headers: Mapping[str, str],
        *,
        connect_timeout_s: float,
        timeout_s: float,
        max_body_bytes: int,
    ) -> None:
        assert url.raw_host is not None and url.port is not None and url.host_port_subcomponent is not None
        self._host, self._port = url.raw_host, url.port
        self._where = url.host_port_subcomponent
        self._has_tls = url.scheme == "https"
        self._proxy = proxy_of(url)
        self._peer = (self._host, self._port)
        self._before = ""  # what comes before the target of a request
        lines = {"Host": self._where, "Accept": "*/*", **headers}
        self._permit = ""
        if self._proxy is not None:
            assert self._proxy.raw_host is not None and self._proxy.port is not None
            self._peer = (self._proxy.raw_host, self._proxy.port)
            if self._proxy.user:
                login = f"{self._proxy.user}:{self._proxy.password or ''}".encode()
                self._permit = f"Proxy-Authorization: Basic {b64encode(login).decode()}\r\n"
            if not self._has_tls:
                self._before = f"http://{self._where}"
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        if self._before:
            self._headers += f"{self._permit}Connection: close\r\n"  # not every proxy reads a second request
        self._connect_timeout_s = connect_timeout_s
        self._timeout_s = timeout_s
        self._max_body_bytes = max_body_bytes
        self._tls: ssl.SSLContext | None = None
        self._is_closed = False
        self._resolving = asyncio.Lock()
        self._resolved_until = 0.0
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []  # the last one used at the end

    async def request(
        self, method: str, target: str, body: bytes | None = None, overheard: Overheard | None = None
    ) -> Response:
        """The response to one request, which may be stopped by what is `overheard`.

        Raises ConnectionFailed, and TimeoutError after `timeout_s`.
        """
        if self._is_closed:
            raise ConnectionFailed(_ENDED)
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        head = f"{method} {self._before}{target} HTTP/1.1\r\n{self._headers}{length}\r\n".encode("ascii")
        connection = self._kept() or await self._connect()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await connection.exchange(head, body or b"", overheard)
        finally:
            if connection.is_reusable and not self._before:
                self._idle.append(connection)
            else:
                connection.close()

    async def close(self) -> None:
        """Close the connections, and end what is asked over them. Later requests fail."""
        self._is_closed = True
        closing = list(self._open)
        self._idle.clear()
        for connection in closing:
            connection.close()
        await asyncio.gather(*(connection.lost for connection in closing))

    def _kept(self) -> "_Connection | None":
        since = asyncio.get_running_loop().time() - IDLE_S
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable and connection.used_at >= since:
                return connection
            connection.close()
        return None

    async def _connect(self) -> "_Connection":
        if self._has_tls and self._tls is None:
            self._tls = ssl.create_default_context()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                addresses = await self._resolve(loop)
                # uvloop, which Ray takes where it is installed, cannot try several addresses by itself.
                sock = await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=_EYEBALLS_S)
                if self._proxy is not None and self._has_tls:
                    await self._tunnel(loop, sock)
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop, self._max_body_bytes),
                    sock=sock,
                    ssl=self._tls,
                    server_hostname=self._host if self._has_tls else None,
                )
        except (OSError, UnicodeError) as error:  # a timeout is an OSError; a name may be too long to be one
            self._resolved_until = 0.0
            said = f"no answer within {self._connect_timeout_s:g} s" if not error.args else str(error)
            through = "" if self._proxy is None else f" through the proxy {shown_url(str(self._proxy))}"
            raise ConnectionFailed(f"cannot connect to {self._where}{through}: {said}") from None
        if self._is_closed:
            connection.close()
            raise ConnectionFailed(_ENDED)
        self._open.add(connection)
        connection.lost.add_done_callback(lambda _: self._open.discard(connection))
        return connection

    async def _tunnel(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        """Have the proxy connect `sock` to the server. Raises OSError."""
        there = f"{self._where}" if ":" in self._where.rpartition("]")[2] else f"{self._where}:{self._port}"
        asked = f"CONNECT {there} HTTP/1.1\r\nHost: {there}\r\n{self._permit}\r\n"
        try:
            await loop.sock_sendall(sock, asked.encode("ascii"))
            head = b""
            while b"\r\n\r\n" not in head:
                part = await loop.sock_recv(sock, 4096)
                if not part or len(head) > MAX_BARE_BYTES:
                    raise OSError("the proxy does not answer CONNECT")
                head += part
            status = head.split(b"\r\n", 1)[0].decode("latin-1")[:100]
            if not _CONNECTED.match(status):
                raise OSError(f"the proxy refuses: {status}")
        except BaseException:
            sock.close()
            raise

    async def _resolve(self, loop: asyncio.AbstractEventLoop) -> Sequence[aiohappyeyeballs.AddrInfoType]:
        """The addresses of the host, looked up once for all who wait for them."""
        async with self._resolving:
            if loop.time() >= self._resolved_until:
                self._addresses = await loop.getaddrinfo(*self._peer, type=socket.SOCK_STREAM)
                self._resolved_until = loop.time() + ADDRESSES_S
            return self._addresses


class _Connection(asyncio.Protocol):
    """One connection, which carries one request at a time. The `on_` methods are called by the parser of a response."""

    def __init__(self, loop: asyncio.AbstractEventLoop, max_body_bytes: int) -> None:
        self.lost: asyncio.Future[None] = loop.create_future()
        self.is_reusable = False
        self.used_at = 0.0
        self._loop = loop
        self._max_body_bytes = max_body_bytes
        self._response: asyncio.Future[Response] | None = None
        self._overheard: Overheard | None = None
        self.on_message_begin()

    def exchange(
        self, head: bytes, body: bytes, overheard: Overheard | None = None
    ) -> asyncio.Future[Response]:
        """Send a request; the future of its response fails with ConnectionFailed."""
        self.is_reusable = False
        self._overheard = overheard
        self._response = response = self._loop.create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._bare = 0
        self.on_message_begin()
        if self.lost.done():
            self._fail(_CLOSED)
        elif len(body) <= _SMALL:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)
        return response

    def close(self) -> None:
        """Close at once."""
        self.is_reusable = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass

    def data_received(self, data: bytes) -> None:
        if self._response is None or self._response.done():
            self.close()  # bytes that nobody asked for
            return
        self._has_body = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"the response is not HTTP/1.1: {error}")
        self._bare = 0 if self._has_body else self._bare + len(data)
        if self._bare > MAX_BARE_BYTES:
            self._fail(f"the response has more than {MAX_BARE_BYTES:,} bytes of headers")

    def eof_received(self) -> None:
        self.is_reusable = False

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._has_head and not self._has_length:
            self._finish(bytes(self._body))
        self._fail(_CLOSED if exc is None else f"the connection broke off: {exc}")
        self.lost.set_result(None)

    def on_message_begin(self) -> None:
        """Forget an interim response (1xx), if there was one."""
        self._body = bytearray()
        self._has_head = self._has_length = False
        self._hints: dict[str, str] = {}
        self._encoding = ""
        if self._response is not None and self._response.done():
            self.close()  # a second response

    def on_header(self, name: bytes, value: bytes) -> None:
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._has_length = True
            case hint if hint in _HINTS:
                self._hints[hint.decode()] = value.decode("latin-1")
            case b"content-encoding":
                self._encoding = value.decode("latin-1").strip().lower()

    def on_headers_complete(self) -> None:
        self._has_head = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._has_body = True
        if len(self._body) + len(body) > self._max_body_bytes:
            self._finish(None)
            return
        self._body += body
        if self._overheard is not None and not self._encoding:
            stopped = self._overheard.stopped(self._body)
            if stopped is not None:
                self._finish(stopped)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() >= 200:
            sent = not self._transport.get_write_buffer_size()
            self._finish(bytes(self._body), self._parser.should_keep_alive() and sent)

    def _finish(self, body: bytes | None, is_reusable: bool = False) -> None:
        if self._response is not None and not self._response.done():
            status = self._parser.get_status_code()
            if body and self._encoding in _PACKED:
                try:
                    undo = unbrotlied if self._encoding == "br" else unpacked
                    body = undo(body, self._max_body_bytes)
                except (zlib.error, brotli.error) as error:
                    self._fail(f"the response is not {self._encoding}: {error}")
                    return
            self._response.set_result(Response(status, body, self._hints))
            self.is_reusable = is_reusable
            self.used_at = self._loop.time()

    def _fail(self, said: str) -> None:
        self.close()
        if self._response is not None and not self._response.done():
            self._response.set_exception(ConnectionFailed(said))


_HINTS = frozenset(name.encode() for name in (*HINTS, "location"))
_PACKED = frozenset({"gzip", "x-gzip", "deflate", "br"})
_ZLIB_OR_GZIP = zlib.MAX_WBITS | 32


def unpacked(body: bytes, most_bytes: int) -> bytes | None:
    """A body that was packed by gzip or deflate, with or without a head; None if it has more than `most_bytes`.

    Raises zlib.error.
    """
    is_zlib = len(body) > 1 and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    has_head = is_zlib or body.startswith(b"\x1f\x8b")
    stream = zlib.decompressobj(_ZLIB_OR_GZIP if has_head else -zlib.MAX_WBITS)
    found = stream.decompress(body, most_bytes + 1)
    if len(found) > most_bytes:
        return None
    if not stream.eof:
        raise zlib.error("it ends too early")
    return found


def unbrotlied(body: bytes, most_bytes: int) -> bytes | None:
    """A body that was packed by Brotli; None if it has more than `most_bytes`. Raises brotli.error."""
    stream = brotli.Decompressor()
    found = stream.process(body, output_buffer_limit=most_bytes + 1)
    while not stream.is_finished() and len(found) <= most_bytes:
        more = stream.process(b"", output_buffer_limit=most_bytes + 1)
        if not more:
            raise brotli.error("it ends too early")
        found += more
    return None if len(found) > most_bytes else found


MAX_BODY_BYTES = 8_000_000
MAX_WAIT_S = 60.0
LONGEST_WAIT_S = 600.0  # a server that asks for more takes nothing more in this run
MAX_BACKOFF_S = 30.0
_SPREAD_S = 0.05
_RESTING = frozenset({429, 503, 529})
# The server, or one behind it, is not ready.
_TRANSIENT = frozenset({202, 408, 409, 420, 424, 425, 429, 498, 499})
_UNUSABLE = frozenset({401, 402, 403, 404, 405, 413})
_PASSES = re.compile(r"overloaded|over capacity|temporarily|try again (?:later|shortly|soon)", re.IGNORECASE)
_SHARED = frozenset({429, 498, 529})  # what says that a server has too much to do, whoever asks
_TOO_LARGE = re.compile(r"too (?:large|long|big)|larger than|shorten|reduce (?:the|your)", re.IGNORECASE)


class OpenAIConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One server and one model on it.

    - `url` is the API's base, like `http://127.0.0.1:8000/v1`.
    - `api_key_env` names the environment variable that holds the key; without it, no authorisation is sent.
    - `headers` are sent with every request; a value may stand in the environment.
    - `revision` and `quantization` tell apart models of the same name.
    - `max_in_flight` requests are open at once.
    - `connect_timeout_s` bounds connecting, `timeout_s` a request from sending to the last byte. Waiting for
      a slot counts in neither.
    - `retries` follow a failed attempt, after random waits of up to `backoff_s`, doubled each time.
    - `thinking` is for models that think before they answer: they get `thinking_tokens` for it, twice as many if a
      reply is cut off, and no `analysis` field.
    - `max_context` is the most tokens that prompt and answer may need, if less than the server's own limit.
    - `media` are the kinds (image, audio, video) that the model takes.
    - `request` is added to every request, and what `omit` names is left out.
    - With `stream`, replies are asked for as events.
    - With `strict_identity`, an answer by another model than the one that was tried is an error.
    - `profile` says whether tokens are saved (adjudge.judges.profile).
    - With `free_text`, the probe asks for no schema: what is asked in a benchmark's own words has none.
    """

    url: str
    model: str
    api_key_env: str = KEY_VARIABLE
    headers: Mapping[str, FromEnvironment | str] = {}
    revision: str = ""
    quantization: str = ""
    max_in_flight: int = 256
    connect_timeout_s: float = 10.0
    timeout_s: float = 600.0
    retries: int = 5
    backoff_s: float = 0.5
    temperature: float = 0.0
    thinking: bool = False
    thinking_tokens: int = THINKING_TOKENS
    max_context: int | None = None
    media: tuple[str, ...] = ()
    request: Mapping[str, Any] = {}
    omit: tuple[Omitted, ...] = ()
    stream: bool = False
    strict_identity: bool = False
    profile: Profile = "exact"
    free_text: bool = False


class Received(msgspec.Struct, frozen=True):
    """The result of one request: a status and a body (None: too large), or no status and a `failure`.

    `said` is what the server, or the connection, says of a failure; without secrets. `found` is the chat completion, if
    the body holds one; `is_broken` if it holds none though the server has answered before. A body of status 200 that
    only tells of a failure has the status of that failure.
    """

    seconds: float
    status: int = 0
    body: bytes | None = b""
    said: str = ""
    found: Completion | None = None
    wait_s: float | None = None
    failure: JudgeReason | None = None
    is_spent: bool = False
    is_alone: bool = False
    is_broken: bool = False

    @property
    def is_good(self) -> bool:
        """Whether the body is a reply."""
        return 200 <= self.status < 300 and self.status not in _TRANSIENT

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed soon."""
        if self.is_spent:
            return False
        if self.failure == "judge_unavailable" or self.status in _TRANSIENT or self.status >= 500:
            return True
        refused = 400 <= self.status < 500 and self.status not in _UNUSABLE
        return self.is_broken or (refused and _PASSES.search(self.said) is not None)


def backoff(first_s: float, attempt: int) -> float:
    """Seconds before the next attempt: full jitter, doubled each time."""
    return random.uniform(0.0, min(MAX_BACKOFF_S, first_s * 2**attempt))


def _from_environment(variable: str) -> str:
    """The value of an environment variable, "" if it is not set. Raises JudgeError if no header can hold it."""
    value = os.environ.get(variable, "").strip()
    if not (value.isascii() and value.isprintable()):
        raise JudgeError(f"environment variable {variable}: contains characters that are invalid in a key")
    return value


class Server:
    """The server of `config`. `where` names it in messages, `key_name` the environment variable of its key.

    Raises JudgeError for a URL or a key that cannot be used.
    """

    def __init__(self, config: OpenAIConfig) -> None:
        self.where = shown_url(config.url)
        self.key_name = config.api_key_env
        try:
            url = URL(config.url) if is_server_address(config.url) else None
        except ValueError:  # a name that no host can have
            url = None
        if url is None:
            raise JudgeError(f"judge url {self.where!r}: must look like http://127.0.0.1:8000/v1")
        if url.user or url.password:
            raise JudgeError(
                f"judge url on {url.host}: remove the credentials and put the key into the environment"
            )
        self.url = (url / "chat" / "completions").with_query(url.query)
        self._key = _from_environment(config.api_key_env)
        given = {
            name: value if isinstance(value, str) else _from_environment(value.env)
            for name, value in config.headers.items()
        }
        self._config = config
        self._answers = 0
        self._rests_until = 0.0
        secrets = (
            given[name] for name, value in config.headers.items() if isinstance(value, FromEnvironment)
        )
        self.redacted = Redaction(self._key, (*secrets, self.url.query_string, *self.url.query.values()))
        headers = {
            "Content-Type": "application/json",
            # Events are read while they arrive.
            "Accept-Encoding": "identity" if config.stream else "gzip, deflate, br",
            "User-Agent": "adjudge",
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        ours = {name.lower(): name for name in headers}
        headers |= {ours.get(name.lower(), name): value for name, value in given.items() if value}
        self._connections = Connections(
            self.url,
            headers,
            connect_timeout_s=config.connect_timeout_s,
            timeout_s=config.timeout_s,
            max_body_bytes=MAX_BODY_BYTES,
        )

    @property
    def has_key(self) -> bool:
        """Whether a key is sent."""
        return bool(self._key)

    @property
    def lacks(self) -> str | None:
        """A variable that was named for the key or a header, and is not set."""
        if not self._key and self.key_name != KEY_VARIABLE:
            return self.key_name
        named = (one.env for one in self._config.headers.values() if isinstance(one, FromEnvironment))
        return next((name for name in named if not _from_environment(name)), None)

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()

    async def send(
        self, body: bytes, retries: int | None = None, is_final: Callable[[Received], bool] = lambda _: False
    ) -> Received:
        """The server's final reply; transient failures are retried after a wait (None: as often as configured)."""
        most = self._config.retries if retries is None else retries
        answers: int | None = None
        for attempt in range(most + 1):
            await self._turn()
            received = await self._request("POST", self.url, body)
            self._answers += received.found is not None
            if not received.is_transient or is_final(received):
                return received
            if received.wait_s is not None:
                self._rest(received.wait_s)
            if answers is None:
                answers = self._answers
            if attempt < most:
                await asyncio.sleep(backoff(self._config.backoff_s, attempt))
        # A status comes from a server that runs; connections fail for all alike, and so does one that is overrun.
        is_shared = received.status in _SHARED and not _TOO_LARGE.search(received.said)
        is_own = bool(received.status) and not is_shared
        is_alone = is_own and answers is not None and self._answers > answers
        return msgspec.structs.replace(received, is_alone=is_alone)

    def _rest(self, wait_s: float) -> None:
        """Send nothing for so long: what the server asks of one request holds for all."""
        until = asyncio.get_running_loop().time() + min(MAX_WAIT_S, wait_s)
        self._rests_until = max(self._rests_until, until)

    async def _turn(self) -> None:
        """Wait until the server takes requests again; longer, if it says so meanwhile."""
        loop = asyncio.get_running_loop()
        while (wait := self._rests_until - loop.time()) > 0:  # noqa: ASYNC110 - only time ends it
            await asyncio.sleep(wait + random.uniform(0.0, _SPREAD_S))

    async def models(self) -> list[Model]:
        """The models that the server lists; empty if it does not."""
        received = await self._request("GET", self.url.parent.parent / "models")
        return models(received.body) if received.is_good else []

    async def cache_tokens(self) -> int | None:
        """The tokens that the server's cache holds, as vLLM's metrics beside its API say; None if it has none."""
        received = await self._request("GET", self.url.parent.parent.parent / "metrics")
        return cache_tokens(received.body) if received.is_good else None

    async def _request(self, method: str, url: URL, body: bytes | None = None) -> Received:
        started = time.perf_counter()
        try:
            overheard = Overheard() if self._config.stream and body is not None else None
            response = await self._connections.request(method, url.raw_path_qs, body, overheard)
        except TimeoutError:
            said = f"no answer within {self._config.timeout_s:g} s"
            return Received(time.perf_counter() - started, said=said, failure="judge_timeout")
        except ConnectionFailed as error:
            said = self.redacted(str(error))
            return Received(time.perf_counter() - started, said=said, failure="judge_unavailable")
        seconds = time.perf_counter() - started
        status = response.status
        if 200 <= status < 300:
            content = response.body and self.redacted.body(response.body)
            if body is None:
                return Received(seconds, status, content)
            try:
                return Received(seconds, status, content, found=completion(content))
            except BrokenReply as error:
                inside = None if content is None else failure_inside(content)
                if inside is None and status not in _TRANSIENT:
                    return Received(seconds, status, content, str(error), is_broken=self._answers > 0)
                status = inside or status
        said = complaint(response.body or b"", self.redacted)
        if 300 <= status < 400:
            said = (
                f"redirects to {self.redacted(shown_url(response.headers.get('location', 'nowhere')))[:200]}"
            )
        wait_s = (
            asked_wait(response.headers, response.body or b"", time.time()) if status in _RESTING else None
        )
        spent = status in _RESTING and (is_spent(said) if wait_s is None else wait_s > LONGEST_WAIT_S)
        return Received(seconds, status, said=said, wait_s=wait_s, is_spent=spent)
