"""Questions through the engine to a server with 200 ms latency, beside a bare HTTP loop.

    python -m benchmarks.orchestration [--quick] [--json] [--only WORDS]

Our side is the whole path of a question: key, store, single flight, judge, reply, Parquet part. The server runs in its
own process. The peer sends the same questions and stores nothing: an aiohttp loop with the same concurrency limit.
`benchmarks.peers` measures complete tools.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import aiohttp
import msgspec

from adjudge.engine.evaluation.asker import Asker
from adjudge.engine.evaluation.memory import rare_collections
from adjudge.engine.store import JudgmentStore, Place
from adjudge.judges import Answer, Context, Question
from adjudge.judges.completions import Requests
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from benchmarks.judge_server import judge_server
from benchmarks.timing import Row, alone, compare, main

LIMIT = 256
QUESTIONS_A_PAGE = 10
PAGE_CHARS = 2_400  # bodies of about 4 KB


class Verdict(Answer, frozen=True, kw_only=True):
    """What a page says about a statement."""

    analysis: Annotated[str, msgspec.Meta(max_length=300)] = ""
    verdict: Literal["supported", "unsupported", "unknown"]


class Check(Question[Verdict], frozen=True, kw_only=True):
    """Whether the page supports one statement."""

    prompt = "probe"
    answer = Verdict
    statement: str


def questions(count: int) -> list[Check]:
    """`count` different questions, ten about each page."""
    found: list[Check] = []
    for page in range(count // QUESTIONS_A_PAGE):
        context = Context.of(page=f"Page {page}. " + "The sea is deep. " * (PAGE_CHARS // 17))
        found += [Check(context=context, statement=f"Statement {i}.") for i in range(QUESTIONS_A_PAGE)]
    return found


class Side:
    """The cost of one side's work: client CPU seconds, peak concurrency at the server, seconds in flight."""

    def __init__(self, url: str, work: Callable[[], float]) -> None:
        self._stats = url.replace("/v1", "/stats")
        self._work = work
        self.cpu: list[float] = []
        self.peak: list[int] = []
        self.in_flight: list[float] = []

    def __call__(self) -> None:
        asyncio.run(self._fetch_stats("DELETE"))
        cpu, wall = time.process_time(), time.perf_counter()
        waited = self._work()
        self.in_flight.append(waited / (time.perf_counter() - wall))
        self.cpu.append(time.process_time() - cpu)
        self.peak.append(asyncio.run(self._fetch_stats("GET"))["peak"])

    async def _fetch_stats(self, method: str) -> dict[str, int]:
        async with aiohttp.ClientSession() as client, client.request(method, self._stats) as response:
            stats: dict[str, int] = await response.json()
            return stats


def through_engine(url: str, asked: Sequence[Question[Any]]) -> float:
    """Ask everything into a fresh store; the seconds that requests were in flight."""

    async def run(folder: str) -> float:
        book = PromptBook()
        judge = OpenAIJudge(OpenAIConfig(url=url, model="mock", max_in_flight=LIMIT), book, b"secret")
        store = JudgmentStore(Place.of(folder))
        await store.open()
        asker = Asker(judge, store, book)
        judgments = await asyncio.gather(*(asker.ask(question) for question in asked))
        await judge.close()
        await store.close()
        assert all(judgment.answer is not None for judgment in judgments)
        assert store.written == len(asked)
        return sum(judgment.seconds for judgment in judgments)

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(folder))


def bare_loop(url: str, bodies: list[bytes]) -> float:
    """Send everything; the seconds that requests were in flight."""

    async def run() -> float:
        slots = asyncio.Semaphore(LIMIT)
        connector = aiohttp.TCPConnector(limit=LIMIT)

        async with aiohttp.ClientSession(connector=connector) as client:

            async def one(body: bytes) -> float:
                async with slots:
                    began = time.perf_counter()
                    async with client.post(f"{url}/chat/completions", data=body) as response:
                        reply = msgspec.json.decode(await response.read())
                    assert reply["choices"][0]["message"]["content"]
                    return time.perf_counter() - began

            return sum(await asyncio.gather(*map(one, bodies)))

    return asyncio.run(run())


def bodies_of(asked: list[Check]) -> list[bytes]:
    """The very bodies that ours sends."""
    requests = Requests(PromptBook(), b"secret", model="mock", temperature=0.0, thinking_tokens=0)
    return [
        requests.body(question, form, 1, form.budgets[0], constrained=True)
        for question, form in zip(asked, map(requests.form, asked), strict=True)
    ]


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterable[Row]:
    with judge_server() as url, rare_collections():  # as in every run; for both sides
        yield from _beside_bare_loop(url, quick, wanted)


def _beside_bare_loop(url: str, quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    count = 2_500 if quick else 20_000
    name = f"{count:,} questions with store, {LIMIT} at once"
    if not wanted(name):
        return
    asked = questions(count)
    bodies = bodies_of(asked)
    ours = Side(url, lambda: through_engine(url, asked))
    bare = Side(url, lambda: bare_loop(url, bodies))
    yield compare(name, ours, bare, peer_name="bare aiohttp loop", n=count, quick=quick)
    yield alone(
        "concurrency achieved: peak at the server", min(ours.peak), "requests", n=count, runs=len(ours.peak)
    )
    yield alone("concurrency achieved: mean at the client", min(ours.in_flight), "requests", n=count)
    for side, who in ((ours, "ours, with store"), (bare, "bare aiohttp loop")):
        milliseconds = sorted(side.cpu)[len(side.cpu) // 2] / count * 1e3
        yield alone(f"CPU a question: {who}", milliseconds, "ms", n=count, runs=len(side.cpu))


if __name__ == "__main__":
    main(__doc__, rows)
