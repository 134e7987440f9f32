"""Rewards for GRPO-like batches, beside the ways that trainers' own reward functions call a judge.

    python -m benchmarks.rewards [--quick] [--json] [--only WORDS]

64 prompts x 8 rollouts x 20 rubrics with a judge that takes 200 ms and 256 questions at once: the judge-bound optimum
is calls x latency / 256. Our side is `RewardModel` with its store; every run has new reports. The peers send the same
requests to the same judge: one after the other; one asyncio coroutine per rollout; blocking functions in ten
processes. The slow peers do part of the work and are compared with ours on the same part. In rows `own rubrics` each
rollout brings 20 rubrics of its own instead of naming a task. In rows `a deadline ...` the judge fails.
"""

import asyncio
import contextlib
import multiprocessing
import shutil
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.memory import rare_collections
from adjudge.engine.rewards.model import RewardModel
from adjudge.judges import Context
from adjudge.judges.chat import secret_from_environment
from adjudge.judges.completions import Requests
from adjudge.prompts import PromptBook
from adjudge.scoring.rubrics.asking import RubricPoints
from benchmarks.timing import Row, alone, compare, main
from tests.reward_server import judge_server

LATENCY = 0.2
LIMIT = 256
PROCESSES = 10
RUBRICS, QUICK_RUBRICS = 20, 6  # quick: where the peer asks for one after the other
ROLLOUTS = 8
CHARS = 3_000

Requested = list[list[bytes]]  # for each rollout, the bodies of its questions


