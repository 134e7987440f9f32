"""A fetcher against servers that are slow, broken, hostile or merely unusual."""

import asyncio
import hashlib
import random
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge.engine.store import PageStore, Place
from adjudge.fetchers.extract import decode
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.limits import Limits, Timeouts
from adjudge.fetchers.page import MAX_DETAIL, kind_of, may_be_read, media_type
from adjudge.fetchers.urls import storable
from adjudge.fetchers.waits import retry_after
from tests.made_pdf import pdf
from tests.processes import worker_processes
from tests.servers.base import Exchange, Server
from tests.servers.hostile import (
    ARTICLE,
    hostile_server,
    latin_1_head,
    plain,
    self_signed_server,
    slow_to_read,
)

Make = Callable[..., HttpFetcher]
SMALL = Limits(workers=1, per_host=8)
SHORT = Timeouts(connect=4.0, read=3.0, total=6.0, extract=15.0)

OUTCOMES = {
    "/plain": None,
    "/slow-drip": "page_timeout",
    "/silent": "page_timeout",
    "/endless-body": "page_unsupported",
    "/endless-headers": "page_server_error",
    "/gzip-bomb": "page_unsupported",
    "/broken-gzip": "page_server_error",
    "/gzip-cut-short": "page_server_error",
    "/falsely-brotli": "page_server_error",
    "/loop": "page_server_error",
    "/grow": "page_server_error",
    "/redirect-to-nowhere": "page_server_error",
    "/too-little": "page_server_error",
    "/too-much": None,  # browsers pass over what follows
    "/wrong-charset": None,
    "/said-latin-is-utf8": None,
    "/no-such-charset": None,
    "/single-line": None,
    "/deeply-nested": "page_unsupported",
    "/reset-mid-body": "page_server_error",
    "/not-http": "page_server_error",
    "/busy-once": None,
    "/flapping": None,
    "/always-500": "page_server_error",
    "/forbidden": "page_barred",
    "/too-many-requests": "page_rate_limited",
    "/bot-check-by-header": "page_barred",
    "/bot-check": "page_barred",
    "/login-wall": "page_barred",
    "/about-logging-in": None,
    "/gone": "page_gone",
    "/nothing-of-the-kind": "page_gone",
    "/picture": "page_unsupported",
    "/fake-pdf": "page_unsupported",
    "/entity-bomb": None,
    "/empty": "page_empty",
    "/headers-in-ruins": "page_server_error",
    "/to-private": "page_blocked",
    "/to-loopback": "page_blocked",
    "/to-metadata": "page_blocked",
    "/to-file": "page_blocked",
    "/to-decimal": "page_blocked",
    "/to-credentials": "page_blocked",
}


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes fetchers and closes them."""
    made: list[HttpFetcher] = []

    def one(limits: Limits = SMALL, timeouts: Timeouts = SHORT, **options: object) -> HttpFetcher:
        options.setdefault("resolve", home)
        made.append(HttpFetcher(limits, timeouts, **options))  # type: ignore[arg-type]
        return made[-1]

    yield one
    for fetcher in made:
        await fetcher.close()


async def home(host: str, port: int) -> list[str]:
    if host == "localhost":
        return ["127.0.0.1"]
    raise socket.gaierror(socket.EAI_NONAME, "no such name")


def names_of(server: Server) -> list[str]:
    """The server under two names, which are two sites."""
    return [server.address, f"localhost:{server.port}"]


@pytest.fixture
def hostile() -> Iterator[Server]:
    with hostile_server() as server:
        yield server


async def test_hostile_pages_are_typed_and_harm_no_other_page(hostile: Server, make: Make) -> None:
    """All hostile pages at once with ordinary ones in between; a hang would exceed the surrounding time limit."""
    patient = Timeouts(connect=5.0, read=4.0, total=8.0, extract=12.0)
    fetcher = make(Limits(workers=2, per_host=64), patient, allow=names_of(hostile), patience_s=3.0)
    paths = list(OUTCOMES)
    honest = [f"/plain?{n}" for n in range(60)]
    for path in honest:
        hostile.routes[path] = plain
    assert (await fetcher.read(hostile.url("/plain", host="localhost"))).status == "read"
    hostile.log.clear()
    async with asyncio.timeout(100):
        pages = await asyncio.gather(*(fetcher.read(hostile.url(path)) for path in [*paths, *honest]))
    found = dict(zip(paths, pages, strict=False))
    assert {path: page.reason for path, page in found.items()} == OUTCOMES
    assert all(page.status == "read" and page.title == "A plain article" for page in pages[len(paths) :])
    assert all(
        len(page.detail) <= MAX_DETAIL and (page.status == "read") == (page.reason is None) for page in pages
    )
    assert all(not page.text for page in pages if page.status == "failed")
    assert found["/wrong-charset"].title == "Мост" and "построен" in found["/wrong-charset"].text
    assert found["/said-latin-is-utf8"].text == "Die Brücke wurde 1932 gebaut — für alle."
    assert len(found["/single-line"].text) == 9_999_999
    assert found["/entity-bomb"].text == "seen"
    assert hostile.paths().count("/busy-once") == 2 and hostile.paths().count("/flapping") == 3
    assert hostile.paths().count("/forbidden") == 1 and hostile.paths().count("/gone") == 1
    assert hostile.paths().count("/loop") == SMALL.redirects + 1


async def test_reused_connection_does_not_fail_the_next_page(hostile: Server, make: Make) -> None:
    """A body that ends while the client pauses may leave a read timer running on the connection."""

    async def at_once(to: Exchange) -> None:
        await to.reply(b"<p>" + b"word " * int(to.request.path.rpartition("/")[2]))

    brief = Timeouts(connect=4.0, read=1.0, total=20.0, extract=20.0)
    fetcher = make(allow=[hostile.address], timeouts=brief)
    for n, words in enumerate((20, 30_000, 50_000, 100_000, 40_000)):
        hostile.routes[f"/{words}"], hostile.routes[f"/plain-{n}"] = at_once, plain
        assert (await fetcher.read(hostile.url(f"/{words}"))).status == "read"
        await asyncio.sleep(1.1)
        assert (await fetcher.read(hostile.url(f"/plain-{n}"))).reason is None


async def test_every_string_of_a_page_can_be_stored(make: Make, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 in reason phrases and headers become rows all the same."""
    with hostile_server() as server:
        server.routes["/latin-1-gone"] = latin_1_head
        fetcher = make(allow=[server.address])
        read = await fetcher.read(server.url("/latin-1-head"))
        gone = await fetcher.read(server.url("/latin-1-gone"))
    assert read.status == "read" and read.content_type == "text/html"
    assert gone.reason == "page_gone" and "\ufffd" in gone.detail
    store = PageStore(Place.of(str(tmp_path)), "live")
    await store.open()
    store.put(read.url, read)
    store.put(gone.url, gone)
    await store.close()
    again = PageStore(Place.of(str(tmp_path)), "live")
    await again.open()
    assert [(await again.get(page.url)).detail for page in (read, gone)] == [read.detail, gone.detail]
    await again.close()


