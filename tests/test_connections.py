"""Connections to a judge's server: every form that a response may have, and what a hostile server may send."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from adjudge.judges import server
from adjudge.judges.server import MAX_BARE_BYTES, ConnectionFailed, Connections, Response

BODY_LIMIT = 1_000_000
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
HELLO = Response(200, b"hello", {})

ENDS = asyncio.IncompleteReadError, asyncio.LimitOverrunError  # of what a client sends
Route = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Served:
    """A server whose connections are given to `route`; how many there were and are, and the heads of their requests."""

    def __init__(self, route: Route) -> None:
        self.connections = 0
        self.open = 0
        self.heads: list[bytes] = []
        self._route = route
        self._tasks: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(ConnectionError, *ENDS, asyncio.CancelledError):
            while not writer.is_closing():
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                await self._route(reader, writer)
                await writer.drain()
        self.open -= 1
        writer.transport.abort()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.sleep(0.01)  # an aborted transport closes its socket a moment later


@asynccontextmanager
async def served(
    route: Route, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, timeout_s: float = 20.0
) -> AsyncIterator[tuple[Connections, Served]]:
    """Connections to a server, and the server."""
    to = Served(route)
    server = await asyncio.start_server(to.connected, host, 0, ssl=tls)
    shown = f"[{host}]" if ":" in host else host
    port = server.sockets[0].getsockname()[1]
    of = made(f"{'https' if tls else 'http'}://{shown}:{port}/v1/chat/completions?api=2", timeout_s)
    try:
        yield of, to
    finally:
        await of.close()
        server.close()
        await to.close()


def made(url: str, timeout_s: float = 20.0, connect_timeout_s: float = 5.0) -> Connections:
    return Connections(
        URL(url),
        {"User-Agent": "test"},
        connect_timeout_s=connect_timeout_s,
        timeout_s=timeout_s,
        max_body_bytes=BODY_LIMIT,
    )


def sending(*parts: bytes, close: bool = False, pause_s: float = 0.0) -> Route:
    """A route that sends `parts` one by one."""

    async def route(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
        if close:
            writer.write_eof()
            await reader.read()

    return route


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, for at most 20 s."""
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


def is_unusable(of: Connections) -> bool:
    return not any(connection.is_reusable for connection in of._idle)


async def get(of: Connections) -> Response:
    return await of.request("GET", "/v1/models")


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
FORMS = {
    "with its length": OK,
    "in chunks": CHUNKED + b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
    "in chunks with extensions and trailers": CHUNKED + b"5;a=b\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
    "after an interim response": b"HTTP/1.1 103 Early Hints\r\nRetry-After: 9\r\nLink: </a>\r\n\r\n" + OK,
    "after two of them": b"HTTP/1.1 100 Continue\r\n\r\n" * 2 + OK,
    "without a reason": OK.replace(b" OK", b""),
    "with a reason in Latin-1": OK.replace(b"OK", b"\xe9t\xe9"),
}


@pytest.mark.parametrize("name", FORMS)
async def test_response_is_read_and_its_connection_kept(name):
    async with served(sending(FORMS[name])) as (of, server):
        assert [await get(of) for _ in range(3)] == [HELLO] * 3
        assert server.connections == 1


@pytest.mark.parametrize("name", FORMS)
async def test_response_may_come_byte_by_byte(name):
    async with served(sending(*(FORMS[name][i : i + 1] for i in range(len(FORMS[name]))))) as (of, _):
        assert await get(of) == HELLO


def test_other_event_loops_will_do():
    """Ray runs its actors on uvloop where it is installed."""
    uvloop = pytest.importorskip("uvloop")

    async def asked() -> None:
        for form in FORMS.values():
            async with served(sending(form)) as (of, server):
                assert await asyncio.gather(get(of), get(of)) == [HELLO] * 2
                assert await of.request("POST", "/", b"x" * 100_000) == HELLO
                assert server.connections == 2

    uvloop.run(asked())


@given(st.data(), st.binary(max_size=2_000), st.booleans())
def test_places_of_the_cuts_do_not_matter(data, body, in_chunks):
    if in_chunks:
        cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body)), max_size=5))})
        pieces = [body[a:b] for a, b in pairwise(cuts)]
        sent = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        sent = b"HTTP/1.1 200 OK\r\nRetry-After: 7\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    cuts = sorted({0, len(sent), *data.draw(st.lists(st.integers(0, len(sent)), max_size=8))})
    parts = [sent[a:b] for a, b in pairwise(cuts)]

    async def received() -> Response:
        loop = asyncio.get_running_loop()
        connection = server._Connection(loop, BODY_LIMIT)
        ours, theirs = socket.socketpair()
        with theirs:
            await loop.create_connection(lambda: connection, sock=ours)
            response = connection.exchange(b"GET / HTTP/1.1\r\n\r\n", b"")
            for part in parts:
                connection.data_received(part)
            assert connection.is_reusable
            connection.close()
            await connection.lost
            return response.result()

    assert asyncio.run(received()) == Response(200, body, {} if in_chunks else {"retry-after": "7"})


