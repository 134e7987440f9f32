"""What servers say of when to ask again, and failures that are those of one question."""

import asyncio
import json
import time
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.evaluation.gate import Gate, Patience, RunTrust
from adjudge.judges import Asked, Context, Reply
from adjudge.judges.completions import asked_wait, is_spent
from adjudge.judges.errors import JudgeError
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from tests.mock_openai import Call, Fault, MockOpenAI, refused
from tests.sized_questions import Check, Ready


def judge_of(url: str, **options: Any) -> OpenAIJudge:
    config = OpenAIConfig(url=url, model="judge-1", **{"retries": 2, "backoff_s": 0.02, **options})
    return OpenAIJudge(config, PromptBook(), b"a secret")


async def ask(judge: OpenAIJudge | Gate, page: str = "The sky is blue.") -> Reply[Ready]:
    return await judge.answer(Check(context=Context.of(page=page)), Asked(key=b"k" * 16))


@pytest.mark.parametrize(
    ("headers", "said", "wait"),
    [
        ({"retry-after": "7"}, "", 7),
        ({"retry-after-ms": "1500", "retry-after": "7"}, "", 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:20 GMT"}, "", 20),
        ({"x-ratelimit-reset-requests": "1m30s"}, "", 90),
        ({"x-ratelimit-reset-tokens": "250ms"}, "", 0.25),
        ({"x-ratelimit-reset-tokens": "9s", "x-ratelimit-remaining-tokens": "8000"}, "", None),
        ({"ratelimit-reset": "12"}, "", 12),
        ({}, "Please try again in 13.25s.", 13.25),
        ({}, "Try again in 300 ms", 0.3),
        ({}, "retry after 2 minutes", 120),
        ({}, '{"error": {"details": [{"retryDelay": "14s"}]}}', 14),
        ({}, '{"retry_after": 3.5}', 3.5),
        ({}, '{"Retry-After": 4}', 4),
        ({"ratelimit": '"default";r=0;t=9'}, "", 9),
        ({"ratelimit": '"default";r=5;t=9'}, "", None),
        (
            {},
            '{"error": {"message": "x", "metadata": {"headers": {"X-RateLimit-Reset": "20000000000000"}}}}',
            2e10,
        ),
        ({}, "Too many requests: 3 s", None),
        ({}, "", None),
    ],
)
def test_wait_is_read_in_its_forms(headers: dict[str, str], said: str, wait: float | None) -> None:
    assert asked_wait(headers, said.encode(), 0.0) == wait


@given(
    st.dictionaries(st.sampled_from(["retry-after-ms", "ratelimit-reset"]), st.text(max_size=40)), st.binary()
)
def test_no_hint_breaks_the_client(headers: dict[str, str], body: bytes) -> None:
    wait = asked_wait(headers, body, 1e9)
    assert wait is None or 0 <= wait <= 1e12


@pytest.mark.parametrize(
    ("said", "spent"),
    [
        ("You exceeded your current quota, please check your plan and billing details.", True),
        ("Your credit balance is too low", True),
        ("Rate limit exceeded: free-models-per-day", True),
        ("The daily limit of this key is reached", True),
        ("Quota of requests per minute reached", False),
        ("Too many requests", False),
    ],
)
def test_quota_is_told_from_a_limit_of_a_minute(said: str, spent: bool) -> None:
    assert is_spent(said) == spent


def once(response: web.Response) -> Fault:
    """A server whose first reply to a question is `response`."""
    answered: list[float] = []

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        answered.append(time.monotonic())
        return response if len(answered) == 1 else None

    return fault


async def test_wait_of_one_question_holds_for_all() -> None:
    async with MockOpenAI(fault=once(refused(429, "busy", retry_after_ms="700"))) as mock:
        judge = judge_of(mock.url)
        first = asyncio.ensure_future(ask(judge))
        await asyncio.sleep(0.2)
        started = time.monotonic()
        assert (await ask(judge, "Another page.")).answer is not None
        assert time.monotonic() - started > 0.3
        assert (await first).answer is not None
        await judge.close()
    assert mock.calls == 3


@pytest.mark.parametrize(
    "response",
    [
        refused(429, "You exceeded your current quota"),
        refused(429, "Daily limit reached", retry_after="86400"),
    ],
    ids=["quota", "a day"],
)
async def test_quota_ends_the_run_at_once(response: web.Response) -> None:
    said = bytes(response.body or b"")

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse:
        return web.Response(body=said, status=429, headers=response.headers)

    async with MockOpenAI(fault=fault) as mock:
        judge = judge_of(mock.url)
        with pytest.raises(JudgeError, match=r"429.*(quota|limit)"):
            await ask(judge)
        await judge.close()
    assert mock.calls == 1


def bad_for(word: str, status: int, said: str) -> Fault:
    """A server that fails for the questions with `word` in their prompt alone."""

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        return refused(status, said) if word.encode() in call.messages else None

    return fault


@pytest.mark.parametrize(
    ("status", "reason", "most"),
    [
        (403, "judge_refused", 1),
        (404, "judge_unavailable", 1),
        (500, "judge_unavailable", 4),
        (504, "judge_unavailable", 4),
    ],
)
async def test_question_that_fails_alone_stops_no_run(status: int, reason: str, most: int) -> None:
    lines: list[str] = []
    async with MockOpenAI(fault=bad_for("poison", status, "no")) as mock:
        judge = judge_of(mock.url)
        gate = Gate(judge, trust=RunTrust(judge, Patience(silence_s=30.0), lines.append))
        assert (await ask(gate)).answer is not None
        async with asyncio.timeout(20):
            reply = await ask(gate, "poison")
        assert (await ask(gate, "Another page.")).answer is not None
        await gate.close()
    assert reply.reason == reason
    assert mock.calls == most + 2
    assert not lines


async def test_question_of_a_sick_worker_is_asked_again() -> None:
    met = 0

    async def sick(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        nonlocal met
        met += b"unlucky" in call.messages
        return refused(500, "Internal error") if b"unlucky" in call.messages and met <= 3 else None

    async with MockOpenAI(fault=sick) as mock:
        judge = judge_of(mock.url)
        assert (await ask(judge)).answer is not None
        assert (await ask(judge, "unlucky")).answer is not None
        await judge.close()
    assert met == 4


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "JSON mode is not supported by this model"),
        (400, ""),
        (422, "No extra fields are allowed here"),
        (500, "Failed to compile the grammar"),
    ],
)
async def test_schema_that_is_refused_in_any_words_is_left_out(status: int, said: str) -> None:
    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        if call.constrained:
            return refused(status, said)
        text = json.dumps({"analysis": "", "ready": "yes"})
        return web.json_response({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})

    async with MockOpenAI(fault=fault) as mock:
        judge = judge_of(mock.url)
        for number in range(4):
            assert (await ask(judge, f"Page {number}.")).answer is not None
        await judge.close()
    assert mock.calls <= 6