# Lone surrogates, as bytes of headers that are not UTF-8 become, are rare among all characters.
HEADERS = st.text(st.characters(codec=None) | st.sampled_from("text/html; charset=\udce9\udcff\0"))


@given(HEADERS)
def test_storable_text_encodes_and_keeps_the_rest(text: str) -> None:
    kept = storable(text)
    assert kept.encode() is not None and "\0" not in kept and storable(kept) == kept
    honest = "".join(c for c in text if c and not 0xD800 <= ord(c) <= 0xDFFF and c != "\0")
    assert kept.replace("\ufffd", "") == honest.replace("\ufffd", "")


@given(HEADERS)
@example("text/\udce9; charset=\udcff")
def test_content_type_never_raises(header: str) -> None:
    media = media_type(header)
    assert media.encode() is not None and may_be_read(header) in (True, False)
    assert kind_of(header, b"%PDF-1.7") == "pdf" and isinstance(decode(b"a\xff", header), str)
    retry_after(header, 0.0)


async def test_self_signed_certificate_is_a_server_error(make: Make) -> None:
    with self_signed_server() as server:
        page = await make(allow=[server.address]).read(server.url("/plain"))
    assert page.reason == "network_unavailable" and page.detail.startswith("TLS") and server.log == []


async def test_https_to_a_plain_server_fails(make: Make) -> None:
    with Server() as server:
        page = await make(allow=[server.address]).read(f"https://{server.address}/")
    assert page.reason == "network_unavailable"


