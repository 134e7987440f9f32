"""Name resolution through a real name server, and what others' success says about a failure."""

import asyncio
import socket

import pytest

from adjudge.fetchers.guard import NameServers, Others
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.limits import Limits, Timeouts
from tests.servers.base import Server
from tests.servers.hostile import plain
from tests.servers.name_server import NameServer

LIMITS = Limits(workers=1, retries=0, in_flight=256)


async def test_dead_names_do_not_delay_good_ones() -> None:
    """200 names get no answer; each of the 39 pages beside them is read, though all are asked for at once."""
    good = {f"good{n}.example.net": "127.0.0.1" for n in range(39)}
    with NameServer(good) as names, Server(otherwise=plain) as server:
        servers = NameServers([names.address])
        allow = [f"{host}:{server.port}" for host in good]
        fetcher = HttpFetcher(LIMITS, Timeouts(connect=3.0), allow=allow, resolve=servers.addresses)
        dead = [f"https://dead{n}.example.net/" for n in range(200)]
        urls = [*dead, *(server.url("/", host=host) for host in good)]
        pages = await asyncio.gather(*map(fetcher.read, urls))
        await fetcher.close()
        await servers.close()
    assert [page.reason for page in pages[200:]] == [None] * 39
    assert {page.reason for page in pages[:200]} == {"network_unavailable"}
    assert len(set(names.asked)) >= 239


async def test_names_are_found_denied_or_left_open() -> None:
    with NameServer({"here.example.net": "192.0.66.1", "gone.example.net": ""}) as names:
        servers = NameServers([names.address])
        assert await servers.addresses("here.example.net", 443) == ["192.0.66.1"]
        with pytest.raises(socket.gaierror) as gone:
            await servers.addresses("gone.example.net", 443)
        lookup = asyncio.create_task(servers.addresses("silent.example.net", 443))
        while "silent.example.net" not in names.asked:
            await asyncio.sleep(0.01)
        await servers.close()
        with pytest.raises(socket.gaierror) as silent:
            await lookup
    assert (gone.value.errno, silent.value.errno) == (socket.EAI_NONAME, socket.EAI_AGAIN)


async def test_name_servers_answer_localhost_from_the_hosts_file() -> None:
    servers = NameServers()
    assert set(await servers.addresses("localhost", 80)) <= {"127.0.0.1", "::1"}
    await servers.close()


class Clock:
    """Seconds that pass only by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_others_count_for_a_minute() -> None:
    clock, probes = Clock(), []

    async def probe() -> bool:
        probes.append(clock.now)
        return False

    others = Others(probe, clock)
    others.worked("a.com", public=True)
    clock.now += 59.0
    assert await others.work("b.com", public=True) and not probes
    assert not await others.work("a.com", public=True) and probes == [1059.0]
    clock.now += 2.0
    assert not await others.work("b.com", public=True)
    assert probes == [1059.0]
    clock.now += 60.0
    assert not await others.work("b.com", public=True)
    assert probes == [1059.0, 1121.0]


async def test_internal_sites_vouch_for_internal_ones_alone() -> None:
    async def probe() -> bool:
        return False

    others = Others(probe, Clock())
    others.worked("wiki.internal", public=False)
    assert await others.work("files.internal", public=False)
    assert not await others.work("news.com", public=True)
    others.worked("b.com", public=True)
    assert await others.work("news.com", public=True) and await others.work("files.internal", public=False)


async def test_probe_settles_what_no_other_site_shows() -> None:
    """The last dead page of a run that is repeated: everything else is read from the store."""
    probes = []

    async def probe() -> bool:
        probes.append(None)
        await asyncio.sleep(0)
        return True

    others = Others(probe, Clock())
    assert all(await asyncio.gather(*(others.work(f"{n}.com", public=True) for n in range(9))))
    assert len(probes) == 1
    await others.close()


async def test_site_that_works_while_the_probe_fails_counts() -> None:
    """On a slow machine the first page may fail before another has been received."""

    async def probe() -> bool:
        others.worked("good.com", public=True)
        return False

    others = Others(probe, Clock())
    assert await others.work("sick.com", public=True)


async def test_many_sites_are_not_all_remembered() -> None:
    async def probe() -> bool:
        return False

    others = Others(probe, Clock())
    for n in range(100_000):
        others.worked(f"{n}.com", public=True)
    assert len(others._worked) < 1000
    assert await others.work("99999.com", public=True)
