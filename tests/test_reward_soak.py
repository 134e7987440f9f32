"""The reward server at twice its admitted rate for minutes: admitted requests are answered, memory stays flat.

    python -m pytest tests/test_reward_soak.py -m soak -s

ADJUDGE_SOAK_S sets how long (360 seconds, after a third of that at half load; memory settles in the first two minutes).
"""

import asyncio
import json
import os
import statistics
import time
from collections import Counter
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from tests.reward_server import judge_server, reward_server
from tests.worlds import world

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

SECONDS = float(os.environ.get("ADJUDGE_SOAK_S", "360"))
LATENCY = 0.2
LIMIT = 64  # questions at once, 10 per rollout
ADMITTED = 8  # rollouts at work at most
RATE = LIMIT / LATENCY / 10  # rollouts per second that the judge can do


class Load:
    """Requests at a steady rate regardless of replies: latencies of answered ones, and how the others ended."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/v1/rewards"
        self.latencies: list[float] = []
        self.statuses: Counter[object] = Counter()
        self._sent = 0

    async def run(self, session: aiohttp.ClientSession, rate: float, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        asked = set()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
            self._sent += 1
            asked.add(asyncio.ensure_future(self._one(session, self._sent)))
        await asyncio.gather(*asked)

    async def _one(self, session: aiohttp.ClientSession, number: int) -> None:
        body = json.dumps(
            {"items": [{"task_id": str(number % 5), "text": f"Report {number}. " + "It is so. " * 300}]}
        )
        began = time.perf_counter()
        try:
            async with session.post(self.url, data=body) as response:
                found = json.loads(await response.read())
                self.statuses[response.status] += 1
        except (aiohttp.ClientError, OSError) as error:
            self.statuses[type(error).__name__] += 1
            return
        if response.status == 200:
            assert found["rewards"][0]["value"] is not None, found
            self.latencies.append(time.perf_counter() - began)

    def p99(self) -> float:
        return statistics.quantiles(self.latencies, n=100)[98]


def _rss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def _watch(pid: int, samples: list[tuple[float, float]]) -> None:
    while True:
        samples.append((time.monotonic(), _rss_mb(pid)))
        await asyncio.sleep(1)


async def test_server_survives_twice_the_admitted_rate(tmp_path):
    with judge_server(LATENCY) as judge_url:
        judge = {"backend": "openai", "url": judge_url, "model": "mock", "retries": 0, "max_in_flight": LIMIT}
        config = world(
            tmp_path, judge=judge, reward={"metric": "score_clipped", "limits": {"items": ADMITTED}}
        )
        with reward_server(config) as (url, process):
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as session:
                half = Load(url)
                await half.run(session, RATE / 2, SECONDS / 3)
                memory: list[tuple[float, float]] = []
                watching = asyncio.ensure_future(_watch(process.pid, memory))
                twice = Load(url)
                await twice.run(session, RATE * 2, SECONDS)
                watching.cancel()
    at, megabytes = np.array(memory[len(memory) // 3 :]).T
    slope = np.polyfit(at - at[0], megabytes, 1)[0]
    print(
        f"\nhalf load: {len(half.latencies)} answered, p99 {half.p99():.3f} s; {dict(half.statuses)}"
        f"\ntwice: {len(twice.latencies)} answered, p99 {twice.p99():.3f} s; {dict(twice.statuses)}"
        f"\nresident {megabytes[0]:.0f} to {megabytes[-1]:.0f} MB, slope {slope * 60:.2f} MB a minute"
    )
    assert set(half.statuses) <= {200, 429} and set(twice.statuses) == {200, 429}
    assert twice.p99() <= 2 * half.p99()
    assert slope * 60 < 5