@pytest.mark.parametrize("online", [True, False])
async def test_unknown_host_is_gone_only_while_others_resolve(online: bool, make: Make) -> None:
    """Without a network every name fails to resolve, which is not the report's fault."""

    async def resolve(host: str, port: int) -> list[str]:
        if online and host == "example.com":
            return ["192.0.66.1"]
        raise socket.gaierror(socket.EAI_AGAIN if host == "sick.test" else socket.EAI_NONAME, "no")

    fetcher = make(Limits(workers=1, retries=0), resolve=resolve)
    assert (await fetcher.read("https://gone.com/")).reason == (
        "page_gone" if online else "network_unavailable"
    )
    assert (await fetcher.read("https://gone.invalid/")).reason == "page_gone"


@pytest.mark.parametrize("others", [True, False])
async def test_failing_host_is_blamed_only_while_others_answer(others: bool, make: Make) -> None:
    """Refused and silent: of the source's doing where another host answers, else nobody's. Sick: it says so itself."""
    with Server() as closed:
        refused = closed.address
    with hostile_server() as server:
        fetcher = make(
            Limits(workers=1, retries=1, per_host=8),
            Timeouts(connect=1.0, read=1.0, total=3.0),
            allow=[refused, *names_of(server)],
        )
        if others:
            assert (await fetcher.read(server.url("/gone", host="localhost"))).reason == "page_gone"
        urls = [f"http://{refused}/", server.url("/silent"), server.url("/always-500")]
        pages = [await fetcher.read(url) for url in urls]
    silent = ["page_server_error", "page_timeout"] if others else ["network_unavailable"] * 2
    assert [page.reason for page in pages] == [*silent, "page_server_error"]
    assert server.paths().count("/always-500") == 2


async def test_internal_host_says_nothing_about_the_web(make: Make) -> None:
    """Behind a firewall the intranet answers, and nobody on the web does."""

    async def nobody(host: str, port: int) -> list[str]:
        return ["2d00::1"]

    with hostile_server() as server:
        fetcher = make(
            Limits(workers=1, retries=0),
            Timeouts(connect=1.0, read=1.0),
            allow=[server.address],
            resolve=nobody,
        )
        assert (await fetcher.read(server.url("/plain"))).status == "read"
        assert (await fetcher.read("https://news.com/")).reason == "network_unavailable"


@pytest.mark.parametrize(
    "url", ["", "example.com", "http://", "file:///etc/passwd", "http://\ud800/", "x" * 9000]
)
async def test_malformed_urls_are_rows_that_can_be_stored(url: str, make: Make) -> None:
    page = await make().read(url)
    assert page.reason == "citation_malformed" and page.url.encode() is not None


async def test_page_has_every_field(hostile: Server, make: Make) -> None:
    async def moved(to: Exchange) -> None:
        await to.redirect("/plain", status="301 Moved Permanently")

    hostile.routes["/old"] = moved
    page = await make(allow=[hostile.address]).read(hostile.url("/old#part"))
    assert page.url == hostile.url("/old") and page.final_url == hostile.url("/plain")
    assert page.content_type == "text/html" and page.sha256 == hashlib.sha256(ARTICLE).hexdigest()
    assert page.title == "A plain article" and page.description == "What it says."
    assert page.text.startswith("A plain article") and "built in 1932" in page.text
    assert page.fetched_at > 1.7e9 and page.reason is None and page.detail == ""


