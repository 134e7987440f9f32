"""The `openai` judge before a real vLLM server: a tiny model with random weights, one server for all tests."""

import asyncio
import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow.parquet as pq
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client.parser import text_string_to_metric_families

from adjudge.judges import Question, Reply
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.server import OpenAIConfig
from adjudge.scoring.deepresearch_bench.fact_questions import CitedBy
from adjudge.scoring.livedrbench.claims import ReadAnswer
from tests import local_vllm
from tests.examples import shipped
from tests.examples_of_questions import example, question_types
from tests.local_vllm import Server
from tests.sized_questions import Long, asked, fits_schema, quick, report
from tests.worlds import ADJUDGE, world

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
]

EXAMPLE = shipped("quickstart") / "adjudge.yaml"
ALWAYS_UNSCORED = 3  # scorecards of the example under any judge: one task has no reference
QUEUE = 150  # more than the example ever asks at once


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with local_vllm.server("--max-num-queued-reqs", str(QUEUE)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def judge(server: Server) -> AsyncIterator[OpenAIJudge]:
    """A judge with its own connections: the server closes those that were idle for long."""
    made = judge_of(server)
    yield made
    await made.close()


def judge_of(server: Server, **settings: Any) -> OpenAIJudge:
    config = OpenAIConfig(url=server.url, model="judge", **{"retries": 0, **settings})
    return OpenAIJudge(config, local_vllm.BOOK, local_vllm.SECRET)


async def answers(judge: OpenAIJudge, questions: list[Question[Any]]) -> list[Reply[Any]]:
    return await asyncio.gather(*(judge.answer(q, asked(n)) for n, q in enumerate(questions)))


def at_work(judge: OpenAIJudge, name: str) -> list[asyncio.Task[Reply[Any]]]:
    """Start enough long questions about the report `name` to keep the server busy for seconds."""
    questions = [Long(context=report(name), topic=str(n)) for n in range(24)]
    return [asyncio.create_task(judge.answer(question, asked(n))) for n, question in enumerate(questions)]


@contextlib.contextmanager
def stopped(server: Server) -> Iterator[int]:
    """The process id of the server's engine, stopped while the block lasts."""
    engine = server.engine_process()
    os.kill(engine, signal.SIGSTOP)
    try:
        yield engine
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(engine, signal.SIGCONT)


async def post(server: Server, path: str, body: dict[str, Any]) -> None:
    async with (
        aiohttp.ClientSession(raise_for_status=True) as client,
        client.post(f"{server.root}{path}", json=body) as response,
    ):
        await response.read()


async def metric(server: Server, name: str, **labels: str) -> float:
    """The sum over a metric's samples that have `labels`."""
    async with aiohttp.ClientSession() as client, client.get(f"{server.root}/metrics") as response:
        families = text_string_to_metric_families(await response.text())
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def running(server: Server) -> float:
    return await metric(server, "vllm:num_requests_running")


async def finished(server: Server) -> float:
    """The number of requests that ended normally."""
    return await metric(server, "vllm:request_success_total")


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(120):
        while not await condition():
            await asyncio.sleep(0.05)


async def test_every_question_type_is_answered_within_its_schema(judge: OpenAIJudge) -> None:
    questions = [example(kind, language) for kind in question_types() for language in ("en", "zh")]
    replies = await answers(judge, questions)
    for question, reply in zip(questions, replies, strict=True):
        assert reply.finish_reason.partition(":")[0] == "stop", (question, reply)
        assert fits_schema(question, reply.text), (question, reply)
        # No schema can require JSON inside a string, nor that a source exists; random weights do not see to it.
        if not isinstance(question, ReadAnswer | CitedBy):
            assert reply.answer is not None, (question, reply)
        assert reply.usage.cached_tokens < reply.usage.prompt_tokens
        assert reply.usage.completion_tokens > 0
    assert all(form.constrained for form in judge._requests._forms.values())
    assert sum(reply.usage.cached_tokens > 0 for reply in replies) > len(replies) / 2


async def test_answer_cut_off_twice_is_truncated(server: Server) -> None:
    made, question = judge_of(server), Long(context=report("cut"), topic="cut")
    made._requests.form(question).budgets = (20, 30)
    [reply] = await answers(made, [question])
    await made.close()
    assert (reply.reason, reply.finish_reason) == ("answer_truncated", "length (20), length (30)")
    assert reply.usage.completion_tokens == 50


async def test_context_beyond_the_window_is_an_overflow(judge: OpenAIJudge) -> None:
    [reply] = await answers(judge, [quick(report("long", 3_000), 0)])
    assert reply.reason == "context_overflow", reply
    assert "context length" in reply.text


async def test_full_server_is_unavailable_and_answers_a_retry(server: Server) -> None:
    made, patient = judge_of(server, max_in_flight=1_000), judge_of(server, retries=20, max_in_flight=1_000)
    context, extra = report("full"), 10
    questions = [quick(context, n) for n in range(QUEUE + extra)]
    await post(server, "/pause?mode=keep", {})
    tasks = [asyncio.ensure_future(made.answer(q, asked(n))) for n, q in enumerate(questions)]
    while sum(task.done() for task in tasks) < extra:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0.05)
    again = asyncio.ensure_future(
        answers(patient, [q for q, t in zip(questions, tasks, strict=True) if t.done()])
    )
    await post(server, "/resume", {})
    reasons = Counter(reply.reason for reply in await asyncio.gather(*tasks))
    assert reasons == {None: QUEUE, "judge_unavailable": extra}
    assert all(reply.answer is not None for reply in await again)
    await made.close()
    await patient.close()


