"""Pages through a real Chromium: what scripts make is read, and nothing that a page does leaves the guard's sight."""

import asyncio
import os
import shutil
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.evaluation.assembly import make_fetcher
from adjudge.fetchers.guard import Guard
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.limits import Limits, Timeouts
from adjudge.fetchers.page import Page
from adjudge.fetchers.process import PoolError
from adjudge.fetchers.proxy import GuardedProxy
from adjudge.fetchers.renderer import NoBrowser, chromium
from tests.servers.base import Exchange, Server

NOBODY = 65534
SENTENCE = "The bridge over the Storstroem opened in nineteen thirty-seven after four years of work. "
SHELL = "<title>Bridge</title><body><div id=root></div><script>%s</script>"
FILLS = f"document.getElementById('root').innerHTML = '<p>' + {SENTENCE!r}.repeat(5) + '</p>'"
SELF_SIGNED = Path(__file__).parent / "servers/self_signed.pem"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def browser_path() -> Iterator[None]:
    """A Chromium whose sandbox works. Root starts it as nobody, by a script of the same name."""
    try:
        path = chromium()
    except NoBrowser as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    if os.getuid() != 0:
        yield
        return
    before, folder = os.environ["PATH"], Path(tempfile.mkdtemp(prefix="adjudge-test-"))
    home = folder / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    folder.chmod(0o755)
    script = folder / "chromium"
    user = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups env HOME={home}"
    script.write_text(f'#!/bin/sh\nexec {user} {path} "$@" --user-data-dir={home}/$$\n')
    script.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{before}"
    yield
    os.environ["PATH"] = before
    shutil.rmtree(folder)


class Site:
    """A server and a fetcher that may read it, in the mode `always` unless another is asked for."""

    def __init__(self, server: Server, fetchers: dict[str, HttpFetcher]) -> None:
        self.server = server
        self.fetchers = fetchers

    async def read(self, path: str, mode: str = "always") -> Page:
        return await self.fetchers[mode].read(self.server.url(path))

    def serve(self, path: str, body: str | bytes, *headers: str, **said: str) -> None:
        content = body.encode() if isinstance(body, str) else body

        async def reply(to: Exchange) -> None:
            await to.reply(content, *headers, **said)

        self.server.routes[path] = reply

    def route(self, path: str, answer: Callable[[Exchange], Awaitable[None]]) -> None:
        self.server.routes[path] = answer


async def home(host: str, port: int) -> list[str]:
    """Names to this machine; a private one to a private network."""
    return ["10.0.0.1"] if host.startswith("internal") else ["127.0.0.1"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(browser_path: None) -> AsyncIterator[Site]:
    limits = Limits(workers=2, retries=0, max_bytes=200_000)
    timeouts = Timeouts(connect=3.0, read=3.0, total=25.0)
    with Server() as server:
        fetchers = {
            mode: HttpFetcher(limits, timeouts, allow=[server.address], resolve=home, render=mode)  # type: ignore[arg-type]
            for mode in ("empty", "always")
        }
        yield Site(server, fetchers)
        for fetcher in fetchers.values():
            await fetcher.close()


async def test_text_that_scripts_make_is_read_and_says_so(site: Site) -> None:
    site.serve("/made", SHELL % FILLS)
    for mode in ("empty", "always"):
        page = await site.read("/made", mode)
        assert (page.status, page.title) == ("read", "Bridge") and SENTENCE.strip() in page.text
        assert page.detail == "rendered in a browser" and len(page.sha256) == 64
    never = HttpFetcher(Limits(workers=1), allow=[site.server.address])
    assert (await never.read(site.server.url("/made"))).reason == "page_empty"
    await never.close()


async def test_text_that_arrives_later_is_waited_for(site: Site) -> None:
    site.serve("/late.json", f"<p>{SENTENCE * 5}</p>")
    fetches = (
        "fetch('/late.json').then(r => r.text()).then(t => document.getElementById('root').innerHTML = t)"
    )
    site.serve("/late", SHELL % f"setTimeout(() => {fetches}, 200)")
    assert SENTENCE.strip() in (await site.read("/late")).text


async def test_only_shells_are_rendered_again(site: Site) -> None:
    site.serve("/whole", f"<title>T</title><p>{SENTENCE * 5}</p><script>fetch('/ran')</script>")
    page = await site.read("/whole", "empty")
    assert page.status == "read" and page.detail == "" and "/ran" not in site.server.paths()
    assert (await site.read("/whole")).detail and "/ran" in site.server.paths()


async def test_files_are_read_without_the_browser(site: Site) -> None:
    site.serve("/plain", SENTENCE * 5, content_type="text/plain")
    site.serve("/saved", SENTENCE * 5, "Content-Disposition: attachment", content_type="text/plain")
    site.serve("/forced", SENTENCE * 5, content_type="application/force-download")
    for path in ("/plain", "/saved", "/forced"):
        page = await site.read(path)
        assert SENTENCE.strip() in page.text and page.detail == "", path


@pytest.mark.parametrize(
    ("status", "reason"), [("404 Not Found", "page_gone"), ("403 Forbidden", "page_barred")]
)
async def test_status_is_the_pages_own(status: str, reason: str, site: Site) -> None:
    site.serve("/refused", SHELL % FILLS, status=status)
    assert (await site.read("/refused")).reason == reason


async def test_scripts_lead_on_and_the_last_page_counts(site: Site) -> None:
    site.serve("/here", SHELL % "location.replace('/there')")
    site.serve("/there", f"<title>There</title><p>{SENTENCE * 5}</p>")
    page = await site.read("/here")
    assert page.title == "There" and page.final_url == site.server.url("/there")


@pytest.mark.parametrize(
    "target",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/",
        "http://internal.example.org/",
        "http://localhost:%d/",
    ],
)
@pytest.mark.parametrize("way", ["header", "script"])
async def test_no_way_into_a_private_network(way: str, target: str, site: Site) -> None:
    with Server() as private:
        if "%d" in target:
            target %= private.port
        path = f"/{way}/{len(site.server.routes)}"
        if way == "header":
            site.serve(path, "", f"Location: {target}", status="302 Found")
        else:
            site.serve(path, SHELL % f"location.href = '{target}'")
        page = await site.read(path)
        assert (page.reason, page.text) == ("page_blocked", ""), page
        assert private.connections == 0


