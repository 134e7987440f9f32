"""FACT reading its pages, beside a bare loop that reads the same pages and sends as many questions of the same bytes.

    python -m benchmarks.reading [--quick] [--json] [--only WORDS]

Ours is the run of `benchmarks.pipeline` that reads pages on the way, into a new store each time. The bare loop knows
from the start what each report cites. It reads each page once with aiohttp, extracts its text by trafilatura in a
process for each core, and asks as soon as the text is there, 256 questions at once; it looks at no answer and stores
nothing. So it shows what share of the judge's bound these pages and questions allow at the speed that the cores have
just then. The two alternate; CPU is that of this process and its workers.
"""

import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count, cycle
from pathlib import Path

import aiohttp
import msgspec

from benchmarks.judge_server import LATENCY, judge_server
from benchmarks.orchestration import LIMIT
from benchmarks.page_server import page_server
from benchmarks.pipeline import CITED, FACT, SYSTEMS, WARM_CASES, Pipeline, recorded
from benchmarks.timing import Row, alternating, main

NAME = "FACT reading its pages"
PEER = "bare aiohttp loop with trafilatura, same pages and bytes"
CASES, QUICK_CASES, PAGES, QUICK_PAGES = 4_000, 100, 500, 50
RUNS, QUICK_RUNS = 3, 1
PER_HOST = 64  # pages at once, as `benchmarks.pipeline` allows
BOUND = LIMIT / LATENCY / CITED  # reports a second, if the judge's latency alone counted

Cost = tuple[float, float]
"""Reports a second, and milliseconds of processor time a report."""


class Bare:
    """The loop: pages come from `address`, `bodies` go to `url` in turn. For one run."""

    def __init__(self, url: str, address: str, bodies: Sequence[bytes]) -> None:
        self._url, self._address = f"{url}/chat/completions", address
        self._bodies = cycle(bodies)
        self._asking, self._reading = asyncio.Semaphore(LIMIT), asyncio.Semaphore(PER_HOST)
        self._texts: dict[str, asyncio.Task[str]] = {}

    async def run(self, cited: Sequence[str]) -> None:
        """Read the pages at the paths `cited`, and ask as often as each is named."""
        spawning, connector = multiprocessing.get_context("spawn"), aiohttp.TCPConnector(limit=LIMIT)
        with ProcessPoolExecutor(os.cpu_count(), spawning) as self._pool:
            async with (
                aiohttp.ClientSession(connector=connector) as self._judge,
                aiohttp.ClientSession() as self._web,
            ):
                await asyncio.gather(*map(self._check, cited))

    async def _check(self, path: str) -> None:
        if path not in self._texts:
            self._texts[path] = asyncio.ensure_future(self._text(path))
        assert await asyncio.shield(self._texts[path])
        async with self._asking, self._judge.post(self._url, data=next(self._bodies)) as response:
            assert msgspec.json.decode(await response.read())["choices"]

    async def _text(self, path: str) -> str:
        async with self._reading, self._web.get(f"http://{self._address}{path}") as response:
            body = await response.read()
        return await asyncio.get_running_loop().run_in_executor(self._pool, _text_of, body)


def _text_of(body: bytes) -> str:
    import trafilatura  # in the workers alone

    return trafilatura.extract(body.decode()) or ""


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Both rates, their shares of the judge's bound, and what a report costs each side."""
    if not wanted(NAME):
        return
    cases, pages = (QUICK_CASES, QUICK_PAGES) if quick else (CASES, PAGES)
    with tempfile.TemporaryDirectory() as folder, judge_server() as url, page_server(pages) as address:
        pipeline = Pipeline(Path(folder), url, address, pages)
        pipeline.write(WARM_CASES)
        with recorded() as bodies:
            pipeline.run(FACT, "warm", "live")
        asked = bodies[-WARM_CASES * CITED :]  # the first is the probe
        pipeline.write(cases)
        cited = [
            pipeline.cited(task, system) for system in range(SYSTEMS) for task in range(cases // SYSTEMS)
        ]
        store = count()

        def ours() -> None:
            pipeline.run(FACT, f"store{next(store)}", "live")

        def peer() -> None:
            asyncio.run(Bare(url, address, asked).run([page.path for report in cited for page in report]))

        runs = QUICK_RUNS if quick else RUNS
        sides = alternating(lambda: _cost(ours, cases), lambda: _cost(peer, cases), runs)
    (rate, cpu), (bare_rate, bare_cpu) = (
        tuple(map(statistics.median, zip(*side, strict=True))) for side in sides
    )
    yield Row(NAME, rate, bare_rate, PEER, rate / bare_rate, "reports/s", cases, runs)
    share = f"{NAME}: share of the judge's bound"
    yield Row(share, rate / BOUND, bare_rate / BOUND, PEER, rate / bare_rate, "", cases, runs)
    yield Row(f"{NAME}: CPU a report", cpu, bare_cpu, PEER, bare_cpu / cpu, "ms", cases, runs)


def _cost(work: Callable[[], None], reports: int) -> Cost:
    cpu, began = sum(os.times()[:4]), time.perf_counter()
    work()
    return reports / (time.perf_counter() - began), (sum(os.times()[:4]) - cpu) / reports * 1e3


if __name__ == "__main__":
    main(__doc__, rows)