async def test_body_without_a_length_ends_with_the_connection():
    async with served(sending(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", close=True)) as (of, server):
        assert [await get(of), await get(of)] == [HELLO] * 2
        assert server.connections == 2


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
async def test_connection_is_closed_where_the_server_says_so(version):
    said = OK.replace(b"HTTP/1.1", version).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    async with served(sending(said)) as (of, server):
        assert [await get(of), await get(of)] == [HELLO] * 2
        assert server.connections == 2


BROKEN = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "a body cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
    "chunks cut short": CHUNKED + b"5\r\nhello\r\n",
    "interim responses alone": b"HTTP/1.1 100 Continue\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "a length beside chunks": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + b"0\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "an endless length": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\n",
    "a chunk without a size": CHUNKED + b"hello\r\n0\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
async def test_broken_response_fails(name):
    async with served(sending(BROKEN[name], close=True)) as (of, _):
        with pytest.raises(ConnectionFailed):
            await get(of)


ENDLESS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"a" * 1000 + b"\r\n"),
    "one header": (b"HTTP/1.1 200 OK\r\nX-More: ", b"a" * 1000),
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40),
    "an extension of a chunk": (CHUNKED + b"5;", b"a" * 1000),
    "trailers": (CHUNKED + b"5\r\nhello\r\n0\r\n", b"X-More: " + b"a" * 1000 + b"\r\n"),
    "one trailer": (CHUNKED + b"5\r\nhello\r\n0\r\nX-More: ", b"a" * 1000),
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_endless_heads_are_cut(name):
    first, more = ENDLESS[name]
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(first)
        while sent < 200 * MAX_BARE_BYTES:
            sent += len(more)
            writer.write(more)
            await writer.drain()

    async with served(endless) as (of, _):
        with pytest.raises(ConnectionFailed, match="more than 65,536 bytes of headers"):
            await get(of)
    assert sent < 150 * MAX_BARE_BYTES  # what the sockets' buffers hold comes on top


async def test_too_large_a_body_is_none_and_ends_its_connection():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
    sizes = iter([BODY_LIMIT, BODY_LIMIT + 1, 5])

    async def growing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = next(sizes)
        writer.write(head % size + b"x" * size)

    async with served(growing) as (of, server):
        bodies = [(await get(of)).body for _ in range(3)]
        assert bodies == [b"x" * BODY_LIMIT, None, b"xxxxx"]
        assert server.connections == 2


@pytest.mark.parametrize("behind", [OK, b"HTTP/1.1 500 No\r\n\r\n", b"garbage", b"\r\n\r\nx"])
async def test_bytes_behind_a_response_are_nobodys(behind):
    """A response that nobody asked for must not become the answer to the next question."""
    async with served(sending(OK + behind)) as (of, server):
        assert [await get(of), await get(of)] == [HELLO] * 2
        assert server.connections == 2


