"""Shares of one limit: their sum never exceeds it while holders join, leave or learn of changes late."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.cluster.driver import Leases, shares
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.evaluation.gate import Limit, Rate
from tests.nightly import quick_or_whole


@given(st.integers(1, 500), st.integers(1, 60))
def test_shares_are_whole_and_equal(total, parts):
    found = shares(total, parts)
    assert sum(found) == total and max(found) - min(found) <= 1 and min(found) >= 1


class Holder:
    """Hears of leases late, answers questions late."""

    def __init__(self) -> None:
        self.limit = Limit(JudgeConfig(max_in_flight=100), share=0)
        self.number = 0
        self.mail: list[tuple[int, int]] = []
        self.reports: list[tuple[int, int]] = []


@settings(max_examples=quick_or_whole(40, 200))
@given(st.integers(1, 40), st.integers(0, 10**6))
def test_leases_never_exceed_the_total(total, seed):
    chance = random.Random(seed)
    leases, holders = Leases(total), {}
    for step in range(300):
        if chance.random() < 0.05 or not holders:
            holders[f"h{step}"] = Holder()
            leases.join(f"h{step}")
        if chance.random() < 0.03:
            gone = chance.choice(list(holders))
            del holders[gone]
            leases.leave(gone)
        for name, number, share in leases.divide([n for n in holders if chance.random() < 0.7]):
            holders[name].mail.append((number, share))
        for name, holder in holders.items():
            if holder.mail and chance.random() < 0.5:
                number, share = holder.mail.pop(chance.randrange(len(holder.mail)))
                if number > holder.number:
                    holder.number = number
                    holder.limit.lease(share)
            slots = holder.limit.slots
            while slots._free > 0 and chance.random() < 0.9:
                slots._free -= 1
            while slots.in_use > 0 and chance.random() < 0.4:
                slots.release()
            holder.reports.append((holder.number, holder.limit.held))
            if chance.random() < 0.5:
                leases.report(name, *holder.reports.pop(0))
        assert sum(holder.limit.slots.in_use for holder in holders.values()) <= total


def test_whole_share_goes_to_the_only_busy_holder():
    leases = Leases(10)
    leases.join("a")
    leases.join("b")
    first = leases.divide(["a", "b"])
    assert sorted(share for _, _, share in first) == [5, 5]
    second = {name: (number, share) for name, number, share in leases.divide(["a"])}
    assert second == {"b": (2, 0)}
    leases.report("b", 2, 3)
    assert leases.divide(["a"]) == [("a", 2, 7)]
    leases.report("b", 2, 0)
    assert leases.divide(["a"]) == [("a", 3, 10)]


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_token_rate_holds_in_every_minute(size, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("adjudge.engine.evaluation.gate.time.monotonic", lambda: now[0])

    async def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr("adjudge.engine.evaluation.gate.asyncio.sleep", sleep)
    rate = Rate(60_000)
    spent = []

    async def run():
        while now[0] < 200:
            await rate.spend(size)
            spent.append(now[0])

    asyncio.run(run())
    for begin in range(140):
        assert sum(size for at in spent if begin <= at < begin + 60) <= 60_000 + size
    assert len(spent) * size >= 0.9 * 60_000 * 200 / 65


@pytest.mark.parametrize("per_minute", [1, 10, 600])
def test_request_rate_holds_in_every_minute(per_minute, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("adjudge.engine.evaluation.gate.time.monotonic", lambda: now[0])

    async def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr("adjudge.engine.evaluation.gate.asyncio.sleep", sleep)
    requests = Limit(JudgeConfig(requests_per_minute=per_minute)).requests
    sent = []

    async def run():
        while now[0] < 600:
            await requests.spend(1)
            sent.append(now[0])

    asyncio.run(run())
    for begin in range(540):
        assert sum(begin <= at < begin + 60 for at in sent) <= per_minute
    assert len(sent) >= 0.9 * per_minute * 600 / 65 - 1