async def test_concurrent_equal_urls_are_fetched_once(hostile: Server, make: Make) -> None:
    fetcher = make(allow=[hostile.address])
    spellings = [
        hostile.url("/plain"),
        hostile.url("/./plain#a"),
        hostile.url("/plain").upper().replace("PLAIN", "plain"),
    ]
    pages = await asyncio.gather(*(fetcher.read(url) for url in spellings * 7))
    assert hostile.paths() == ["/plain"] and all(page == pages[0] for page in pages)


async def test_cancelled_reader_does_not_cancel_the_others(hostile: Server, make: Make) -> None:
    fetcher = make(allow=[hostile.address])
    first, second = (asyncio.create_task(fetcher.read(hostile.url("/plain"))) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).status == "read"
    assert first.cancelled() or (await asyncio.gather(first, return_exceptions=True))
    assert hostile.paths() == ["/plain"]


async def test_configured_concurrency_is_reached_and_not_exceeded(make: Make) -> None:
    """The server holds every answer until 150 requests are open: fewer would time out, and more are counted."""
    wanted, there, most = 150, 0, 0
    everyone = asyncio.Event()

    async def wait(to: Exchange) -> None:
        nonlocal there, most
        there += 1
        most = max(most, there)
        if there == wanted:
            everyone.set()
        await everyone.wait()
        there -= 1
        await to.reply(ARTICLE)

    with Server(otherwise=wait) as server:
        fetcher = make(
            Limits(in_flight=wanted, per_host=wanted, workers=1, retries=0),
            Timeouts(),
            allow=[server.address],
        )
        pages = await asyncio.gather(*(fetcher.read(server.url(f"/{n}")) for n in range(2 * wanted)))
    assert all(page.status == "read" for page in pages) and most == wanted


async def test_queueing_is_not_counted_as_page_time(make: Make) -> None:
    async def half_a_second(to: Exchange) -> None:
        await asyncio.sleep(0.5)
        await to.reply(ARTICLE)

    with Server(otherwise=half_a_second) as server:
        fetcher = make(Limits(per_host=1, workers=1, retries=0), Timeouts(total=3.0), allow=[server.address])
        pages = await asyncio.gather(*(fetcher.read(server.url(f"/{n}")) for n in range(8)))
    assert [page.reason for page in pages] == [None] * 8


async def test_parser_hang_is_ended_and_the_worker_replaced(hostile: Server, make: Make) -> None:
    hostile.routes["/slow-to-read"] = slow_to_read
    fetcher = make(Limits(workers=1, per_host=8), Timeouts(extract=2.0), allow=[hostile.address])
    hung = asyncio.create_task(fetcher.read(hostile.url("/slow-to-read")))
    pages = await asyncio.gather(
        *(fetcher.read(hostile.url(path)) for path in ("/plain", "/fake-pdf", "/wrong-charset"))
    )
    assert [page.reason for page in pages] == [None, "page_unsupported", None]
    assert (await hung).reason == "page_unsupported" and (await hung).sha256


async def test_requests_identify_the_fetcher(hostile: Server, make: Make) -> None:
    await make(allow=[hostile.address], contact="mailto:owner@example.org").read(hostile.url("/plain"))
    headers = hostile.log[0].headers
    assert (
        headers["user-agent"].startswith("adjudge/") and "mailto:owner@example.org" in headers["user-agent"]
    )
    assert headers["host"] == hostile.address and headers["accept-encoding"] == "gzip, deflate, br, zstd"
    assert "cookie" not in headers