async def test_parts_of_a_page_pass_the_guard_too(site: Site) -> None:
    """Frames, scripts, sockets, posts and WebRTC: nothing arrives, by TCP or UDP, and the page is read all the same."""
    with Server() as private, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.2)
        port = udp.getsockname()[1]
        tries = [
            f"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{private.url('/f')}'}}))",
            f"document.body.append(Object.assign(document.createElement('script'), {{src: '{private.url('/s')}'}}))",
            f"fetch('{private.url('/p')}', {{method: 'POST', mode: 'no-cors', body: 'x'}}).catch(() => 0)",
            f"navigator.sendBeacon('{private.url('/b')}', 'x')",
            f"new WebSocket('ws://{private.address}/w')",
            f"new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}}).createDataChannel('x')",
            f"const r = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}});"
            "r.createDataChannel('x'); r.createOffer().then(o => r.setLocalDescription(o))",
            f"new WebTransport('https://127.0.0.1:{port}/')",
            f"open('{private.url('/o')}')",
        ]
        guarded = "".join(f"try {{ {one} }} catch (error) {{}}\n" for one in tries)
        site.serve("/parts", SHELL % (FILLS + ";\n" + guarded))
        page = await site.read("/parts")
        assert SENTENCE.strip() in page.text
        assert private.connections == 0 and private.log == []
        with pytest.raises(TimeoutError):
            udp.recv(2048)


async def test_files_of_this_machine_stay_unread(site: Site) -> None:
    site.serve("/file", SHELL % (FILLS + "; location.href = 'file:///etc/passwd'"))
    site.serve("/to-file", "", "Location: file:///etc/passwd", status="302 Found")
    framed = (
        "document.body.append(Object.assign(document.createElement('iframe'), {src: 'file:///etc/passwd'}))"
    )
    site.serve("/framed", SHELL % (FILLS + "; " + framed))
    for path in ("/file", "/framed"):
        page = await site.read(path)
        assert SENTENCE.strip() in page.text and "root:" not in page.text
    page = await site.read("/to-file")
    assert page.status == "failed" and page.text == ""


async def test_popups_and_dialogs_do_not_hold_a_page(site: Site) -> None:
    site.serve(
        "/popup", SHELL % f"{FILLS}; for (let i = 0; i < 50; i++) open('/popup'); alert(1); confirm(2)"
    )
    page = await site.read("/popup")
    assert SENTENCE.strip() in page.text and site.server.paths().count("/popup") < 10


async def test_endless_and_enormous_pages_end(site: Site) -> None:
    async def endless(to: Exchange) -> None:
        await to.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<body>")
        while True:
            await to.send(b"<p>" + b"more and more " * 5000)

    async def silent(to: Exchange) -> None:
        await asyncio.sleep(60)

    site.route("/endless", endless)
    site.route("/silent", silent)
    site.serve("/grows", SHELL % "document.body.innerText = 'grows '.repeat(100000)")
    site.serve("/busy", SHELL % "setTimeout(() => { while (true); }, 0)")
    site.serve("/asks", SHELL % f"{FILLS}; setInterval(() => fetch('/silent'), 50)")
    paths = ("/endless", "/grows", "/silent", "/busy", "/asks")
    end, large, silent, busy, asks = await asyncio.gather(*map(site.read, paths))
    assert end.reason == "page_unsupported" and large.detail == "larger than 200,000 bytes"
    assert {silent.reason, busy.reason} <= {"page_timeout", "network_unavailable"}
    assert SENTENCE.strip() in asks.text