class Work:
    """`prompts` x `rollouts` x `rubrics` for one judge: as items for ours, as requests for the peers."""

    def __init__(self, judge: dict[str, Any], prompts: int, rollouts: int, rubrics: int, words: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="adjudge-rewards-"))
        self.calls = prompts * rollouts * rubrics
        self.criteria = [f"The report weighs point {n} against its costs." for n in range(rubrics)]
        gold = [{"criterion": criterion, "points": 1.0} for criterion in self.criteria]
        tasks = [
            {"id": str(n), "prompt": f"Compare plan {n}.", "gold": {"rubrics": gold}} for n in range(prompts)
        ]
        (self.folder / "tasks.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, tasks)))
        self._settings = {
            "tasks": str(self.folder / "tasks.jsonl"),
            "protocols": ["rubrics"],
            "judge": {"backend": "openai", "retries": 0, **judge},
            "fetch": {"mode": "off"},
            "reward": {"metric": "score_clipped", "deadline_s": 3600},
        }
        self._model_name = judge["model"]
        self._shape = (prompts, rollouts, words)
        self._round = 0
        self.cpu: list[float] = []

    def items(self) -> list[dict[str, Any]]:
        """New rollouts, so that neither a store nor a cache knows them."""
        self._round += 1
        prompts, rollouts, words = self._shape
        return [
            {"task_id": str(p), "text": _report(f"{self._round} {p} {r}", words), "sample": r}
            for p in range(prompts)
            for r in range(rollouts)
        ]

    def own_items(self) -> list[dict[str, Any]]:
        """`items` without tasks, each with rubrics that no other has."""
        return [
            {
                "prompt": f"Compare plan {item['task_id']}.",
                "text": item["text"],
                "rubrics": [
                    {"criterion": f"{criterion} ({self._round} {place})", "points": 1.0}
                    for criterion in self.criteria
                ],
            }
            for place, item in enumerate(self.items())
        ]

    @cached_property
    def model(self) -> RewardModel:
        """Ours, open as in a training run."""
        return RewardModel(RunConfig.of({**self._settings, "store": str(self.folder / "store")}))

    def requests(self) -> Requested:
        """The very bodies that ours would send for `items`."""
        made = Requests(
            PromptBook(),
            secret_from_environment(),
            model=self._model_name,
            temperature=0.0,
            thinking_tokens=0,
        )
        found = []
        for item in self.items():
            context = Context.of(report=item["text"])
            questions = [
                RubricPoints(
                    context=context,
                    task=f"Compare plan {item['task_id']}.",
                    criterion=criterion,
                    values=(0.0, 1.0),
                )
                for criterion in self.criteria
            ]
            forms = zip(questions, map(made.form, questions), strict=True)
            found.append([made.body(q, form, 1, form.budgets[0], constrained=True) for q, form in forms])
        return found

    def close(self) -> None:
        self.model.close()
        shutil.rmtree(self.folder)


def _report(name: str, words: int) -> str:
    body = "The plan costs less than it saves, as the measured flows of the year before show. "
    return f"Report {name}.\n\n" + "".join(f"{n}. {body}" for n in range(words // 16))


def as_batch(work: Work, own: bool = False) -> None:
    items = work.own_items() if own else work.items()
    began = time.process_time()
    rewards = work.model.score_sync(items)
    work.cpu.append(time.process_time() - began)
    assert all(reward.value is not None for reward in rewards)


def one_by_one(url: str, requested: Requested) -> None:
    for body in (body for rollout in requested for body in rollout):
        request = urllib.request.Request(
            f"{url}/chat/completions", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as reply:
            assert reply.status == 200


def naive_asyncio(url: str, requested: Requested, limit: int, at_once: bool) -> None:
    """One coroutine per rollout, which asks its rubrics one after another, or `at_once`."""

    async def run() -> None:
        slots = asyncio.Semaphore(limit)
        headers = {"Content-Type": "application/json"}
        connector = aiohttp.TCPConnector(limit=limit)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:

            async def ask(body: bytes) -> None:
                async with slots, session.post(f"{url}/chat/completions", data=body) as reply:
                    assert reply.status == 200, await reply.text()
                    await reply.json()

            async def reward(bodies: list[bytes]) -> None:
                if at_once:
                    await asyncio.gather(*map(ask, bodies))
                else:
                    for body in bodies:
                        await ask(body)

            await asyncio.gather(*map(reward, requested))

    asyncio.run(run())


def _blocking(arguments: tuple[str, list[bytes]]) -> None:
    one_by_one(arguments[0], [arguments[1]])


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterable[Row]:
    with rare_collections():
        yield from _mock_rows(quick, wanted)
        if wanted("deadline"):
            yield from _deadlines(8 if quick else 64, 1.0 if quick else 2.0)


@contextlib.contextmanager
def working(judge: dict[str, Any], *shape: int) -> Iterator[Work]:
    """`Work` of this `shape` before `judge`, closed at the end."""
    work = Work(judge, *shape)
    try:
        yield work
    finally:
        work.close()


def _mock_rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    words = CHARS // 6
    with judge_server(LATENCY) as url:
        judge = {"url": url, "model": "mock", "max_in_flight": LIMIT}
        prompts = 8 if quick else 64
        name = f"{prompts} x {ROLLOUTS} x {RUBRICS} rubrics"
        if wanted(f"{name} naive asyncio optimum"):
            with working(judge, prompts, ROLLOUTS, RUBRICS, words) as work:
                requested = work.requests()
                row = compare(
                    name,
                    lambda: as_batch(work),
                    lambda: naive_asyncio(url, requested, LIMIT, at_once=True),
                    peer_name="naive asyncio (b)",
                    n=work.calls,
                    quick=quick,
                )
                yield row
                optimum = work.calls * LATENCY / LIMIT
                yield alone(
                    "share of the judge-bound optimum", optimum / row.ours, "", n=work.calls, runs=row.runs
                )
                cpu = statistics.median(work.cpu) / work.calls * 1e3
                yield alone("CPU a question, ours", cpu, "ms", n=work.calls, runs=row.runs)
                yield alone(
                    "rewards a second", prompts * ROLLOUTS / row.ours, "1/s", n=work.calls, runs=row.runs
                )
        if wanted("own rubrics"):
            yield from _own_rubrics(judge, prompts, words, 3 if quick else 5)
        if wanted("single-sample calls p50 p95 p99"):
            yield from _single_calls(judge, prompts, words)
        if wanted("10 processes blocking"):
            few, rubrics = (1, QUICK_RUBRICS) if quick else (4, RUBRICS)
            with (
                working(judge, few, ROLLOUTS, rubrics, words) as work,
                multiprocessing.get_context("spawn").Pool(PROCESSES) as pool,
            ):
                asked = [(url, bodies) for bodies in work.requests()]
                pool.map(_blocking, [(url, asked[0][1][:1])] * PROCESSES, chunksize=1)
                yield compare(
                    f"{few} x {ROLLOUTS} x {rubrics} rubrics",
                    lambda: as_batch(work),
                    lambda: pool.map(_blocking, asked, chunksize=1),
                    peer_name=f"{PROCESSES} processes, blocking (c)",
                    n=work.calls,
                    quick=quick,
                )
        if wanted("one by one"):
            rollouts, rubrics = (1, QUICK_RUBRICS) if quick else (2, RUBRICS)
            with working(judge, 1, rollouts, rubrics, words) as work:
                requested = work.requests()
                yield compare(
                    f"1 x {rollouts} x {rubrics} rubrics",
                    lambda: as_batch(work),
                    lambda: one_by_one(url, requested),
                    peer_name="one by one (a)",
                    n=work.calls,
                    quick=quick,
                )


def _own_rubrics(judge: dict[str, Any], prompts: int, words: int, runs: int) -> Iterator[Row]:
    """The median of some runs in which every rollout brings rubrics of its own."""
    with working(judge, prompts, ROLLOUTS, RUBRICS, words) as work:
        as_batch(work, own=True)
        work.cpu.clear()
        took = []
        for _ in range(runs):
            began = time.perf_counter()
            as_batch(work, own=True)
            took.append(time.perf_counter() - began)
        share = work.calls * LATENCY / LIMIT / statistics.median(took)
        cpu = statistics.median(work.cpu) / work.calls * 1e3
        name = f"{prompts * ROLLOUTS} rollouts with own rubrics"
        yield alone(f"share of the judge-bound optimum, {name}", share, "", n=work.calls, runs=runs)
        yield alone(f"CPU a question, {name}", cpu, "ms", n=work.calls, runs=runs)


def _single_calls(judge: dict[str, Any], prompts: int, words: int) -> Iterator[Row]:
    """How long a call for one rollout takes when all are made at once, as by verl."""
    with working(judge, prompts, ROLLOUTS, RUBRICS, words) as work:
        model = work.model
        items = work.items()

        async def run() -> list[float]:
            async def one(item: dict[str, Any]) -> float:
                began = time.perf_counter()
                (reward,) = await model.score([item])
                assert reward.value is not None
                return time.perf_counter() - began

            return sorted(await asyncio.gather(*map(one, items)))

        model.score_sync(items[:1])
        seconds = asyncio.run(run())
        for share in (50, 95, 99):
            at = seconds[min(len(seconds) * share // 100, len(seconds) - 1)]
            yield alone(f"{len(items)} single calls at once: p{share}", at, "s", n=len(items))
        yield alone(
            f"{len(items)} single calls at once: rewards a second",
            len(items) / seconds[-1],
            "1/s",
            n=len(items),
        )


def _deadlines(prompts: int, deadline: float) -> Iterator[Row]:
    """The seconds of a call with a deadline of `deadline` seconds, whatever the judge does: the longest of three."""
    with judge_server(LATENCY) as url:
        judges = {name: [url.replace("/v1", f"/{name}/v1")] for name in ("slow", "down", "garbage")}
        judges["half dead"] = [url, "http://127.0.0.1:9/v1"]
        for name, urls in judges.items():
            judge = {"urls": urls, "model": "mock", "max_in_flight": LIMIT, "retries": 5}
            with working(judge, prompts, ROLLOUTS, RUBRICS, CHARS // 6) as work:
                work.model.score_sync(work.items()[:1], deadline=0.1)
                took, reasons = [], set()
                for items in (work.items() for _ in range(3)):
                    began = time.perf_counter()
                    rewards = work.model.score_sync(items, deadline=deadline)
                    took.append(time.perf_counter() - began)
                    reasons |= {reward.reason or "scored" for reward in rewards}
                    assert all((reward.value is None) == (reward.reason is not None) for reward in rewards)
            label = f"a deadline of {deadline:g} s, judge {name} ({', '.join(sorted(reasons))})"
            yield alone(f"{label}: time over it", max(took) / deadline, "x", n=len(rewards), runs=3)


if __name__ == "__main__":
    main(__doc__, rows)
