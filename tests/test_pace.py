"""Sites with limits of every kind, in virtual time: who waits as asked reads all their pages, and never floods them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.fetchers.failures import Failure
from adjudge.fetchers.limits import Limits
from adjudge.fetchers.pace import Attempts, Turns
from adjudge.fetchers.waits import wait_advised, wait_asked
from tests.nightly import quick_or_whole
from tests.virtual_time import run

Rule = Callable[[float, int, str], Failure | None]
"""What a site answers to a request at a time in seconds: its number from 0, and the page that it is for."""


def refusal(wait: float | None = None) -> Failure:
    return Failure("page_rate_limited", "429", again=True, refused=True, wait=wait)


def sick() -> Failure:
    return Failure("page_server_error", "503", again=True, refused=True, answered=True)


class Site:
    """Answers by `rule`, each request after a tenth of a second, and remembers when it was asked for what."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.asked: list[tuple[float, str]] = []

    async def answer(self, page: str) -> None:
        now = asyncio.get_running_loop().time()
        self.asked.append((now, page))
        failure = self._rule(now, len(self.asked) - 1, page)
        await asyncio.sleep(0.1)
        if failure is not None:
            raise failure

    def of(self, page: str) -> int:
        return sum(each == page for _, each in self.asked)


async def read(turns: Turns, limits: Limits, site: Site, page: str) -> str | None:
    """The reason without a page, or None, by the same steps as a fetcher."""
    attempts = Attempts(limits)
    while True:
        try:
            try:
                async with turns.turn("site", refusals=attempts.refusals) as turn:
                    turn.sent()
                    with turn.outcome():
                        await site.answer(page)
                return None
            except Failure as failure:
                await asyncio.sleep(attempts.wait_after(failure))
        except Failure as failure:
            return failure.reason


def read_all(rule: Rule, pages: int, limits: Limits | None = None) -> tuple[list[str | None], Site, float]:
    """The outcomes of so many pages that are wanted at once, their site, and the seconds that all took."""
    limits, site = limits or Limits(), Site(rule)

    async def main() -> tuple[list[str | None], Site, float]:
        turns = Turns(limits)
        found = await asyncio.gather(*(read(turns, limits, site, str(n)) for n in range(pages)))
        return list(found), site, asyncio.get_running_loop().time()

    outcome: tuple[list[str | None], Site, float] = run(main())
    return outcome


def window(many: int, seconds: float, wait: float | None = None) -> Rule:
    """So many requests in each window of `seconds`."""
    began, used = -seconds, 0

    def rule(now: float, _number: int, _page: str) -> Failure | None:
        nonlocal began, used
        if now - began >= seconds:
            began, used = now, 0
        used += 1
        return refusal(wait) if used > many else None

    return rule


@pytest.mark.parametrize(
    ("rule", "most_s"),
    [
        (window(6, 2.0), 40),
        (window(1, 2.0), 150),
        (window(8, 3.0, wait=2.0), 30),
        (window(5, 20.0, wait=20.0), 120),
        (lambda now, number, page: refusal() if number % 3 else None, 60),
        (lambda now, number, page: refusal() if now < 20 else None, 60),
    ],
)
def test_every_page_is_read_at_the_pace_of_its_site(rule: Rule, most_s: float) -> None:
    found, site, seconds = read_all(rule, 24)
    assert found == [None] * 24
    assert seconds <= most_s
    assert len(site.asked) <= 24 * 5


@settings(max_examples=quick_or_whole(20, 60), deadline=None)
@given(
    many=st.integers(3, 12),
    seconds=st.floats(0.5, 2.0),
    says=st.booleans(),
    pages=st.integers(1, 30),
    per_host=st.integers(1, 8),
)
def test_windows_of_some_seconds_lose_no_page(
    many: int, seconds: float, says: bool, pages: int, per_host: int
) -> None:
    rule = window(many, seconds, wait=seconds if says else None)
    found, _, _ = read_all(rule, pages, Limits(per_host=per_host))
    assert found == [None] * pages


def test_pace_recovers() -> None:
    """A site that refused for a while is read as fast as before when it no longer does."""
    _, site, seconds = read_all(lambda now, number, page: refusal() if 1 < now < 3 else None, 400)
    last = [when for when, _ in site.asked[-100:]]
    assert last[-1] - last[0] < 100 * 0.1 / 4 + 0.5
    assert seconds < 30


