"""The cluster beside one process, the cost of questions by the thousand and the million, and routing simulated.

    python -m benchmarks.scale [--quick] [--json] [--only WORDS]

Rows `routing ...` come from benchmarks.routing, where its constants are; `peer` is round robin or least loaded. Rows
`cluster ...` compare the same cases in this process and on a small Ray here, whose start is not counted; the judge is
a server in a process of its own that takes 200 ms. Rows `cost ...` use the scripted judge in one process.
"""

import asyncio
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from adjudge.engine.ask import Asker
from adjudge.engine.cluster.driver import open_cluster
from adjudge.engine.config import RunConfig
from adjudge.engine.garbage import rare_collections
from adjudge.engine.house import open_evaluator
from adjudge.engine.store import JudgmentStore, Place
from adjudge.judges import ScriptedJudge
from adjudge.prompts import PromptBook
from adjudge.scoring.case import Case, Report, Task

from benchmarks.orchestration import LIMIT, Verdict, questions, server
from benchmarks.routing import POLICIES, WORKLOADS, Outcome, simulate
from benchmarks.timing import Row, alone, main
from tests.chaos import children, command
from tests.worlds import CRITERIA

QUESTIONS_A_CASE = len(CRITERIA)
EVALUATORS = 2


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterable[Row]:
    yield from _routing(quick, wanted)
    if wanted("cluster"):
        yield from _cluster(quick)
    if wanted("cost"):
        yield from _cost(quick)


def _routing(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    for replicas in (64,) if quick else (1, 4, 16, 64, 256):
        for workload in WORKLOADS:
            name = f"routing {workload.name}, {replicas} replicas"
            if not wanted(name):
                continue
            found: dict[str, Outcome] = {}
            for policy, make in POLICIES.items():
                found[policy] = simulate(workload, replicas, make(replicas))
            mine = found["ours"]
            for peer in POLICIES:
                if peer == "ours":
                    continue
                other, ratio = found[peer].throughput, mine.throughput / found[peer].throughput
                yield Row(name, mine.throughput, other, peer, ratio, "questions/s", replicas, 1)
            for policy, one in found.items():
                yield alone(
                    f"{name}: prompt tokens over the least, {policy}", one.recomputed, "x", n=replicas
                )
                yield alone(f"{name}: busiest replica over mean, {policy}", one.worst, "x", n=replicas)


def cases(count: int) -> Iterator[Case]:
    """Cases with `count` questions in all, ten reports a task."""
    gold = {"rubrics": msgspec.Raw(msgspec.json.encode(CRITERIA))}
    for number in range(count // QUESTIONS_A_CASE):
        task = Task(id=str(number // 10), prompt="What is it?", gold=gold)
        text = f"# Report {number}\n\n" + "The measured value was 42 units. " * 60
        yield Case(task=task, report=Report(task_id=task.id, system=f"s{number % 10}", text=text))


def _config(folder: str, url: str) -> RunConfig:
    judge = {"backend": "openai", "url": url, "model": "mock", "max_in_flight": LIMIT}
    settings = {"address": "local", "evaluators": EVALUATORS}
    raw = {"tasks": "-", "protocols": ["rubrics"], "fetch": {"mode": "off"}, "store": f"{folder}/store"}
    return RunConfig.of({**raw, "judge": judge, "cluster": settings})


async def _timed(evaluator: Any, count: int) -> tuple[float, float]:
    """Seconds for `count` questions, and CPU seconds of this process and all under it."""
    before = _cpu(os.getpid())
    began = time.perf_counter()
    scored = 0
    async for card in evaluator.run(cases(count)):
        scored += card.status == "scored"
    seconds = time.perf_counter() - began
    assert scored == count // QUESTIONS_A_CASE
    return seconds, _cpu(os.getpid()) - before


def _cpu(process: int) -> float:
    """CPU seconds of `process` and its descendants, the judge's server left out."""
    if b"mock_openai" in command(process):
        return 0.0
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_cpu, children(process)))


def _cluster(quick: bool) -> Iterator[Row]:
    count = 5_000 if quick else 20_000
    here: list[tuple[float, float]] = []
    there: list[tuple[float, float]] = []
    with server() as url, rare_collections():
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                here.append(asyncio.run(_in_process(folder, url, count)))
            with tempfile.TemporaryDirectory() as folder:
                there.append(asyncio.run(_on_ray(folder, url, count)))
    wall = [statistics.median(seconds for seconds, _ in side) for side in (there, here)]
    cpu = [statistics.median(spent for _, spent in side) / count * 1e3 for side in (there, here)]
    name = f"cluster of {EVALUATORS} evaluators, {count:,} questions, {LIMIT} at once"
    yield Row(name, wall[0], wall[1], "one process", wall[1] / wall[0], "s", count, 3)
    yield Row(
        f"{name}: CPU a question, all of Ray", cpu[0], cpu[1], "one process", cpu[1] / cpu[0], "ms", count, 3
    )


async def _in_process(folder: str, url: str, count: int) -> tuple[float, float]:
    async with open_evaluator(_config(folder, url)) as evaluator:
        return await _timed(evaluator, count)


async def _on_ray(folder: str, url: str, count: int) -> tuple[float, float]:
    async with open_cluster(_config(folder, url)) as cluster:
        while len(cluster.evaluators) < EVALUATORS:
            await asyncio.sleep(0.1)
        return await _timed(cluster, count)


def _cost(quick: bool) -> Iterator[Row]:
    found: dict[int, float] = {}
    memory: dict[int, int] = {}
    for count in (1_000, 10_000, 100_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder, rare_collections():
            began = time.perf_counter()
            memory[count] = asyncio.run(_ask(folder, count))
            found[count] = (time.perf_counter() - began) / count * 1e6
        yield alone(f"cost a question, scripted judge, {count:,}", found[count], "us", n=count)
    largest = max(found)
    yield Row(
        f"cost a question at {largest:,}", found[largest], found[10_000], "at 10,000", found[10_000] / found[largest],
        "us", largest, 1,
    )  # fmt: skip
    yield alone(
        f"resident memory, {largest:,} less 100,000", (memory[largest] - memory[100_000]) / 2**20, "MB"
    )


async def _ask(folder: str, count: int) -> int:
    """Ask `count` questions, 256 at once; the peak of resident memory so far, in bytes."""
    book = PromptBook()
    store = JudgmentStore(Place.of(folder), flush_seconds=30.0)
    await store.parts.open()
    judge = ScriptedJudge(lambda question: Verdict(analysis="because", verdict="supported"))
    asker = Asker(judge, store, book)
    work = iter(range(0, count, 1000))

    async def worker() -> None:
        for first in work:
            for question in questions(1000):
                await asker.ask(question, repeat=first // 1000)

    await asyncio.gather(*(worker() for _ in range(16)))
    await store.parts.close()
    assert store.parts.written == count
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(__doc__, rows)
