"""Limits and delays as the site's own log shows them."""

import asyncio
from itertools import pairwise

from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.limits import Limits, Timeouts
from adjudge.fetchers.urls import worker_of
from tests.servers.base import Exchange, Request, Server
from tests.servers.hostile import ARTICLE, busy_for_an_hour, plain, slow_drip

WORKERS = 8
DELAY = 0.1
# The server reads the clock when its thread runs, which is later than the bytes arrived.
CLOCK = 0.02


async def home(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


async def slow(to: Exchange) -> None:
    await asyncio.sleep(0.35)
    await to.reply(ARTICLE)


def most_at_once(requests: list[Request]) -> int:
    moments = [(request.began, 1) for request in requests] + [(request.ended, -1) for request in requests]
    there = most = 0
    for _, change in sorted(moments):
        there += change
        most = max(most, there)
    return most


async def test_eight_workers_keep_the_per_host_limit_and_delay() -> None:
    """Every URL goes to its site's worker; three sites, one of which redirects between its two names."""
    limits = Limits(per_host=2, delay=DELAY, workers=1)
    sites = ["one.test", "two.test", "www.three.test"]
    with Server(otherwise=slow) as server:

        async def move(to: Exchange) -> None:
            await to.redirect(server.url(to.request.path.replace("move", "page"), host="www.three.test"))

        for n in range(20, 24):
            server.routes[f"/move/{n}"] = move
        allow = [f"{host}:{server.port}" for host in [*sites, "three.test"]]
        fetchers = [HttpFetcher(limits, allow=allow, resolve=home) for _ in range(WORKERS)]
        urls = [server.url(f"/page/{n}", host=host) for n in range(12) for host in sites]
        urls += [server.url(f"/move/{n}", host="three.test") for n in range(20, 24)]
        pages = await asyncio.gather(*(fetchers[worker_of(url, WORKERS)].read(url) for url in urls))
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers))
    assert all(page.status == "read" for page in pages) and len(server.log) == len(urls) + 4
    for site in ("one.test", "two.test", "three.test"):
        log = [entry for entry in server.log if entry.headers["host"].split(":")[0].endswith(site)]
        starts = sorted(entry.began for entry in log)
        assert len(log) in (12, 20) and most_at_once(log) == 2
        # A delayed server thread makes a request look closer to the next one.
        assert sum(later - earlier < DELAY - CLOCK for earlier, later in pairwise(starts)) <= 2
        assert starts[-1] - starts[0] >= DELAY * (len(starts) - 1) - CLOCK


async def test_retry_after_holds_for_the_whole_site_only() -> None:
    async def busy(to: Exchange) -> None:
        if to.times == 1:
            await to.reply(b"", "Retry-After: 1", status="429 Too Many Requests")
        else:
            await to.reply(ARTICLE)

    with Server(routes={"/busy": busy}, otherwise=plain) as one, Server(otherwise=plain) as other:
        allow = [f"one.test:{one.port}", f"other.test:{other.port}"]
        fetcher = HttpFetcher(Limits(per_host=1, workers=1), allow=allow, resolve=home)
        urls = [one.url(path, host="one.test") for path in ("/busy", "/a", "/b")]
        pages = await asyncio.gather(*map(fetcher.read, [*urls, other.url("/c", host="other.test")]))
        await fetcher.close()
    assert [page.status for page in pages] == ["read"] * 4
    assert one.paths()[0] == "/busy" and sorted(one.paths()) == ["/a", "/b", "/busy", "/busy"]
    refused, *rest = one.log
    assert all(entry.began - refused.ended >= 1.0 - 10 * CLOCK for entry in rest)
    assert other.log[0].began < rest[0].began


async def test_one_page_that_asks_for_an_hour_is_its_own_affair() -> None:
    with Server(routes={"/busy": busy_for_an_hour}, otherwise=plain) as server:
        fetcher = HttpFetcher(Limits(workers=1), allow=[server.address], resolve=home)
        pages = await asyncio.gather(
            *(fetcher.read(server.url(path)) for path in ("/busy", *map("/{}".format, range(20))))
        )
        await fetcher.close()
    assert [page.reason for page in pages] == ["page_rate_limited"] + [None] * 20
    assert server.paths().count("/busy") == 1


async def test_site_that_asks_for_an_hour_defers_its_other_pages() -> None:
    """What waits then ends at once, and comes when the site answers again."""

    async def answers(to: Exchange) -> None:
        await (plain if again else busy_for_an_hour)(to)

    again = False
    with Server(otherwise=answers) as server:
        fetcher = HttpFetcher(Limits(workers=1, per_host=2), allow=[server.address], resolve=home)
        pages = await asyncio.gather(*(fetcher.read(server.url(f"/{n}")) for n in range(40)))
        asked = set(server.paths())
        reasons = {page.url.rpartition("/")[2]: page.reason for page in pages}
        assert len(asked) <= 6
        assert {f"/{n}" for n, reason in reasons.items() if reason == "page_rate_limited"} == asked
        assert {reason for n, reason in reasons.items() if f"/{n}" not in asked} == {"page_deferred"}
        again = True
        await asyncio.sleep(2.0)
        pages = await asyncio.gather(*(fetcher.read(server.url(f"/{n}")) for n in range(40)))
        await fetcher.close()
    assert {page.reason for page in pages} == {None}


async def test_endless_pages_of_one_site_end_in_bounded_time() -> None:
    with Server(otherwise=slow_drip) as server, Server(otherwise=plain) as other:
        allow = [f"endless.test:{server.port}", f"other.test:{other.port}"]
        fetcher = HttpFetcher(
            Limits(workers=1, per_host=4), Timeouts(read=1.0, total=0.5), allow=allow, resolve=home
        )
        await fetcher.read(other.url("/first", host="other.test"))
        endless = [server.url(f"/{n}", host="endless.test") for n in range(5000)]
        async with asyncio.timeout(30):
            pages = await asyncio.gather(
                *map(fetcher.read, [*endless, *(other.url(f"/{n}", host="other.test") for n in range(20))])
            )
        await fetcher.close()
    assert [page.status for page in pages[5000:]] == ["read"] * 20
    timed_out = [page for page in pages if page.reason == "page_timeout"]
    assert 0 < len(timed_out) <= 24 and len(server.log) <= 24
    assert sum(page.reason == "page_deferred" for page in pages) == 5000 - len(timed_out)
