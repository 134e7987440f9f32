"""A downloader outside the package is found by its entry point; guard, limits, store and reasons stay."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest

from adjudge.fetchers.downloader import Download
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.limits import Limits, Timeouts
from adjudge.fetchers.page import Page
from tests.forks import Done, forked
from tests.servers.base import Exchange, Server
from tests.snapshots import SENTENCE, config_of

OUTSIDE = Path(__file__).parent / "outside_fetcher"
HTML = f"<title>T</title><p>{SENTENCE * 3}</p>".encode()


def evaluate(config: Path) -> Done:
    return forked("evaluate", config, path=OUTSIDE)


def test_outside_fetcher_reads_the_pages_of_a_run(tmp_path: Path) -> None:
    """The service is asked, the sites are not; pages of another fetcher, version or option are other pages."""

    async def scrape(to: Exchange) -> None:
        url = parse_qs(urlsplit(to.request.path).query)["url"][0]
        if url.endswith("/gone"):
            await to.reply(b"", "X-Page-Status: 404")
        else:
            await to.reply(HTML)

    with Server(otherwise=scrape) as server:
        urls = [server.url("/page"), server.url("/gone")]
        fetch = {"mode": "live", "allow": [server.address]}
        fetcher = {"name": "scraper", "service": server.url("/scrape")}
        config = config_of(tmp_path / "run", {**fetch, "fetcher": fetcher}, *urls)
        done = evaluate(config)
        assert done.returncode in (0, 3), done.stderr
        assert {urlsplit(one.path).path for one in server.log} == {"/scrape"}
        asked = len(server.log)
        assert evaluate(config).returncode == done.returncode and len(server.log) == asked
    pages = pq.read_table(tmp_path / "run/store/pages").to_pylist()
    assert {page["source"] for page in pages} == {
        f'live trafilatura scraper 1 {{"service":"{fetcher["service"]}"}}'
    }
    found = {page["url"]: page for page in pages}
    assert SENTENCE in found[urls[0]]["text"] and found[urls[1]]["reason"] == "page_gone"


@pytest.mark.parametrize(
    ("fetcher", "said"),
    [
        ("scrapper", "unknown fetcher 'scrapper'; use 'scraper'"),
        ({"name": "scraper"}, "service"),
        ({"name": "scraper", "service": 1}, "service"),
        ({"name": "scraper", "service": "http://s.example", "colour": "red"}, "colour"),
        ({"service": "http://s.example"}, "unknown fetcher None"),
    ],
)
def test_wrong_options_of_an_outside_fetcher_are_named(fetcher: object, said: str, tmp_path: Path) -> None:
    done = evaluate(config_of(tmp_path / "run", {"mode": "live", "fetcher": fetcher}, "http://e.com/"))
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


class Made:
    """Answers each URL with what a function says."""

    version = "1"

    def __init__(self, answer: Callable[[str], object]) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.closed = False

    async def download(self, url: str) -> Download:
        self.asked.append(url)
        found = self.answer(url)
        return await found if asyncio.iscoroutine(found) else found  # type: ignore[return-value]

    async def close(self) -> None:
        self.closed = True


async def public(host: str, port: int) -> list[str]:
    """Names to addresses, as a name server would give them."""
    return ["10.0.0.1"] if host.startswith("internal") else ["93.184.215.14"]


async def read(made: Made, url: str = "http://page.com/x", **settings: object) -> Page:
    limits = Limits(workers=1, retries=0, max_bytes=10_000)
    timeouts = Timeouts(total=0.5)
    fetcher = HttpFetcher(limits, timeouts, resolve=public, downloader=made, **settings)  # type: ignore[arg-type]
    try:
        return await fetcher.read(url)
    finally:
        await fetcher.close()
        assert made.closed


def raising(error: Exception) -> Callable[[str], object]:
    def answer(url: str) -> object:
        raise error

    return answer


async def test_page_of_a_downloader_is_extracted() -> None:
    page = await read(Made(lambda url: Download(body=HTML, final_url="http://page.com/y")))
    assert (page.status, page.title, page.final_url) == ("read", "T", "http://page.com/y")
    assert SENTENCE in page.text and len(page.sha256) == 64


@pytest.mark.parametrize(
    ("answer", "reason", "detail"),
    [
        (raising(RuntimeError("no credit")), "network_unavailable", "RuntimeError: no credit"),
        (raising(asyncio.CancelledError()), "network_unavailable", "it was cancelled"),
        (raising(TimeoutError()), "network_unavailable", "TimeoutError"),
        (lambda url: None, "network_unavailable", "it returned NoneType instead of Download"),
        (lambda url: Download(body="text"), "network_unavailable", "Expected `bytes`"),  # type: ignore[arg-type]
        (lambda url: Download(body=HTML, status_code="200"), "network_unavailable", "Expected `int`"),  # type: ignore[arg-type]
        (lambda url: Download(body=HTML, final_url="no url"), "network_unavailable", "its final URL"),
        (lambda url: Download(body=b"x" * 10_001), "page_unsupported", "larger than 10,000 bytes"),
        (lambda url: Download(body=b"x", content_type="image/png"), "page_unsupported", "image/png"),
        (lambda url: Download(body=b"", status_code=404), "page_gone", "404"),
        (lambda url: Download(body=b"", status_code=403), "page_barred", "403"),
        (lambda url: Download(body=HTML, final_url="http://10.0.0.1/"), "page_blocked", "10.0.0.1"),
        (lambda url: Download(body=HTML, final_url="http://internal.com/"), "page_blocked", "10.0.0.1"),
        (lambda url: Download(body=HTML, final_url="http://page.com:8081/"), "page_blocked", "port 8081"),
    ],
)
async def test_what_a_downloader_does_wrong_has_a_reason(
    answer: Callable[[str], object], reason: str, detail: str
) -> None:
    page = await read(Made(answer))
    assert page.reason == reason and detail in page.detail and page.text == ""


async def test_hanging_downloader_is_ended_by_the_page_timeout() -> None:
    """Even one that ignores being cancelled. Nothing else answers through it: the network's failure, not the page's."""
    released = asyncio.Event()

    async def hang() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    async with asyncio.timeout(20):
        page = await read(Made(lambda url: hang()))
    released.set()
    assert page.reason == "network_unavailable" and "0.5 s" in page.detail


async def test_hanging_page_is_the_pages_when_others_answer() -> None:
    made = Made(lambda url: asyncio.sleep(60) if "slow" in url else Download(body=HTML))
    page = await read(made, "http://slow.com/")
    assert page.reason == "page_timeout" and "http://example.com/" in made.asked


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://internal.com/", "http://page.com:8081/", "http://u:p@page.com/"]
)
async def test_downloader_is_not_asked_for_what_the_guard_refuses(url: str) -> None:
    made = Made(lambda url: Download(body=HTML))
    assert (await read(made, url)).reason == "page_blocked"
    assert made.asked == []


async def test_robots_are_read_without_the_downloader() -> None:
    async def rules(to: Exchange) -> None:
        await to.reply(b"User-agent: *\nDisallow: /private\n", content_type="text/plain")

    made = Made(lambda url: Download(body=HTML))
    with Server(routes={"/robots.txt": rules}) as server:
        url = server.url("/private")
        limits = Limits(workers=1)
        fetcher = HttpFetcher(limits, allow=[server.address], robots=True, downloader=made)
        barred, fine = [await fetcher.read(one) for one in (url, server.url("/public"))]
        await fetcher.close()
    assert barred.reason == "page_barred" and fine.status == "read"
    assert made.asked == [server.url("/public")] and [one.path for one in server.log] == ["/robots.txt"]