async def test_robots_txt_is_obeyed_on_request(make: Make) -> None:
    async def rules(to: Exchange) -> None:
        await to.reply(
            b"User-agent: *\nDisallow: /private*.html\nCrawl-delay: 0.01", content_type="text/plain"
        )

    with Server(routes={"/robots.txt": rules}, otherwise=plain) as server:
        paths = ["/private/a.html", "/private/b.txt", "/open", "/open?2"]
        fetcher = make(allow=[server.address], robots=True)
        pages = await asyncio.gather(*(fetcher.read(server.url(path)) for path in paths))
        assert [page.reason for page in pages] == ["page_barred", None, None, None]
        assert server.paths().count("/robots.txt") == 1 and "/private/a.html" not in server.paths()
        careless = await make(allow=[server.address]).read(server.url("/private/a.html"))
        assert careless.status == "read"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", ("Refresh: 0; url=/there",)),
        (b"<meta http-equiv=Refresh content=\"3; URL='/there'\">Soon.", ()),
        (b"<noscript><meta http-equiv=refresh content='0;/there'></noscript><script>go()</script>", ()),
        (b'<script>location.replace("\\/there")</script>', ()),
        (b"<script>window.location.href = '/there'</script>", ()),
        (b"<iframe src=/there></iframe>", ()),
    ],
)
async def test_page_leads_on_as_in_a_browser(make: Make, body: bytes, headers: tuple[str, ...]) -> None:
    async def here(to: Exchange) -> None:
        await to.reply(body, *headers)

    with Server(routes={"/here": here, "/there": plain}) as server:
        page = await make(allow=[server.address]).read(server.url("/here"))
    assert page.title == "A plain article" and page.final_url == server.url("/there")


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1/", "file:///etc/passwd", "http://169.254.169.254/latest"]
)
async def test_refresh_passes_the_guard(make: Make, target: str) -> None:
    async def here(to: Exchange) -> None:
        await to.reply(f"<meta http-equiv=refresh content='0;url={target}'>".encode())

    with Server(routes={"/here": here}) as server:
        assert (await make(allow=[server.address]).read(server.url("/here"))).reason == "page_blocked"


async def test_refreshes_in_a_circle_end(make: Make) -> None:
    async def here(to: Exchange) -> None:
        await to.reply(b"", f"Refresh: 0;url=/{to.request.path[1:]}x")

    with Server(otherwise=here) as server:
        page = await make(Limits(redirects=5), allow=[server.address]).read(server.url("/a"))
    assert page.detail == "more than 5 redirects" and len(server.log) == 6


async def test_cookies_last_for_one_journey(make: Make) -> None:
    async def gate(to: Exchange) -> None:
        if "seen=1" in to.request.headers.get("cookie", ""):
            await plain(to)
        else:
            await to.reply(b"", "Location: /gate", "Set-Cookie: seen=1; Path=/", status="302 Found")

    with Server(routes={"/gate": gate}, otherwise=plain) as server:
        fetcher = make(allow=[server.address])
        assert (await fetcher.read(server.url("/gate"))).status == "read"
        await fetcher.read(server.url("/other"))
    assert [request.headers.get("cookie") for request in server.log] == [None, "seen=1", None]


@pytest.mark.parametrize(
    ("headers", "before", "after"),
    [
        ((), b"\xef\xbb\xbf", b""),
        (("Content-Encoding: utf-8",), b"", b""),
        (("Content-Type: application/x-robots",), b"", b""),
        ((), b"", b"\n# says nothing" * 1_000_000),
    ],
)
async def test_rules_count_however_robots_txt_is_sent(
    make: Make, headers: tuple[str, ...], before: bytes, after: bytes
) -> None:
    async def rules(to: Exchange) -> None:
        await to.reply(before + b"User-agent: *\nDisallow: /private" + after, *headers, content_type="")

    with Server(routes={"/robots.txt": rules}, otherwise=plain) as server:
        page = await make(allow=[server.address], robots=True).read(server.url("/private"))
    assert page.reason == "page_barred"


async def test_missing_robots_txt_allows_and_failing_one_does_not(make: Make) -> None:
    async def sick(to: Exchange) -> None:
        await to.reply(b"", status="503 Service Unavailable")

    with Server(routes={"/page": plain}) as server:
        assert (await make(allow=[server.address], robots=True).read(server.url("/page"))).status == "read"
        server.routes["/robots.txt"] = sick
        page = await make(Limits(retries=0), allow=[server.address], robots=True).read(server.url("/page"))
    assert page.reason == "page_server_error" and server.paths().count("/page") == 1


