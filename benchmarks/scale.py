"""The cluster beside one process, the cost of questions by the thousand and the million, and simulated routing.

    python -m benchmarks.scale [--quick] [--json] [--only WORDS]

Rows `routing ...` come from benchmarks.routing, which holds the constants; their peers are other routing methods. Rows
`cluster ...` compare the same cases in this process and on a small local Ray cluster, excluding its start; the judge is
a server with 200 ms latency in its own process. Rows `cost ...` and `memory ...` measure the whole engine including its
store, with a scripted judge that takes no time, in one process and on a small Ray cluster; reports stay in the user's
files, not in memory.
"""

import asyncio
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.cluster.driver import open_cluster
from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.evaluation.memory import rare_collections
from adjudge.scoring.contract.case import Case, Report, Task
from benchmarks.judge_server import judge_server
from benchmarks.orchestration import LIMIT
from benchmarks.routing import POLICIES, WORKLOADS, Outcome, simulate
from benchmarks.scripted import scripted
from benchmarks.timing import QUICK_RUNS, RUNS, Row, alone, main
from tests.chaos import children, command
from tests.worlds import CRITERIA

QUESTIONS_A_CASE = len(CRITERIA)
EVALUATORS = 2
INDEX_BYTES = 16  # a row
EVERY = 1_000  # questions from one look at the memory to the next
SMALL = 10_000  # questions in the run that one of a million is compared with
ROUNDS = 3  # of three minutes each


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterable[Row]:
    yield from _routing(quick, wanted)
    if wanted("cluster"):
        yield from _cluster(quick)
    if wanted("cost memory"):
        yield from _cost(quick)


def _routing(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    for replicas in (16,) if quick else (1, 4, 16, 64, 256):
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


_UNASKED = "http://127.0.0.1:9/v1"  # a scripted judge answers in its place


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
    if b"judge_server" in command(process):
        return 0.0
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_cpu, children(process)))


def _cluster(quick: bool) -> Iterator[Row]:
    count = 2_500 if quick else 20_000
    here: list[tuple[float, float]] = []
    there: list[tuple[float, float]] = []
    with judge_server() as url, rare_collections():
        for _ in range(1 if quick else RUNS):  # starting Ray takes longer than 2,500 questions
            with tempfile.TemporaryDirectory() as folder:
                here.append(asyncio.run(_in_process(folder, url, count)))
            with tempfile.TemporaryDirectory() as folder:
                there.append(asyncio.run(_on_ray(folder, url, count)))
    wall = [statistics.median(seconds for seconds, _ in side) for side in (there, here)]
    cpu = [statistics.median(spent for _, spent in side) / count * 1e3 for side in (there, here)]
    name = f"cluster of {EVALUATORS} evaluators, {count:,} questions, {LIMIT} at once"
    yield Row(name, wall[0], wall[1], "one process", wall[1] / wall[0], "s", count, len(here))
    yield Row(
        f"{name}: CPU a question, all of Ray",
        cpu[0],
        cpu[1],
        "one process",
        cpu[1] / cpu[0],
        "ms",
        count,
        len(here),
    )
    yield alone(
        f"{name}: CPU a question beyond one process's", cpu[0] - cpu[1], "ms", n=count, runs=len(here)
    )


async def _in_process(folder: str, url: str, count: int) -> tuple[float, float]:
    async with open_evaluator(_config(folder, url)) as evaluator:
        return await _timed(evaluator, count)


async def _on_ray(folder: str, url: str, count: int) -> tuple[float, float]:
    async with open_cluster(_config(folder, url)) as cluster:
        while len(cluster.evaluators) < EVALUATORS:
            await asyncio.sleep(0.1)
        return await _timed(cluster, count)


class Spent(msgspec.Struct, frozen=True):
    """What runs took, in seconds, and the resident bytes of each process at a tenth of the last and at its end.

    They are means of the twentieth of the questions before: a process holds more or less by 40 MB as it writes a part.
    """

    wall: float
    cpu: float
    tenth: dict[str, float]
    end: dict[str, float]