async def test_tls_that_does_not_verify_is_not_read(site: Site) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SELF_SIGNED)
    with Server(tls=context) as server:
        fetcher = HttpFetcher(Limits(workers=1, retries=0), allow=[server.address], render="always")
        page = await fetcher.read(server.url("/"))
        await fetcher.close()
    assert (page.status, page.text) == ("failed", "") and "ERR_CERT" in page.detail


async def test_pages_know_nothing_of_each_other(site: Site) -> None:
    remembers = (
        f"const n = +(localStorage.n || 0) + 1; localStorage.n = n; document.cookie = 'n=' + n; {FILLS}; "
    )
    site.serve("/again", SHELL % (remembers + "document.title = n + document.cookie"))
    assert [(await site.read("/again")).title for _ in range(2)] == ["1n=1", "1n=1"]


async def asked(proxy: GuardedProxy, *requests: str) -> bytes:
    """What comes back when one connection sends `requests`, each after something came back for the last."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    found = b""
    for request in requests:
        writer.write(request.replace("\n", "\r\n").encode())
        try:
            found += await asyncio.wait_for(reader.read(1 << 20), 5)
        except ConnectionError:
            break
    writer.close()
    return found


async def test_proxy_asks_each_server_for_its_own_paths() -> None:
    """One connection asks two servers; neither sees the other's request, a whole URL, or what is for proxies."""

    async def stays(to: Exchange) -> None:
        await to.reply(b"body of " + to.request.path.encode())

    with Server(otherwise=stays) as first, Server(otherwise=stays) as second:
        guard = Guard([first.address, second.address], resolve=home)
        async with GuardedProxy(guard, Timeouts(), 10_000) as proxy:
            posted = f"POST {first.url('/a?b#')} HTTP/1.1\nProxy-Authorization: x\nContent-Length: 3\n\nabc"
            found = await asked(proxy, posted, f"GET {second.url('?q')} HTTP/1.1\nHost: x\n\n")
        assert b"body of /a?b#" in found and b"body of /?q" in found
        assert first.paths() == ["/a?b#"] and second.paths() == ["/?q"]
        assert first.log[0].headers == {"content-length": "3", "connection": "close"}


@pytest.mark.parametrize("steps", range(3, 8))  # asyncio itself loses one that it has just accepted
async def test_proxy_leaves_no_connection_open_that_comes_as_it_closes(steps: int) -> None:
    async with GuardedProxy(Guard(resolve=home), Timeouts(), 10_000) as proxy:
        late = socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])))
        for _ in range(steps):
            await asyncio.sleep(0)
    late.setblocking(False)
    with late, suppress(ConnectionError):
        assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(late, 1), 5) == b""


@pytest.mark.parametrize(
    ("request_line", "reason"),
    [
        ("CONNECT 10.0.0.1:443", "page_blocked"),
        ("CONNECT internal.example.org:443", "page_blocked"),
        ("CONNECT 127.0.0.1:22", "page_blocked"),
        ("GET http://[::1]/", "page_blocked"),
        ("GET file:///etc/passwd", None),
        ("GET /x", None),
        ("nonsense", None),
    ],
)
async def test_proxy_answers_nothing_where_the_guard_refuses(request_line: str, reason: str | None) -> None:
    async with GuardedProxy(Guard(resolve=home), Timeouts(connect=2.0), 10_000) as proxy:
        assert await asked(proxy, f"{request_line} HTTP/1.1\n\n") == b""
        target = request_line.rpartition(" ")[2]
        failure = proxy.failure(target if "://" in target else f"https://{target}/")
        assert (failure and failure.reason) == reason


async def test_proxy_ends_at_the_limit_of_its_page() -> None:
    async def much(to: Exchange) -> None:
        await to.reply(b"x" * 300_000)

    with Server(otherwise=much) as server:
        async with GuardedProxy(Guard([server.address], resolve=home), Timeouts(), 100_000) as proxy:
            for _ in range(2):
                await asked(proxy, f"GET {server.url('/')} HTTP/1.1\n\n")
            failure = proxy.failure(server.url("/"))
            assert proxy.is_full and failure is not None and failure.reason == "page_unsupported"


async def test_installation_without_a_browser_is_named_before_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="fetch: render: there is no Chromium"):
        make_fetcher(FetchConfig(render="empty"))
    monkeypatch.setitem(__import__("sys").modules, "playwright.async_api", None)
    with pytest.raises(ConfigError, match=r"pip install 'adjudge\[render\]'"):
        make_fetcher(FetchConfig(render="empty"))
    with pytest.raises(ValueError, match="does not go with"):
        FetchConfig(render="always", fetcher="scraper")


async def test_browser_that_does_not_start_says_why(
    browser_path: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "chromium"
    script.write_text("#!/bin/sh\necho 'No usable sandbox! Update your kernel' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fetcher = HttpFetcher(Limits(workers=1), allow=["127.0.0.1:9"], render="always")
    with pytest.raises(PoolError, match=r"Chromium does not start: .*sandbox.*docs/guide\.md"):
        await fetcher.read("http://127.0.0.1:9/")
    await fetcher.close()
