"""The guard refuses every spelling of an internal address and no ordinary URL.

An audit hook records every address that any socket of this process connects to, so the tests do not rely on what
the fetcher reports about itself.
"""

import itertools
import socket
import sys
import threading
from collections.abc import Iterator

import pytest

from adjudge.fetchers.guard import Blocked, Guard, is_public
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.limits import Limits, Timeouts
from adjudge.fetchers.urls import normalise_url, split_url
from tests.servers.base import Exchange, Server
from tests.servers.hostile import plain

CONNECTED: list[tuple[object, ...]] = []
# In the global range but unallocated: public by every rule, and reaching nobody.
NOBODY = "2d00::1"
LIMITS = Limits(workers=1, retries=0)
TIMEOUTS = Timeouts(connect=1.0, read=5.0, total=10.0)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    """Note who is connected to in the thread of the tests: an exporter of other tests' traces has its own."""
    if (
        event == "socket.connect"
        and isinstance(arguments[1], tuple)
        and threading.current_thread() is threading.main_thread()
    ):
        CONNECTED.append(arguments[1])


sys.addaudithook(_audit)


@pytest.fixture
def connected() -> list[tuple[object, ...]]:
    CONNECTED.clear()
    return CONNECTED


@pytest.fixture
def loopback() -> Iterator[Server]:
    with Server(otherwise=plain) as server:
        yield server


LOOPBACK = [
    *(
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "127.127.127.127",
        "127.0.0.2",
        "0.0.0.0",
        "0",
        "00",
        "0x0",
        "0.",
    ),
    *("2130706433", "017700000001", "0x7f000001", "0X7F000001", "0x7f.1", "0x7F.0x0.0x0.0x1"),
    *(
        "0177.0.0.1",
        "0177.0.0.01",
        "0177.0x0.0.1",
        "0x7f.0.0.01",
        "127.0x0.00.1",
        "0177.1",
        "127.65535",
        "127.0.257",
    ),
    *(
        "00000177.0.0.1",
        "0x000000007f.0.0.1",
        "127.0.0.0x1",
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
        "%30x7f.1",
    ),
    *(
        "１２７.０.０.１",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "127．0．0．1",
        "127｡0｡0｡1",
        "１２７。１",
        "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
        "²130706433",
    ),
    *("0ｘ7ｆ.1", "1²7.0.0.1", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::]", "[::ffff:127.0.0.1]"),
    *("[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:7F00:0001]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]"),
    *("[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::127.0.0.1]", "[64:ff9b:1:fffe::7f00:1]"),
    *(
        "[2002:7f00:1::]",
        "[2002:7f00:0001::1]",
        "[2001:0:7f00:1::]",
        "[2001::80ff:fffe]",
        "[::1%25lo]",
        "[::1%lo]",
    ),
    *(
        "localhost",
        "LOCALHOST",
        "localhost.",
        "localhost.localdomain",
        "ⓛocalhost",
        "local%68ost",
        "ｌｏｃａｌｈｏｓｔ",
    ),
    *(
        "lo­calhost",
        "127.0.0.1.evil.test",
        "evil.test",
        "www.evil.test",
        "mapped.test",
        "nat64.test",
        "six.test",
    ),
]
INNER = [
    *(
        "10.0.0.1",
        "10.1",
        "0xa000001",
        "167772161",
        "012.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.255",
    ),
    *("172.16.1", "2886729729", "192.168.0.1", "192.168.1", "192.168.65535", "3232235521", "0xC0A80001"),
    *(
        "169.254.169.254",
        "169.254.43518",
        "2852039166",
        "0xA9FEA9FE",
        "0251.0376.0251.0376",
        "[::ffff:a9fe:a9fe]",
    ),
    *(
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "metadata.test",
    ),
    *(
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "168.63.129.16",
        "192.0.0.192",
        "192.0.0.1",
        "192.0.2.1",
    ),
    *(
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "192.88.99.1",
        "224.0.0.1",
        "239.255.255.250",
    ),
    *("240.0.0.1", "255.255.255.255", "[fe80::1]", "[fe80::1%25eth0]", "[febf::1]", "[fc00::1]", "[fdff::1]"),
    *(
        "[ff02::1]",
        "[ff0e::1]",
        "[fec0::1]",
        "[2001:db8::1]",
        "[2001:10::1]",
        "[2001:2::1]",
        "[3fff::1]",
        "[5f00::1]",
    ),
    *(
        "[100::1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b::c0a8:1]",
        "[2002:c0a8:1::1]",
        "[4000::1]",
    ),
]
ODD = [
    *(
        "http://user@example.test/",
        "http://user:secret@example.test/",
        "http://:@127.0.0.1/",
        "http://a%40@[::1]/",
    ),
    *(
        "http://example.test:22/",
        "http://example.test:6379/",
        "https://example.test:8443/",
        "http://example.test:25/",
    ),
    *(
        "http://example.test\\@127.0.0.1:22/",
        "http://127.0.0.1\\.example.test/",
        "http://example.test#@127.0.0.1:1/",
    ),
    *(
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1:6379/_INFO",
        "dict://127.0.0.1:11211/stat",
    ),
    *(
        "unix:///var/run/docker.sock",
        "jar:http://127.0.0.1!/",
        "//127.0.0.1/",
        "http:127.0.0.1",
        "http:/127.0.0.1",
    ),
]
# The answers of an attacker's name server.
ANSWERS = {
    "mapped.test": ["::ffff:127.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1", "64:ff9b:1::7f00:1"],
    "six.test": ["2002:7f00:1::", "::1", "fe80::1%lo"],
    "metadata.test": ["169.254.169.254"],
    "example.test": ["127.0.0.1"],
}