def _cost(quick: bool) -> Iterator[Row]:
    others, largest = ((), 30_000) if quick else ((1_000, 100_000), 1_000_000)
    run = partial(_scripted_here, lasting=largest // 10)
    here: dict[int, list[Spent]] = {count: [] for count in sorted((*others, SMALL, largest))}
    for _ in range(QUICK_RUNS if quick else ROUNDS):
        # Small runs before and after a large one, and as long: a slow minute of the processor is slow for both.
        small = [SMALL] * (1 if quick else 5)
        for count in (*others, *small, largest, *small):
            here[count].append(_apart(run, count))
    there = {} if quick else {largest: [_apart(_scripted_on_ray, largest)]}
    for how, spent in (("one process", here), ("cluster", there)):
        for count, runs in spent.items():
            name = f"cost a question, scripted judge, {how}, {count:,}"
            yield alone(f"{name}: CPU", _mean("cpu", runs, count), "us", n=count, runs=len(runs))
            yield alone(f"{name}: wall", _mean("wall", runs, count), "us", n=count, runs=len(runs))
    long, short = _mean("cpu", here[largest], largest), _mean("cpu", here[SMALL], SMALL)
    name = f"cost a question at {largest:,}: CPU"
    yield Row(name, long, short, "at 10,000", short / long, "us", largest, len(here[largest]))
    for runs in (here[largest], *there.values()):
        for process in sorted(runs[0].end):
            grown = statistics.fmean(one.end[process] - one.tenth[process] for one in runs) / 2**20
            name = f"memory, {process}, {largest:,} less {largest // 10:,}"
            yield alone(name, grown, "MB", n=largest, runs=len(runs))
    index = (largest - largest // 10) * INDEX_BYTES / 2**20
    yield alone(
        f"memory, of which key indices, all together, {largest:,} less {largest // 10:,}", index, "MB"
    )


def _mean(what: str, runs: list[Spent], count: int) -> float:
    """Microseconds a question. A median would spare short runs the slow minutes that a long run holds."""
    return statistics.fmean(getattr(one, what) for one in runs) / count * 1e6


def _apart(run: Callable[[str, int], Coroutine[Any, Any, Spent]], count: int) -> Spent:
    """`run` in a process of its own, after a small one that loads all code."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (run, count))


def _run(run: Callable[[str, int], Coroutine[Any, Any, Spent]], count: int) -> Spent:
    with rare_collections(), tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(folder, count))


async def _scripted_here(folder: str, count: int, lasting: int) -> Spent:
    """Runs of `count` questions, of at least `lasting` together: the processor's speed differs from one to the next."""
    spent = []
    for number, size in enumerate([1_000] + [count] * max(1, lasting // count)):
        async with open_evaluator(_config(f"{folder}/{number}", _UNASKED), judge=scripted) as evaluator:
            spent.append(await _scored(evaluator, size, lambda: {"the process": os.getpid()}))
    wall, cpu = (
        statistics.fmean(taken) for taken in zip(*((one.wall, one.cpu) for one in spent[1:]), strict=True)
    )
    return Spent(wall, cpu, spent[-1].tenth, spent[-1].end)


async def _scripted_on_ray(folder: str, count: int) -> Spent:
    def processes() -> dict[str, int]:
        workers = filter(lambda pid: b"ray::EvaluatorActor" in command(pid), _below(os.getpid()))
        return {"driver": os.getpid()} | {f"evaluator {n}": pid for n, pid in enumerate(sorted(workers))}

    async with open_cluster(_config(folder, _UNASKED), scripted) as cluster:
        while len(cluster.evaluators) < EVALUATORS:
            await asyncio.sleep(0.1)
        return await _scored(cluster, count, processes)


async def _scored(evaluator: Any, count: int, processes: Callable[[], dict[str, int]]) -> Spent:
    cpu, began, scored = _cpu(os.getpid()), time.perf_counter(), 0
    watched = processes()
    looks: dict[int, list[dict[str, int]]] = {count // 10: [], count: []}
    async for card in evaluator.run(cases(count)):
        assert card.status == "scored"
        scored += QUESTIONS_A_CASE
        if scored % EVERY < QUESTIONS_A_CASE:
            for until, found in looks.items():
                if until - count // 20 < scored <= until:
                    found.append({name: _resident(pid) for name, pid in watched.items()})
    if isinstance(evaluator, Evaluator):  # a cluster hands out what is written
        await evaluator.flush()
    wall = time.perf_counter() - began
    return Spent(wall, _cpu(os.getpid()) - cpu, *map(_resident_on_average, looks.values()))


def _resident_on_average(looks: list[dict[str, int]]) -> dict[str, float]:
    return {name: statistics.fmean(one[name] for one in looks) for name in looks[0]} if looks else {}


def _resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


def _below(process: int) -> Iterator[int]:
    for child in children(process):
        yield child
        yield from _below(child)


if __name__ == "__main__":
    main(__doc__, rows)