async def test_abort_inside_the_server_is_unavailable(server: Server, judge: OpenAIJudge) -> None:
    waiting = at_work(judge, "abort")
    while not any(task.done() for task in waiting):  # requests on their way to the engine are not aborted
        await post(server, "/abort_requests", {})
        await asyncio.sleep(0.05)
    reasons = {reply.reason for reply in await asyncio.gather(*waiting)}
    assert "judge_unavailable" in reasons and reasons <= {None, "judge_unavailable"}


async def test_cancelled_and_expired_questions_are_aborted(server: Server, judge: OpenAIJudge) -> None:
    before = await finished(server)
    with stopped(server):
        waiting = at_work(judge, "cancel")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(judge.answer(Long(context=report("late"), topic="late"), asked()), 0.3)
        hasty = judge_of(server, timeout_s=0.3)
        slow = await hasty.answer(Long(context=report("slow"), topic="slow"), asked())
        await hasty.close()
        assert slow.reason == "judge_timeout"
        for task in waiting:
            task.cancel()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    after = await judge.answer(quick(report("after"), 0), asked())
    assert after.reason is None

    async def idle() -> bool:
        return not await running(server)

    await until(idle)
    assert await finished(server) == before + 1


async def test_sequential_questions_get_the_same_answers(server: Server, judge: OpenAIJudge) -> None:
    questions = [example(kind) for kind in question_types()[::8]]
    rounds = []
    for _ in range(2):
        await post(server, "/reset_prefix_cache", {})
        rounds.append([(await judge.answer(question, asked())).text for question in questions])
    assert rounds[0] == rounds[1]


@contextlib.asynccontextmanager
async def aborting_after(server: Server, some: int) -> AsyncIterator[str]:
    """The URL of a proxy to `server` that aborts the running requests, once, after `some` answers."""
    answered, aborted = 0, False

    async def forward(request: web.Request) -> web.Response:
        nonlocal answered, aborted
        sent = asyncio.create_task(send(request.method, request.path, await request.read()))
        while answered >= some and not aborted and not sent.done():
            await post(server, "/abort_requests", {})
            await asyncio.sleep(0.01)
        response = await sent
        answered += request.method == "POST"
        aborted = aborted or b'"finish_reason":"abort"' in (response.body or b"")
        return response

    async def send(method: str, path: str, body: bytes) -> web.Response:
        async with client.request(method, server.root + path, data=body) as response:
            found = await response.read()
        return web.Response(body=found, status=response.status, content_type=response.content_type)

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", forward)
    async with (
        aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as client,
        TestServer(app) as way,
    ):
        yield f"{way.make_url('/v1')}"
    assert aborted


async def test_evaluate_asks_again_what_a_server_aborted(server: Server, tmp_path: Path) -> None:
    """Requests that fail while others are answered are put back and asked again, in the same run."""
    async with aborting_after(server, 30) as url:

        async def evaluated() -> dict[str, Any]:
            process = await asyncio.create_subprocess_exec(
                *(*ADJUDGE, "evaluate", str(EXAMPLE), "--judge", f"openai:{url}#judge"),
                *("--out", str(tmp_path / "run"), "--store", str(tmp_path / "store"), "--json"),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, errors = await process.communicate()
            assert process.returncode == 3, errors.decode()  # the example has reports that cannot be scored
            found: dict[str, Any] = json.loads(out)
            return found

        first = await evaluated()
        reasons = Counter(pq.read_table(tmp_path / "store" / "judgments")["reason"].to_pylist())
        assert set(reasons) == {None} and reasons[None] > 30
        assert first["unscored"] == ALWAYS_UNSCORED

        second = await evaluated()
        assert (second["from_judge"], second["from_store"]) == (0, reasons[None])
        assert second["unscored"] == ALWAYS_UNSCORED


async def test_doctor_reports_that_the_server_answers(server: Server, tmp_path: Path) -> None:
    config = world(tmp_path, judge=f"openai:{server.url}#judge")
    process = await asyncio.create_subprocess_exec(
        *(*ADJUDGE, "doctor", str(config), "--json"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    found = {finding["what"]: finding["found"] for finding in json.loads(out)}
    assert process.returncode == 0
    assert found["judge"].startswith(f"{server.url} answered in ")
    assert found["vllm (optional)"][0].isdigit()


async def test_dead_engine_is_unavailable(server: Server, judge: OpenAIJudge) -> None:
    """The last test: this server answers nothing any more."""
    with stopped(server) as engine:
        waiting = at_work(judge, "dying")
        answered, _ = await asyncio.wait(waiting, timeout=1)
        assert not answered
        os.kill(engine, signal.SIGKILL)
        for reply in await asyncio.gather(*waiting):
            assert reply.reason == "judge_unavailable", reply
    after = await judge.answer(quick(report("dead"), 0), asked())
    assert after.reason == "judge_unavailable"
    await asyncio.to_thread(server.process.wait, 60)
