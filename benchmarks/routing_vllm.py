"""Two real vLLM servers with small prefix caches: our router beside round robin.

    python -m benchmarks.routing_vllm [--quick] [--json] [--only WORDS]

Run with the Python of a vLLM environment (make test-vllm creates one). Both sides use the same two servers of a tiny
model, whose caches hold two reports each. Every run has eight new reports, asked about report by report, or in turn,
one question per report after the other. The servers count the prompt tokens computed.
"""

import asyncio
import contextlib
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from adjudge.engine.evaluation.router import Router
from adjudge.judges import Asked, Context, Judge, Reply
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from benchmarks.prefix import WORDS, Points1
from benchmarks.timing import QUICK_RUNS, RUNS, Row, alone, main
from tests.local_vllm import server

REPORTS, CRITERIA = 8, 16
REPORT_WORDS = 5_000
IN_FLIGHT = 8  # at each server
SERVER = (
    "--max-model-len",
    "8192",
    "--num-gpu-blocks-override",
    "120",
    "--dtype",
    "bfloat16",
)  # of 128 tokens
BOOK = PromptBook()
_salt = itertools.count()

Order = Callable[[list[Points1]], list[Points1]]


def questions() -> list[Points1]:
    """About reports that no cache has seen, report by report."""
    salt = next(_salt)
    draw = random.Random(salt)
    found = []
    for report in range(REPORTS):
        text = f"Report {salt}.{report}. {' '.join(draw.choices(WORDS, k=REPORT_WORDS))}"
        context = Context.of(report=text)
        found += [
            Points1(context=context, task="Bikes?", criterion=f"It names fact {i}.", values=(0.0, 1.0, 2.0))
            for i in range(CRITERIA)
        ]
    return found


def by_report(asked: list[Points1]) -> list[Points1]:
    return asked


def in_turn(asked: list[Points1]) -> list[Points1]:
    return [question for first in range(CRITERIA) for question in asked[first::CRITERIA]]


class RoundRobin:
    """One judge after the other."""

    def __init__(self, judges: list[Judge]) -> None:
        self._judges = itertools.cycle(judges)

    async def answer(self, question: Points1, asked: Asked) -> Reply[Any]:
        return await next(self._judges).answer(question, asked)


def ask(urls: list[str], routed: bool, order: Order) -> tuple[float, float]:
    """Judgments a second, and prompt tokens that the servers computed for each."""

    async def run() -> tuple[float, float]:
        judges: dict[str, Judge] = {
            url: OpenAIJudge(
                OpenAIConfig(url=url, model="judge", max_in_flight=IN_FLIGHT, timeout_s=3600, retries=0),
                BOOK,
                b"benchmark",
            )
            for url in urls
        }
        judge = Router(judges) if routed else RoundRobin(list(judges.values()))
        asked = order(questions())
        began = time.perf_counter()
        replies = await asyncio.gather(*(judge.answer(one, Asked(key=bytes(16))) for one in asked))
        rate = len(replies) / (time.perf_counter() - began)
        await asyncio.gather(*(one.close() for one in judges.values()))
        assert all(reply.answer is not None for reply in replies), replies[0]
        usages = [reply.usage for reply in replies]
        computed = sum(usage.prompt_tokens - usage.cached_tokens for usage in usages)
        return rate, computed / len(replies)

    return asyncio.run(run())


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterable[Row]:
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(server(*SERVER)).url for _ in range(2)]
        ask(urls, True, by_report)
        for name, order in (("report by report", by_report), ("reports in turn", in_turn)):
            name = f"two vLLM servers, 8 x {CRITERIA}, {name}"
            if wanted(name):
                yield from _compare(name, urls, order, QUICK_RUNS if quick else RUNS)


def _compare(name: str, urls: list[str], order: Order, runs: int) -> Iterator[Row]:
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for run in range(runs):
        for routed in (True, False) if run % 2 == 0 else (False, True):
            found[routed].append(ask(urls, routed, order))
    ours, peer = (statistics.median(rate for rate, _ in found[routed]) for routed in (True, False))
    n = REPORTS * CRITERIA
    yield Row(name, ours, peer, "round robin", ours / peer, "judgments/s", n, runs)
    for routed, who in ((True, "ours"), (False, "round robin")):
        tokens = statistics.median(computed for _, computed in found[routed])
        yield alone(f"{name}: prompt tokens computed, {who}", tokens, "a judgment", n=n, runs=runs)


if __name__ == "__main__":
    main(__doc__, rows)