async def test_closed_fetcher_leaves_no_process(hostile: Server, make: Make) -> None:
    fetcher = make(allow=[hostile.address])
    hostile.routes["/slow-to-read"] = slow_to_read
    reading = asyncio.create_task(fetcher.read(hostile.url("/slow-to-read")))
    while not worker_processes():
        await asyncio.sleep(0.01)
    await fetcher.close()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not worker_processes()


async def test_spoilt_answers_never_raise(make: Make) -> None:
    """A valid answer with bytes removed, swapped, doubled and changed in 300 ways."""
    rng = random.Random(5)
    honest = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 64\r\nLocation: /a?b\r\n"
        b"Set-Cookie: a=b; Path=/\r\nContent-Encoding: gzip\r\nRetry-After: 0\r\nX-A: \xc3\xa4\r\n\r\n"
        + b"<p>An honest page.</p>".ljust(64)
    )

    def spoilt() -> bytes:
        answer = bytearray(
            honest.replace(b"200", rng.choice([b"200", b"302", b"404", b"429", b"999", b"100"]))
        )
        if rng.random() < 0.5:
            answer = answer.replace(b"Content-Encoding: gzip\r\n", b"")
        for _ in range(rng.randint(0, 6)):
            at = rng.randrange(len(answer))
            end = at + rng.randint(0, 12)
            answer[at:end] = rng.choice([b"", rng.randbytes(3), answer[at:end] * 2, b"\r\n", b":", b"\xff"])
        return bytes(answer)

    async def answer(to: Exchange) -> None:
        await to.send(spoilt())
        to.writer.close()

    with Server(otherwise=answer) as server:
        limits = Limits(workers=1, per_host=32, retries=0, redirects=2)
        fetcher = make(limits, Timeouts(connect=2.0, read=2.0, total=2.0), allow=names_of(server))
        pages = await asyncio.gather(*(fetcher.read(server.url(f"/{n}")) for n in range(300)))
    assert {page.reason for page in pages} >= {None, "page_gone", "network_unavailable"}
    for page in pages:
        page.content_type.encode(), page.detail.encode(), page.final_url.encode()


async def test_large_pdfs_are_read_a_few_at_once(make: Make) -> None:
    """A PDF may be larger than other pages, whatever its label and with or without a length that is told."""
    body = pdf("The salt works boiled 640 tonnes of brine." + " " * 20_000)
    whole, most = 0, 0

    async def labelled(to: Exchange) -> None:
        nonlocal whole, most
        whole += to.times == 2
        most = max(most, whole)
        await asyncio.sleep(0.1)
        whole -= to.times == 2
        await to.reply(
            body, content_type="application/octet-stream" if to.request.path < "/5" else "application/pdf"
        )

    async def untold(to: Exchange) -> None:
        await to.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nConnection: close\r\n\r\n" + body)
        to.writer.close()

    async def long_page(to: Exchange) -> None:
        await to.reply(ARTICLE + b" " * 20_000)

    async def huge(to: Exchange) -> None:
        await to.reply(pdf(" " * 100_000), content_type="application/pdf")

    routes = {f"/{n}": labelled for n in range(8)} | {"/untold": untold, "/page": long_page, "/huge": huge}
    with Server(routes=routes) as server:
        limits = Limits(workers=1, per_host=20, max_bytes=10_000, max_pdf_bytes=50_000)
        fetcher = make(limits, allow=[server.address])
        found = await asyncio.gather(*(fetcher.read(server.url(path)) for path in routes))
    reasons = dict(zip(routes, (page.reason for page in found), strict=True))
    assert reasons == dict.fromkeys(routes) | {"/page": "page_unsupported", "/huge": "page_unsupported"}
    assert all("640 tonnes" in page.text for page in found if page.status == "read")
    assert most <= 2