async def resolve(host: str, port: int) -> list[str]:
    """Resolve every other name to loopback."""
    return ANSWERS.get(host, ["127.0.0.1", "::1"])


async def refused(url: str, server: Server) -> str | None:
    """The reason for refusing `url`, by a fetcher that allows the server's port."""
    fetcher = HttpFetcher(LIMITS, TIMEOUTS, ports=(80, 443, server.port), resolve=resolve)
    try:
        page = await fetcher.read(url)
    finally:
        await fetcher.close()
    assert page.status == "failed"
    return page.reason


def test_attack_list_has_120_distinct_spellings() -> None:
    assert len({*LOOPBACK, *INNER, *ODD}) == len([*LOOPBACK, *INNER, *ODD]) >= 120


@pytest.mark.parametrize("host", LOOPBACK)
async def test_loopback_is_refused_in_every_spelling(
    host: str, loopback: Server, connected: list[tuple[object, ...]]
) -> None:
    assert await refused(f"http://{host}:{loopback.port}/", loopback) in (
        "page_blocked",
        "citation_malformed",
    )
    assert connected == [] and loopback.connections == 0


@pytest.mark.parametrize("host", INNER)
async def test_internal_addresses_are_refused(
    host: str, loopback: Server, connected: list[tuple[object, ...]]
) -> None:
    for scheme in ("http", "https"):
        assert await refused(f"{scheme}://{host}/", loopback) in ("page_blocked", "citation_malformed")
    assert connected == []


@pytest.mark.parametrize("url", ODD)
async def test_odd_urls_are_refused(url: str, loopback: Server, connected: list[tuple[object, ...]]) -> None:
    assert await refused(url, loopback) in ("page_blocked", "citation_malformed")
    assert connected == []


async def test_allowed_server_is_reached(loopback: Server, connected: list[tuple[object, ...]]) -> None:
    """Control: the tests above would see a connection that the guard let through."""
    fetcher = HttpFetcher(LIMITS, TIMEOUTS, allow=[loopback.address], resolve=resolve)
    page = await fetcher.read(loopback.url())
    await fetcher.close()
    assert page.status == "read" and connected == [("127.0.0.1", loopback.port)] and loopback.connections == 1


@pytest.mark.parametrize(
    "host", [*LOOPBACK[:20], "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "evil.test"]
)
async def test_redirect_to_an_internal_address_is_refused(
    host: str, connected: list[tuple[object, ...]]
) -> None:
    async def route(to: Exchange) -> None:
        await to.redirect(f"http://{host}:{inner.port}/")

    with Server(routes={"/": route}) as outer, Server(otherwise=plain) as inner:
        fetcher = HttpFetcher(
            LIMITS, TIMEOUTS, allow=[outer.address], ports=(80, inner.port), resolve=resolve
        )
        page = await fetcher.read(outer.url())
        await fetcher.close()
        assert page.reason == "page_blocked"
        assert connected == [("127.0.0.1", outer.port)] and inner.connections == 0


async def test_rebinding_name_is_pinned_to_its_checked_address(
    loopback: Server, connected: list[tuple[object, ...]]
) -> None:
    """The first answer is public and is pinned; the second, asked for by a second fetcher's connection, is refused."""
    answers = itertools.cycle([[NOBODY], ["127.0.0.1"]])

    async def rebinding(host: str, port: int) -> list[str]:
        if host != "localhost":
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return next(answers)

    reasons = []
    for _ in range(2):
        fetcher = HttpFetcher(LIMITS, TIMEOUTS, ports=(loopback.port,), resolve=rebinding)
        reasons.append((await fetcher.read(f"http://localhost:{loopback.port}/")).reason)
        await fetcher.close()
    assert [where[:2] for where in connected] == [(NOBODY, loopback.port)] and loopback.connections == 0
    assert reasons == ["network_unavailable", "page_blocked"]


async def test_only_the_public_half_of_an_answer_is_used() -> None:
    async def both(host: str, port: int) -> list[str]:
        return ["127.0.0.1", NOBODY, "::1"]

    found = await Guard(resolve=both).resolver.resolve("example.test", 80)
    assert [result["host"] for result in found] == [NOBODY]


def test_socket_check_is_the_last_gate() -> None:
    """Whatever the connector was told, an address that is not public gets no socket."""
    guard = Guard(allow=["127.0.0.1:8080", "[::1]:8080"])
    for address, port in [
        ("127.0.0.1", 80),
        ("10.0.0.1", 8080),
        ("::ffff:127.0.0.1", 8080),
        ("fe80::1", 80),
        ("x", 80),
    ]:
        with pytest.raises(Blocked):
            guard.socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)))
    guard.socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 8080))).close()