def test_site_that_refuses_for_ever_is_given_up() -> None:
    found, site, seconds = read_all(lambda now, number, page: refusal() if number >= 6 else None, 300)
    assert found.count(None) == 6 and seconds <= 61
    asked = {page for _, page in site.asked}
    assert {found[int(page)] for page in asked} == {None, "page_rate_limited"}
    assert {reason for n, reason in enumerate(found) if str(n) not in asked} == {"page_deferred"}
    assert len(site.asked) < 30


def test_refused_pages_keep_no_others_waiting() -> None:
    """Sixteen pages that are always refused for two seconds, and three of somebody else behind them."""
    limits = Limits()
    site = Site(lambda now, number, page: refusal(2.0) if page.startswith("refused") else None)

    async def main() -> tuple[list[str | None], float, list[str | None]]:
        turns = Turns(limits)
        mine = [asyncio.create_task(read(turns, limits, site, f"refused {n}")) for n in range(4)]
        await asyncio.sleep(0)
        found = await asyncio.gather(*(read(turns, limits, site, f"other {n}") for n in range(3)))
        return found, asyncio.get_running_loop().time(), await asyncio.gather(*mine)

    found, seconds, refused = run(main())
    assert found == [None] * 3 and seconds < 5
    assert refused == ["page_rate_limited"] * 4


def test_cancelled_turns_are_given_back() -> None:
    async def main() -> None:
        limits = Limits(per_host=1, delay=0.5)
        turns, site = Turns(limits), Site(lambda now, number, page: None)
        for _ in range(3):
            tasks = [asyncio.create_task(read(turns, limits, site, str(n))) for n in range(5)]
            await asyncio.sleep(0.7)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert await read(turns, limits, site, "last") is None

    run(main())


@pytest.mark.parametrize(
    ("headers", "asked", "advised"),
    [
        ({}, None, None),
        ({"Retry-After": "3", "RateLimit-Reset": "9"}, 3.0, None),
        ({"RateLimit": '"default";r=0;t=7'}, 7.0, 7.0),
        ({"RateLimit": '"default";r=5;t=7'}, 7.0, None),
        ({"RateLimit": "limit=10, remaining=0, reset=4"}, 4.0, 4.0),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "5"}, 5.0, 5.0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000030"}, 30.0, 30.0),
        ({"X-RateLimit-Remaining": "12", "X-RateLimit-Reset": "30"}, 30.0, None),
        ({"X-RateLimit-Remaining": "none", "X-RateLimit-Reset": "soon"}, None, None),
    ],
)
def test_rate_limit_headers(headers: dict[str, str], asked: float | None, advised: float | None) -> None:
    assert wait_asked(headers, 1_700_000_000.0) == asked
    assert wait_advised(headers, 1_700_000_000.0) == advised


@given(st.dictionaries(st.sampled_from(["Retry-After", "RateLimit", "RateLimit-Reset"]), st.text()))
def test_any_header_is_read(headers: dict[str, Any]) -> None:
    for wait in (wait_asked(headers, 0.0), wait_advised(headers, 0.0)):
        assert wait is None or wait >= 0


def test_a_site_is_waited_for_as_long_as_our_patience_is() -> None:
    found, _, took = read_all(window(5, 45.0, 45.0), 10)
    assert found == [None] * 10
    assert took < 60
    found, _, took = read_all(window(5, 90.0, 90.0), 10)
    assert found.count(None) == 5
    assert took < 10


@given(st.floats(0.0, 200.0))
def test_whoever_refuses_for_good_is_waited_for_no_longer(wait: float) -> None:
    found, _, took = read_all(lambda *_: refusal(wait), 5)
    assert set(found) <= {"page_rate_limited", "page_deferred"}
    assert took <= 75


def test_site_out_of_order_is_asked_for_each_page_in_turn() -> None:
    """Its 503 without a wait is the outcome of each page, whatever the others of the site came to."""
    found, site, took = read_all(lambda *_: sick(), 24, Limits(retries=0, per_host=16))
    assert found == ["page_server_error"] * 24 and len(site.asked) == 24
    assert took < 12.0