def soon_after_a_response(act: Callable[[asyncio.StreamWriter], None]) -> Route:
    async def route(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await writer.drain()
        await asyncio.sleep(0.05)
        act(writer)

    return route


@pytest.mark.parametrize(
    "act", [lambda writer: writer.write(OK.replace(b"hello", b"wrong")), asyncio.StreamWriter.write_eof]
)
async def test_connection_the_server_touches_is_not_used_again(act):
    async with served(soon_after_a_response(act)) as (of, server):
        for _ in range(3):
            assert await get(of) == HELLO
            await until(lambda: is_unusable(of))
        assert server.connections == 3


async def test_connection_idle_for_long_is_not_used_again(monkeypatch):
    async with served(sending(OK)) as (of, server):
        assert await get(of) == HELLO
        monkeypatch.setattr("adjudge.judges.server.IDLE_S", -1.0)
        assert await get(of) == HELLO
        assert server.connections == 2
        monkeypatch.setattr("adjudge.judges.server.IDLE_S", 600.0)
        assert await get(of) == HELLO
        assert server.connections == 2


async def test_response_before_the_whole_request_is_read():
    """A server may refuse a large body early; what it has not read must not stand before the next request."""
    async with served(sending(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")) as (of, server):
        for _ in range(2):
            response = await of.request("POST", "/v1/chat/completions", b"x" * 20_000_000)
            assert response == Response(413, b"", {})
        assert server.connections == 2


async def test_request_is_what_a_server_expects():
    bodies = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(await reader.readexactly(100_000))
        writer.write(OK)

    async with served(note) as (of, server):
        body = bytes(range(250)) * 400
        assert await of.request("POST", "/v1/chat/completions?api=2", body) == HELLO
        first, *lines = server.heads[0].decode().rstrip().split("\r\n")
    assert bodies == [body]
    assert first == "POST /v1/chat/completions?api=2 HTTP/1.1"
    found = dict(line.split(": ") for line in lines)
    assert found["Host"].startswith("127.0.0.1:")
    assert found == {
        "Host": found["Host"],
        "Accept": "*/*",
        "User-Agent": "test",
        "Content-Length": "100000",
    }


async def test_as_many_connections_as_requests_at_once():
    async with served(sending(b"", OK, pause_s=0.1)) as (of, server):
        for _ in range(3):
            assert await asyncio.gather(*(get(of) for _ in range(40))) == [HELLO] * 40
        assert server.connections == 40


async def test_cancelled_request_ends_its_connection():
    async with served(sending(b"HTTP/1.1 200 OK\r\n", b"", pause_s=30)) as (of, server):
        asking = asyncio.create_task(get(of))
        await until(lambda: bool(server.heads))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not of._idle
        await until(lambda: not of._open)


async def test_silence_is_a_timeout():
    async with served(sending(b"", pause_s=30), timeout_s=0.3) as (of, _):
        with pytest.raises(TimeoutError):
            await get(of)
        assert not of._idle


async def test_slow_drip_is_a_timeout():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    async with served(sending(head, *[b"x"] * 1000, pause_s=0.05), timeout_s=0.5) as (of, _):
        with pytest.raises(TimeoutError):
            await get(of)


@pytest.mark.parametrize("timeout_s", [20.0, 0.1])
async def test_host_that_does_not_answer_cannot_be_connected_to(timeout_s):
    """A listener with a full queue accepts no more connections, and says nothing."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        of = made(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout_s, connect_timeout_s=0.3)
        began = time.monotonic()
        with pytest.raises(
            ConnectionFailed, match=r"cannot connect to 127.0.0.1:\d+: no answer within 0.3 s"
        ):
            await get(of)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("host", ["127.0.0.1", f"{'a' * 70}.invalid", "no-such-host.invalid"])
async def test_host_that_is_not_there_cannot_be_connected_to(host, unused_tcp_port):
    with pytest.raises(ConnectionFailed, match=f"cannot connect to {host}:{unused_tcp_port}: "):
        await get(made(f"http://{host}:{unused_tcp_port}/"))


async def test_name_is_looked_up_once_for_all(monkeypatch):
    looked_up = []
    look_up = socket.getaddrinfo

    def counting(host, *args, **named):
        looked_up.append(host)
        return look_up(host, *args, **named)

    monkeypatch.setattr(socket, "getaddrinfo", counting)
    async with served(sending(b"", OK, pause_s=0.1)) as (of, server):
        named = made(f"http://localhost:{of._port}/")
        assert await asyncio.gather(*(get(named) for _ in range(20))) == [HELLO] * 20
        assert looked_up.count("localhost") == 1
        assert server.connections == 20
    with pytest.raises(ConnectionFailed):
        await get(named)
    assert looked_up.count("localhost") == 1
    with pytest.raises(ConnectionFailed):
        await get(named)
    assert looked_up.count("localhost") == 2, "where it was is nothing any more"
    await named.close()


async def test_server_may_have_an_address_of_version_6():
    async with served(sending(OK), host="::1") as (of, server):
        assert await get(of) == HELLO
        assert b"\r\nHost: [::1]:" in server.heads[0]


async def test_certificates_are_verified(monkeypatch):
    own = Path(__file__).with_name("servers") / "self_signed.pem"
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own)
    async with served(sending(OK), tls=tls) as (of, _):
        with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await get(of)
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    async with served(sending(OK), tls=tls) as (of, server):
        assert [await get(of), await get(of)] == [HELLO] * 2
        assert server.connections == 1


async def test_closing_ends_what_is_asked():
    async with served(sending(b"", pause_s=30)) as (of, server):
        asking = [asyncio.create_task(get(of)) for _ in range(3)]
        await until(lambda: len(server.heads) == 3)
        await of.close()
        ended = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(error) for error in ended] == [ConnectionFailed] * 3
        assert not of._open


@pytest.mark.parametrize("turns", range(8))
async def test_closing_ends_what_is_still_connecting(turns):
    async with served(sending(OK)) as (of, server):
        asked = asyncio.ensure_future(of.request("GET", "/"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await of.close()
        with pytest.raises(ConnectionFailed):
            await asked
        await until(lambda: not server.open)


async def test_nothing_is_asked_after_closing():
    async with served(sending(OK)) as (of, server):
        await of.request("GET", "/")
        await of.close()
        with pytest.raises(ConnectionFailed, match="have been closed"):
            await of.request("GET", "/")
        assert server.connections == 1