async def test_allowed_name_allows_no_other() -> None:
    async def inside(host: str, port: int) -> list[str]:
        return ["10.0.0.5"]

    guard = Guard(allow=["intranet.test"], resolve=inside)
    assert [found["host"] for found in await guard.resolver.resolve("intranet.test", 443)] == ["10.0.0.5"]
    guard.check("https://intranet.test/")
    for other, port in [("evil.test", 443), ("intranet.test", 8080), ("sub.intranet.test", 443)]:
        with pytest.raises(Blocked):
            await guard.resolver.resolve(other, port)
    with pytest.raises(Blocked):
        guard.check("https://10.0.0.5/")


@pytest.mark.parametrize("entry", ["", "a b", "http://x", "host:99999", "user@host", "host/path", "::1"])
def test_allow_entry_that_is_not_a_host_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match="allow"):
        Guard(allow=[entry])


ORDINARY = [
    *(
        "http://example.com",
        "https://example.com/",
        "https://www.example.com:443/a?b=c#d",
        "http://example.com:80/x",
        "http://example.com:8080/x",
        "https://93.184.215.14:8443/",
    ),
    *(
        "https://en.wikipedia.org/wiki/Bridge_(game)",
        "https://de.wikipedia.org/wiki/Brücke",
        "https://例え.jp/",
    ),
    *(
        "https://zh.wikipedia.org/wiki/%E6%A1%A5",
        "https://arxiv.org/abs/2506.11763v1",
        "https://bücher.example/",
    ),
    *(
        "https://doi.org/10.1038/s41586-021-03819-2",
        "https://www.gov.uk/guidance/a-b",
        "https://8.8.8.8/",
        "http://1.1.1.1",
    ),
    *(
        "https://r3---sn-4g5e.googlevideo.com/x",
        "https://under_score.example.org/",
        "https://xn--bcher-kva.example/",
    ),
    *("https://[2606:4700:4700::1111]/", "https://[2001:4860:4860::8888]/", "https://127.0.0.1.nip.example/"),
    *(
        "https://10.example.com/",
        "https://localhost.example.com/",
        "https://a.b.c.d.e.f.example.co.uk/",
        "https://x.yz",
    ),
    *(
        "https://news.example/2026/03/01/story.html?utm_source=a",
        "https://example.com/a%20b",
        "https://example.com/a b",
    ),
    *("https://example.com/~user/", "https://example.com/@user", "https://example.com/?u=http://127.0.0.1/"),
    *(
        "https://example.com/redirect?to=//10.0.0.1",
        "https://example.com/a;b=c",
        "https://example.com/'quoted'",
    ),
    *(
        "https://example.com//double",
        "https://1234.example/",
        "https://0x7f.example/",
        "https://example.com./",
    ),
    *(
        "https://EXAMPLE.COM/Path",
        "http://134744072/",
        "https://[::ffff:8.8.8.8]/",
        "https://[64:ff9b::808:808]/",
    ),
]


def test_list_has_40_distinct_ordinary_urls() -> None:
    assert len(set(ORDINARY)) == len(ORDINARY) >= 40


@pytest.mark.parametrize("url", ORDINARY)
async def test_ordinary_urls_are_allowed(url: str) -> None:
    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "2606:2800:220:1::1"]

    guard = Guard(resolve=public)
    normal = normalise_url(url)
    guard.check(normal)
    parts = split_url(normal)
    for found in await guard.resolver.resolve(parts.host, parts.port):
        info = (int(found["family"]), int(socket.SOCK_STREAM), 6, "", (found["host"], found["port"]))
        guard.socket(info).close()


def test_addresses_are_classified() -> None:
    assert is_public("8.8.8.8") and is_public("2606:4700::1111") and is_public("::ffff:8.8.8.8")
    assert not is_public("not an address") and not is_public("") and not is_public("::ffff:0:8.8.8.8")
