import asyncio
import logging
import pickle
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import aiohttp
import brotli
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.evaluation.asker import Asker
from adjudge.engine.store import JudgmentStore, Place
from adjudge.judges import Answer, Asked, Context, JudgeIdentity, Judgment, Media, Question, Reply
from adjudge.judges.completions import BrokenReply, completion
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import THINKING_TOKENS, Redaction, shown_url, storable
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.schema import json_schema, max_tokens, most_tokens
from adjudge.judges.server import MAX_BODY_BYTES, OpenAIConfig, backoff, unbrotlied, unpacked
from adjudge.prompts import PromptBook
from tests import mock_openai
from tests.mock_openai import MockOpenAI, first, raw, refused, replying


class Verdict(Answer, frozen=True, kw_only=True):
    analysis: Annotated[str, msgspec.Meta(max_length=300)] = ""
    items: dict[str, Literal["supported", "unsupported", "unknown"]]


class Check(Question[Verdict], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Verdict

    @property
    def count(self) -> int:
        return 3


SECRET = b"a secret"


def check(page: str = "The sky is blue.") -> Check:
    return Check(context=Context.of(page=page))


def judge_of(url: str, **options: Any) -> OpenAIJudge:
    config = OpenAIConfig(url=url, model="judge-1", **{"retries": 2, "backoff_s": 0.001, **options})
    return OpenAIJudge(config, PromptBook(), SECRET)


async def ask(url: str, question: Question[Verdict] | None = None, **options: Any) -> Reply[Verdict]:
    judge = judge_of(url, **options)
    try:
        return await judge.answer(question or check(), Asked(key=b"k" * 16))
    finally:
        await judge.close()


async def test_request_sends_schema_and_seed_and_keeps_usage() -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.url)
        assert mock.last is not None
        sent = msgspec.json.decode(mock.last.body)
    assert reply.reason is None
    assert reply.answer is not None
    assert list(reply.answer.items) == ["c01", "c02", "c03"]
    assert reply.answer.analysis.startswith("because")
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens, reply.usage.completion_tokens) == (
        100,
        50,
        20,
    )
    assert reply.finish_reason == "stop"
    assert 0 < reply.seconds < 10
    schema = json_schema(Verdict, 3, True)
    assert sent["model"] == "judge-1"
    assert sent["temperature"] == 0
    assert sent["seed"] == Asked(key=b"k" * 16).seed
    assert sent["max_tokens"] == max_tokens(schema)
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Verdict", "schema": schema, "strict": True},
    }
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert "The sky is blue." in sent["messages"][1]["content"]


async def test_configured_concurrency_is_reached() -> None:
    limit = 300  # more than the 100 connections that HTTP clients open by default
    async with MockOpenAI(together=limit) as mock:
        judge = judge_of(mock.url, max_in_flight=limit)
        questions = [check(f"page {number}") for number in range(2 * limit)]
        replies = await asyncio.gather(
            *(judge.answer(question, Asked(key=b"k" * 16)) for question in questions)
        )
        await judge.close()
    assert all(reply.answer is not None for reply in replies)
    assert mock.peak == limit
    assert mock.calls == 2 * limit


async def test_one_slot_serves_by_priority_then_by_arrival() -> None:
    served: list[str] = []

    async def note(mock: MockOpenAI, call: mock_openai.Call) -> None:
        served.extend(
            page for page in ("one", "two", "three", "four") if f"page {page}" in call.messages.decode()
        )

    async with MockOpenAI(fault=note) as mock:
        judge = judge_of(mock.url, max_in_flight=1)
        order = [("one", 0), ("two", 5), ("three", 5), ("four", 1)]
        tasks = []
        for page, priority in order:
            asked = Asked(key=b"k" * 16, priority=priority)
            tasks.append(asyncio.create_task(judge.answer(check(f"page {page}"), asked)))
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        await judge.close()
    assert served == ["one", "four", "two", "three"]


async def test_cancellation_gives_the_slot_back() -> None:
    async with MockOpenAI() as mock:
        judge = judge_of(mock.at("slow"), max_in_flight=2)
        quick = judge_of(mock.url, max_in_flight=2)
        quick._slots = judge._slots  # both judges queue for the same two slots
        tasks = [
            asyncio.create_task(judge.answer(check(str(number)), Asked(key=b"k" * 16))) for number in range(6)
        ]
        while mock.open < 2:
            await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        replies = await asyncio.gather(*(quick.answer(check(str(n)), Asked(key=b"k" * 16)) for n in range(6)))
        assert all(reply.answer is not None for reply in replies)
        assert quick._slots._free == 2
        await judge.close()
        await quick.close()


@pytest.mark.parametrize("fault", ["busy", "flapping", "drop", "cut"])
async def test_transient_failures_are_retried(fault: str) -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.at(fault))
    assert reply.reason is None
    assert mock.calls == 2


async def test_retry_after_is_respected() -> None:
    times: list[float] = []

    async def busy(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        times.append(time.monotonic())
        return refused(429, "slow down", Retry_After="1") if len(times) == 1 else None

    async with MockOpenAI(fault=busy) as mock:
        reply = await ask(mock.url)
    assert reply.answer is not None
    assert times[1] - times[0] >= 1.0


def test_waits_are_capped_and_random() -> None:
    for attempt in range(12):
        waits = [backoff(0.5, attempt) for _ in range(50)]
        assert all(0 <= wait <= min(30.0, 0.5 * 2**attempt) for wait in waits)
        assert len(set(waits)) > 1


async def test_server_that_stays_down_is_unavailable() -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.at("down"), retries=3)
    assert reply.reason == "judge_unavailable"
    assert "gone fishing" in reply.text
    assert mock.calls == 4


async def test_missing_server_is_unavailable(unused_tcp_port: int) -> None:
    reply = await ask(f"http://127.0.0.1:{unused_tcp_port}/v1", retries=1)
    assert reply.reason == "judge_unavailable"
    assert "Connect" in reply.text


async def test_slow_answer_is_a_timeout_and_not_retried() -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.at("slow"), timeout_s=0.1)
    assert reply.reason == "judge_timeout"
    assert reply.seconds >= 0.1
    assert mock.calls == 1


async def test_queueing_counts_neither_as_seconds_nor_as_timeout() -> None:
    async with MockOpenAI(latency=0.15) as mock:
        judge = judge_of(mock.url, max_in_flight=1, timeout_s=4.0)
        asking = [judge.answer(check(str(number)), Asked(key=b"k" * 16)) for number in range(40)]
        replies = await asyncio.gather(*asking)  # the last one waits for about 6 s
        await judge.close()
    assert [reply.reason for reply in replies] == [None] * 40
    assert min(reply.seconds for reply in replies) >= 0.15
    assert max(reply.seconds for reply in replies) < 4.0  # without the time in the queue


async def test_question_given_up_frees_its_place_and_connection() -> None:
    async with MockOpenAI() as mock:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(mock.at("slow")), 0.1)
        mock.fault = replying(lambda: refused(429, "later", Retry_After="50"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(mock.url), 0.3)
        mock.fault = None
        calls = mock.calls

        judge = judge_of(mock.at("slow"), max_in_flight=1)
        holder = asyncio.create_task(judge.answer(check("holder"), Asked(key=b"k" * 16)))
        while mock.open < 1:
            await asyncio.sleep(0.001)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(judge.answer(check(), Asked(key=b"k" * 16)), 0.1)
        assert mock.calls == calls + 1
        holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)
        await judge.close()


def budgets_of(analysis: bool = True, thinking: int = 0) -> tuple[int, int]:
    schema = json_schema(Verdict, 3, analysis)
    return max_tokens(schema) + thinking, most_tokens(schema) + 2 * thinking


async def test_cut_answer_gets_more_tokens_once() -> None:
    sent: list[int] = []

    async def cut(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        sent.append(call.max_tokens)
        return mock_openai.completion('{"analysis": "and so on', "length")

    async with MockOpenAI(fault=cut) as mock:
        reply = await ask(mock.url)
        assert tuple(sent) == budgets_of()
        thinking = await ask(mock.url, thinking=True, thinking_tokens=500)
    assert tuple(sent[2:]) == budgets_of(False, 500)
    assert reply.reason == thinking.reason == "answer_truncated"
    assert reply.finish_reason == "length ({}), length ({})".format(*budgets_of())
    assert reply.usage.prompt_tokens == 200
    assert reply.text.startswith('{"analysis"')


async def test_answer_cut_once_is_scored_with_both_budgets() -> None:
    async with MockOpenAI(fault=first(lambda: mock_openai.completion('{"anal', "length"))) as mock:
        reply = await ask(mock.url)
    assert reply.answer is not None
    assert reply.finish_reason == "length ({}), stop ({})".format(*budgets_of())
    assert reply.usage.prompt_tokens == 200


async def test_cut_answer_stands_where_more_tokens_do_not_fit() -> None:
    async def narrow(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        if call.before:
            return refused(400, "This model's maximum context length is 2048 tokens.")
        return mock_openai.completion('{"analysis": "and', "length")

    async with MockOpenAI(fault=narrow) as mock:
        reply = await ask(mock.url)
    assert reply.reason == "answer_truncated"
    assert reply.finish_reason == "length ({}), refused ({})".format(*budgets_of())


@pytest.mark.parametrize("fault", ["thinks", "thinks-silently", "thinks-aloud"])
async def test_thinking_unasked_is_not_asked_again_and_says_so(fault: str) -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.at(fault))
        assert mock.calls == 1
        thinking = await ask(mock.at(fault), thinking=True)
        assert mock.calls == 3
    assert reply.answer is thinking.answer is None
    assert reply.reason == thinking.reason == "answer_truncated"
    assert "judge: thinking: true" in reply.text
    assert "judge: thinking_tokens" in thinking.text


async def test_empty_reply_says_that_it_is_empty() -> None:
    async with MockOpenAI(fault=replying(lambda: mock_openai.completion(None))) as mock:
        reply = await ask(mock.url)
    assert (reply.reason, reply.text) == ("judge_unparseable", "(an empty reply)")


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("What a fine report!", "no JSON object"),
        ('{"analysis": "", "items": {"c01": "yes"}}', "items"),
        ('{"analysis": "", "items": {}, "items": {}}', "items: given twice"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh", "de"])
async def test_unreadable_reply_is_asked_again_with_its_fault(said: str, fault: str, language: str) -> None:
    async def once(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        return mock_openai.completion(said) if mock.calls == 1 else None

    async with MockOpenAI(fault=once) as mock:
        reply = await ask(mock.url, question=msgspec.structs.replace(check(), language=language))
        assert mock.calls == 2 and mock.last is not None
        sent = msgspec.json.decode(mock.last.body)
    *_, own, told = sent["messages"]
    assert [one["role"] for one in sent["messages"]] == ["system", "user", "assistant", "user"]
    assert own["content"] == said and fault in told["content"] and "response_format" in sent
    assert ("JSON 对象" in told["content"]) == (language == "zh")
    assert reply.answer is not None and reply.usage.prompt_tokens == 200
    assert reply.finish_reason.startswith("stop: ") and reply.finish_reason.endswith(", asked again: stop")
    assert fault in reply.finish_reason


@pytest.mark.parametrize(
    "then",
    [
        replying(lambda: mock_openai.completion("What a fine report!")),
        replying(lambda: mock_openai.refused(400, "the roles must be system and user")),
        replying(lambda: mock_openai.completion('{"analysis": "and', "length")),
        replying(lambda: mock_openai.refused(401, "who are you?")),
    ],
    ids=["unreadable", "refused", "cut", "unauthorised"],
)
async def test_reply_that_stays_unreadable_is_asked_twice_at_most(then: mock_openai.Fault) -> None:
    async def faulty(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        return mock_openai.completion("What a fine report!") if mock.calls == 1 else await then(mock, call)

    async with MockOpenAI(fault=faulty) as mock:
        reply = await ask(mock.url)
        assert mock.calls == 2
    assert (reply.reason, reply.text) == ("judge_unparseable", "What a fine report!")
    assert "no JSON object" in reply.finish_reason


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("refusal", "judge_refused"), ("filtered", "judge_refused"), ("garbage", "judge_unparseable")],
)
async def test_reply_without_an_answer_has_its_reason(fault: str, reason: str) -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.at(fault))
    assert reply.answer is None
    assert reply.reason == reason
    assert mock.calls == (2 if reason == "judge_unparseable" else 1)


async def test_server_that_ignores_the_schema_is_read_leniently() -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.at("prose"))
    assert reply.answer is not None
    assert "Say" not in reply.text


async def test_server_that_refuses_the_schema_is_asked_without_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = '{"items": {"c01": "supported", "c02": "unknown", "c03": "unsupported"}}'

    async def refuse(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        if call.constrained:
            return refused(400, "'response_format' of type 'json_schema' is not supported")
        return mock_openai.completion(f"Certainly.\n{answer}")

    async with MockOpenAI(fault=refuse) as mock:
        judge = judge_of(mock.url)
        with caplog.at_level(logging.WARNING):
            for number in range(3):
                reply = await judge.answer(check(str(number)), Asked(key=b"k" * 16))
                assert reply.answer is not None
        await judge.close()
        assert mock.calls == 4
    assert len(caplog.records) == 1
    assert "does not constrain Verdict" in caplog.text


async def test_question_that_fails_both_ways_keeps_the_schema() -> None:
    async def refuse(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        return refused(400, "grammar error") if b"poison" in call.messages else None

    async with MockOpenAI(fault=refuse) as mock:
        judge = judge_of(mock.url)
        assert (await judge.answer(check("poison"), Asked(key=b"k" * 16))).reason == "judge_unsupported"
        assert (await judge.answer(check("food"), Asked(key=b"k" * 16))).answer is not None
        await judge.close()
        assert mock.last is not None
        assert mock.last.constrained


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 2048 tokens. However, you requested 6751 tokens."),
        (
            400,  # of llama-cpp-python 0.3.36
            "This model's maximum context length is 2048 tokens. However, you requested 3039 tokens (3031 in the "
            "messages, 8 in the completion). Please reduce the length of the messages or completion.",
        ),
        (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "max_tokens must be at least 1, got -186."),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096."),
        (413, "Request Entity Too Large"),
    ],
)
async def test_context_beyond_the_window_is_an_overflow(status: int, message: str) -> None:
    async with MockOpenAI(fault=replying(lambda: refused(status, message))) as mock:
        reply = await ask(mock.url)
    assert reply.reason == "context_overflow"
    assert reply.text.startswith(message[:40])
    assert mock.calls == 1


async def test_max_context_counts_prompt_and_answer() -> None:
    async with MockOpenAI() as mock:
        assert (await ask(mock.url, max_context=120)).answer is not None
        reply = await ask(mock.url, max_context=119)
    assert reply.reason == "context_overflow"
    assert reply.usage.prompt_tokens == 100


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (400, "The response was filtered: content_filter", "judge_refused"),
        (400, "logprobs: unknown parameter", "judge_unsupported"),
        (422, "unprocessable", "judge_unsupported"),
        (409, "conflict", "judge_unavailable"),
        (424, "the model behind this gateway failed", "judge_unavailable"),
        (501, "not implemented", "judge_unavailable"),
        (498, "Flex tier capacity exceeded. Please try again later.", "judge_unavailable"),
        (400, "The model is overloaded.", "judge_unavailable"),
    ],
)
async def test_other_refusals_affect_one_question(status: int, message: str, reason: str) -> None:
    async with MockOpenAI(fault=replying(lambda: refused(status, message))) as mock:
        reply = await ask(mock.url)
    assert reply.reason == reason
    assert message in reply.text


@pytest.mark.parametrize(
    ("status", "message", "more", "reason"),
    [
        (
            400,
            "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 "
            "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the "
            "input prompt. "
            "(parameter=input_tokens, value=2049)",
            {"type": "BadRequestError", "param": "input_tokens"},
            "context_overflow",
        ),
        (
            400,
            "max_tokens=4000 cannot be greater than max_model_len=2048. Please request fewer output tokens. "
            "(parameter=max_tokens, value=4000)",
            {"type": "BadRequestError", "param": "max_tokens"},
            "context_overflow",
        ),
        (
            400,
            "Grammar error: Invalid type: nonsense",
            {"type": "BadRequestError", "param": None},
            "judge_unsupported",
        ),
        (
            400,
            "Cannot apply chat template to an empty conversation. Provide at least one message.",
            {"type": "BadRequestError", "param": None},
            "judge_unsupported",
        ),
    ],
)
async def test_refusals_as_vllm_writes_them(
    status: int, message: str, more: dict[str, str | None], reason: str
) -> None:
    """As vLLM 0.32 answered; a question that asks for fewer tokens may follow."""
    body = msgspec.json.encode({"error": {"message": message, **more, "code": status}})
    async with MockOpenAI(fault=replying(lambda: raw(body, status))) as mock:
        reply = await ask(mock.url)
    assert (reply.reason, reply.text[:30]) == (reason, message[:30])


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("The request is above the token limit of the model: 1500", "context_overflow"),
        ("Input length (2000 tokens) is above the allowed length (1500 tokens).", "context_overflow"),
        ("The token count of the input (2000) is above the number allowed (1500).", "context_overflow"),
        ("`inputs` may have fewer than 1500 tokens, given 2000", "context_overflow"),
        ("The maximum prompt length of this model is 1500", "context_overflow"),
        ("default_max_tokens (-5) must be above 0: max_seq_len (1500) - prompt_len", "context_overflow"),
        ("Prompt is longer than the max length", "context_overflow"),
        ("the length of the input is outside its range, [1, 1500]", "context_overflow"),
        ("DataInspectionFailed: the input may hold content that is not appropriate.", "judge_refused"),
    ],
)
async def test_refusal_in_other_words_has_its_reason(message: str, reason: str) -> None:
    async with MockOpenAI(fault=replying(lambda: refused(400, message))) as mock:
        assert (await ask(mock.url)).reason == reason
        assert mock.calls == 1


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Request payload size exceeds the limit: 20971520 bytes.", "context_overflow"),
        ("输入的长度超过模型最大上下文长度限制", "context_overflow"),
        ("`inputs` must have less than 1024 tokens. Given: 2001", "context_overflow"),
        ("Range of input length should be [1, 6000]", "context_overflow"),
        ("too many total text bytes: 30000000 > 25000000", "context_overflow"),
        ("content: string too long. Expected at most 1048576 characters", "context_overflow"),
        ("Please reduce the length of the messages. Current: 9000, limit: 8192", "context_overflow"),
        (
            "Malformed input: expected maxLength: 400000, actual: 500000; the text is too long",
            "context_overflow",
        ),
        ("Conversation too long; shorten your messages", "context_overflow"),
        ("Prompt 超长", "context_overflow"),
        ("Your request was rejected by the safety system", "judge_refused"),
        ("The input was blocked by guardrails", "judge_refused"),
        ("输入或生成内容可能包含不安全或敏感内容", "judge_refused"),
        ("Content Exists Risk", "judge_refused"),
        ("logit_bias is missing", "judge_unsupported"),
        ("the model took a break", "judge_unsupported"),
    ],
)
async def test_loose_words_are_believed_after_a_second_refusal(message: str, reason: str) -> None:
    async with MockOpenAI(fault=replying(lambda: refused(400, message))) as mock:
        assert (await ask(mock.url)).reason == reason
        assert mock.calls == 2


@pytest.mark.parametrize(
    "message",
    ["the response schema is too large: reduce its length", "a name in it is longer than 64 characters"],
)
async def test_loose_words_about_the_format_do_not_cost_the_answer(message: str) -> None:
    async def refuse(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        return refused(400, message) if call.constrained else mock_openai.completion(ANSWER)

    async with MockOpenAI(fault=refuse) as mock:
        assert (await ask(mock.url)).answer is not None


async def test_words_behind_a_gateway_are_read() -> None:
    """Gateways say only that something failed, and pass on the reply of the server behind them."""
    behind = {"error": {"message": "This model's maximum context length is 2048 tokens.", "code": 400}}
    error = {
        "message": "Provider returned error",
        "code": 400,
        "metadata": {"raw": msgspec.json.encode(behind).decode()},
    }

    def passed_on() -> mock_openai.web.StreamResponse:
        return mock_openai.web.json_response({"error": error}, status=400)

    async with MockOpenAI(fault=replying(passed_on)) as mock:
        reply = await ask(mock.url)
    assert reply.reason == "context_overflow"
    assert reply.text == "Provider returned error 400 This model's maximum context length is 2048 tokens."


@pytest.mark.parametrize("message", ["", "The schema is too complex to be compiled"])
async def test_refusal_without_a_cause_is_asked_without_format(message: str) -> None:
    async def refuse(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        return refused(400, message) if call.constrained else mock_openai.completion(ANSWER)

    async with MockOpenAI(fault=refuse) as mock:
        assert (await ask(mock.url)).answer is not None
        assert mock.calls == 2


@pytest.mark.parametrize("status", [301, 307, 401, 402, 403, 404, 405])
async def test_server_that_fails_every_question_stops_the_run(
    status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-very-secret")
    message = "Incorrect API key provided: sk-very-secret"
    async with MockOpenAI(
        fault=replying(lambda: refused(status, message, Location="http://127.0.0.1:1/"))
    ) as mock:
        with caplog.at_level(logging.DEBUG), pytest.raises(JudgeError) as raised:
            await ask(mock.url, api_key_env="SOME_KEY")
        assert mock.calls == 1
    assert mock.url in str(raised.value)
    assert "judge-1" in str(raised.value)
    assert ("SOME_KEY" in str(raised.value)) == (status in (401, 403))
    assert "sk-very-secret" not in str(raised.value) + caplog.text


@pytest.mark.parametrize(
    ("fault", "trouble", "fix"),
    [
        ("no-max-tokens", "refuses_max_tokens", "max_tokens"),
        ("no-temperature", "unusable", "judge: temperature"),
        ("missing-model", "wrong_model", "judge: model"),
    ],
)
async def test_refusal_that_meets_every_question_stops_the_run(fault: str, trouble: str, fix: str) -> None:
    async with MockOpenAI() as mock:
        with pytest.raises(JudgeError, match=fix) as raised:
            await ask(mock.at(fault))
        assert mock.calls == 1
    assert raised.value.trouble == trouble
    assert "\n" not in str(raised.value)
    assert msgspec.json.decode(msgspec.json.encode(raised.value.trouble)) == pickled(raised.value).trouble


def pickled(error: JudgeError) -> JudgeError:
    found = pickle.loads(pickle.dumps(error))
    assert isinstance(found, JudgeError)
    return found


async def test_report_quoted_in_a_refusal_does_not_stop_the_run() -> None:
    async def quote(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        return refused(400, f"bad input: {mock_openai.NO_MAX_TOKENS}") if b"poison" in call.messages else None

    async with MockOpenAI(fault=quote) as mock:
        judge = judge_of(mock.url)
        assert (await judge.answer(check("food"), Asked(key=b"k" * 16))).answer is not None
        assert (await judge.answer(check("poison"), Asked(key=b"k" * 16))).reason == "judge_unsupported"
        await judge.close()


@pytest.mark.parametrize("status", [400, 401, 403, 500])
@pytest.mark.parametrize("form", ["{}", "Authorization: Bearer {}", "x" * 1990 + "{}", "x" * 290 + "{}"])
async def test_key_and_query_stay_out_of_what_a_server_says(
    status: int, form: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-very/secret")
    said = form.format("sk-very/secret") + " code=query-secret"
    plain, escaped = msgspec.json.encode({"error": {"message": said}}), said.replace("/", "\\/").encode()
    coded = said.replace("-", r"\u002D").replace("/", "%2F").encode()
    for body in (plain, plain.replace(b"/", b"\\/"), b'{"detail": "%s"}' % said.encode(), escaped, coded):
        async with MockOpenAI(fault=replying(partial(raw, body, status))) as mock:
            with caplog.at_level(logging.DEBUG):
                try:
                    found = (await ask(f"{mock.url}?code=query-secret", api_key_env="SOME_KEY")).text
                except JudgeError as error:
                    found = str(error)
        for secret in ("sk-very", "query-secret", "secret", "very"):
            assert secret not in found + caplog.text


@given(st.integers(0, 60), st.integers(1, 40), st.booleans())
def test_cut_text_ends_with_no_part_of_a_key(before: int, times: int, escaped: bool) -> None:
    key = "KEYKEY/KEYKEY"
    said = key.replace("/", "\\/") if escaped else key
    found = Redaction(key).head("-" * before + said * times, 40)
    assert "K" not in found
    assert len(found) <= 40


@pytest.mark.parametrize(
    "said", ["kq7&amp;Tr33&lt;h-1", "kq7&#38;Tr33&#x3c;h-1", "kq7%26Tr33%3Ch-1", "kq7&Tr33<h-1"]
)
def test_key_is_struck_in_every_spelling(said: str) -> None:
    assert Redaction("kq7&Tr33<h-1")(f"<pre>{said}</pre>") == "<pre>***</pre>"


async def test_key_in_a_good_reply_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-very-secret")
    async with MockOpenAI(fault=replying(lambda: mock_openai.completion("I got sk-very-secret."))) as mock:
        assert (await ask(mock.url, api_key_env="SOME_KEY")).text == "I got ***."


async def test_short_key_does_not_change_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "unknown")  # local servers take any word
    async with MockOpenAI() as mock:
        plain = await ask(mock.url)
        keyed = await ask(mock.url, api_key_env="SOME_KEY")
    assert plain.answer == keyed.answer


async def test_unreachable_server_is_named_without_its_query(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/v1?code=query-secret"
    reply = await ask(url, retries=0)
    judge = judge_of(url, retries=0)
    [verdict] = await judge.probe()
    await judge.close()
    assert "query-secret" not in reply.text + verdict.line + verdict.where


async def test_key_is_sent_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with MockOpenAI() as mock:
        monkeypatch.setenv("SOME_KEY", "sk-1")
        await ask(mock.url, api_key_env="SOME_KEY")
        assert mock.last is not None
        assert mock.last.http.headers["Authorization"] == "Bearer sk-1"
        monkeypatch.delenv("SOME_KEY")
        await ask(mock.url, api_key_env="SOME_KEY")
        assert "Authorization" not in mock.last.http.headers


def test_invalid_key_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-1\nX-Evil: yes")
    with pytest.raises(JudgeError, match="SOME_KEY") as raised:
        judge_of("http://127.0.0.1:1/v1", api_key_env="SOME_KEY")
    assert "sk-1" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000/v1", "ftp://a/v1", "http:///v1", "http://[::1/v1", "http://h:99999999/"]
)
def test_invalid_urls_are_refused(url: str) -> None:
    with pytest.raises(JudgeError, match="judge url"):
        judge_of(url)


def test_credentials_in_a_url_are_refused_without_showing_them() -> None:
    with pytest.raises(JudgeError, match="judge url on example") as raised:
        judge_of("http://user:pass@example.org/v1")
    assert "pass" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h:1/v1?key=secret#secret", "http://h:1/v1"),
        ("http://user:secret@h/v1", "http://h/v1"),
        ("http://user:secret@[::1/v1", "http://[::1/v1"),
        ("http://user:sec?ret@h/v1", "http://***"),
        ("http://user:sec://ret@h/v1", "http://h/v1"),
        ("user:secret@h/v1", "h/v1"),
        ("http://h/v1?key=secret@x&more=secret", "http://***"),
        ("http://h/\udcff", "http://h/\ufffd"),
    ],
)
def test_shown_urls_hold_no_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_invalid_url_is_refused_without_its_secrets() -> None:
    with pytest.raises(JudgeError) as raised:
        judge_of("http://user:secret@[::1/v1?key=secret")
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("base", "endpoint"), [("/v1", "/v1"), ("/v1/", "/v1"), ("/a/b/v1?api=2", "/a/b/v1")]
)
def test_endpoint_follows_the_base_url(base: str, endpoint: str) -> None:
    judge = judge_of(f"http://h:1{base}")
    assert judge._server.url.path == f"{endpoint}/chat/completions"
    assert judge._server.url.query_string == ("api=2" if "?" in base else "")


HOSTILE = {
    "not JSON": b"<html><body>Bad gateway</body></html>",
    "cut off": b'{"choices": [{"message": {"content": "',
    "not UTF-8": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
    "lone surrogate": b'{"choices": [{"message": {"content": "\\ud800"}}]}',
    "NaN": b'{"choices": NaN}',
    "a list": b"[]",
    "null": b"null",
    "choices of the wrong type": b'{"choices": {"0": 1}}',
    "no message": b'{"choices": [{}]}',
    "content of the wrong type": b'{"choices": [{"message": {"content": 7}}]}',
    "null content": b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}',
    "tools instead": b'{"choices": [{"message": {"content": null}, "finish_reason": "tool_calls"}]}',
    "negative tokens": b'{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": -1}}',
    "endless tokens": b'{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": 1e400}}',
    "tokens beyond 64 bits": b'{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": %d}}'
    % 2**70,
    "deep lists": b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "deep objects": b'{"x": ' + b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"}",
    "deep content": msgspec.json.encode({"choices": [{"message": {"content": '{"items":' * 9_000}}]}),
    "content beyond the limit": msgspec.json.encode({"choices": [{"message": {"content": "{" * 200_000}}]}),
    "a body beyond the limit": b" " * (MAX_BODY_BYTES + 1),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_replies_are_unparseable(name: str) -> None:
    async with MockOpenAI(fault=replying(lambda: raw(HOSTILE[name]))) as mock:
        reply = await ask(mock.url)
    assert reply.answer is None
    assert reply.reason == "judge_unparseable"
    assert len(reply.text) <= 100_000
    reply.text.encode()
    assert mock.calls == (2 if reply.fault else 1)


# Statuses of success without an answer, as gateways send them when the server behind them has failed.
FAILED_INSIDE = {
    "no bytes": b"",
    "blank": b"\n\n \n",
    "no choices": b'{"choices": []}',
    "null choices": b'{"choices": null}',
    "an error": b'{"error": {"message": "overloaded", "code": 529}}',
    "an error with a word": b'{"error": {"message": "overloaded", "code": "server_error"}}',
    "a list of an error": b'[{"error": {"message": "overloaded", "code": 503}}]',
    "events without an end": b'data: {"choices": []}\n\ndata: [DONE]\n\n',
    "an error among events": b'data: {"choices": []}\n\ndata: {"error": {"message": "overloaded"}}\n\n',
}


@pytest.mark.parametrize("name", FAILED_INSIDE)
async def test_success_without_an_answer_is_asked_again(name: str) -> None:
    async def once(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        return raw(FAILED_INSIDE[name]) if call.before == 0 else None

    async with MockOpenAI(fault=once) as mock:
        assert (await ask(mock.url)).answer is not None
        assert mock.calls == 2
    async with MockOpenAI(fault=replying(lambda: raw(FAILED_INSIDE[name]))) as mock:
        reply = await ask(mock.url)
    assert reply.reason == "judge_unavailable"
    assert "error" not in name or "overloaded" in reply.text


@pytest.mark.parametrize("name", ["not JSON", "no message", "cut off"])
async def test_broken_reply_of_a_server_that_answered_is_asked_again(name: str) -> None:
    async def once(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        odd = b"page odd" in call.messages or (b"page bad" in call.messages and call.before == 0)
        return raw(HOSTILE[name]) if odd else None

    async with MockOpenAI(fault=once) as mock:
        judge = judge_of(mock.url)
        assert (await judge.answer(check("page good"), Asked(key=b"k" * 16))).answer is not None
        assert (await judge.answer(check("page bad"), Asked(key=b"k" * 16))).answer is not None
        assert mock.calls == 3
        assert (await judge.answer(check("page odd"), Asked(key=b"k" * 16))).reason == "judge_unparseable"
        await judge.close()


async def test_server_that_breaks_at_the_length_is_asked_once() -> None:
    async def breaks(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        said = "prompt length (9000) exceeds maximum input length (1500)"
        return refused(500, said) if b"page long" in call.messages else None

    async with MockOpenAI(fault=breaks) as mock:
        judge = judge_of(mock.url)
        assert (await judge.answer(check("page short"), Asked(key=b"k" * 16))).answer is not None
        assert (await judge.answer(check("page long"), Asked(key=b"k" * 16))).reason == "context_overflow"
        await judge.close()
        assert mock.calls == 2


@pytest.mark.parametrize(
    ("said", "is_alone"),
    [("Too many requests", False), ("This request is too large for the tokens per minute: shorten it", True)],
)
async def test_overrun_server_refuses_no_question_alone(said: str, is_alone: bool) -> None:
    """Others are answered meanwhile; that one waits until the run's patience ends, unless it is too large."""

    async def busy(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        return refused(429, said) if b"page starved" in call.messages else None

    async with MockOpenAI(fault=busy) as mock:
        judge = judge_of(mock.url, backoff_s=0.2)
        starved = asyncio.ensure_future(judge.answer(check("page starved"), Asked(key=b"k" * 16)))
        while not starved.done():
            assert (await judge.answer(check("page fed"), Asked(key=b"k" * 16))).answer is not None
        reply = await starved
        await judge.close()
    assert (reply.reason, reply.is_alone) == ("judge_unavailable", is_alone)


async def test_kind_of_a_refusal_is_read() -> None:
    error = {
        "message": "The request was rejected because it was considered high risk",
        "type": "content_filter",
    }

    def high_risk() -> mock_openai.web.StreamResponse:
        return mock_openai.web.json_response({"error": error}, status=400)

    async with MockOpenAI(fault=replying(high_risk)) as mock:
        assert (await ask(mock.url)).reason == "judge_refused"


async def test_failed_draw_keeps_the_schema() -> None:
    async def once(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        return refused(400, "JSON Mode couldn't be met") if mock.calls == 1 else None

    async with MockOpenAI(fault=once) as mock:
        assert (await ask(mock.url)).answer is not None
        assert mock.last is not None and mock.last.constrained


async def test_accepted_for_later_is_asked_again() -> None:
    async def later(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse | None:
        return raw(b"", status=202) if call.before == 0 else None

    async with MockOpenAI(fault=later) as mock:
        assert (await ask(mock.url)).answer is not None
        assert mock.calls == 2


ANSWER = '{"items": {"c01": "supported", "c02": "unknown", "c03": "unsupported"}}'


def enveloped(content: Any = ANSWER, finish: Any = "stop", **message: Any) -> bytes:
    choice = {"index": 0, "message": {"content": content, **message}, "finish_reason": finish}
    return msgspec.json.encode({"choices": [choice]})


def events(*contents: str, ends: bool = True) -> bytes:
    said: list[dict[str, Any]] = [
        {"delta": {"content": content}, "finish_reason": None} for content in contents
    ]
    said += [{"delta": {}, "finish_reason": "stop"}] if ends else []
    lines = [b"data: " + msgspec.json.encode({"choices": [{"index": 0, **one}]}) for one in said]
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 7}}'
    return b": ping\n\n" + b"\n\n".join([*lines, usage, b"data: [DONE]"]) + b"\n\n"


ODD = {
    "a byte order mark": b"\xef\xbb\xbf" + enveloped(),
    "NaN beside": enveloped()[:-1] + b', "timings": {"per_second": NaN, "least": -Infinity}}',
    "parts of text": enveloped([{"type": "text", "text": ANSWER[:9]}, {"type": "text", "text": ANSWER[9:]}]),
    "thoughts as a part": enveloped(
        [{"type": "thinking", "thinking": [{"text": "{}"}]}, {"type": "text", "text": ANSWER}]
    ),
    "a number as finish reason": enveloped(finish=1),
    "refusal false": enveloped(refusal=False),
    "all in the field for reasoning": enveloped(None, reasoning_content=ANSWER),
    "events": events(ANSWER[:9], ANSWER[9:]),
}


@pytest.mark.parametrize("name", ODD)
async def test_odd_envelopes_do_not_hide_the_answer(name: str) -> None:
    async with MockOpenAI(fault=replying(lambda: raw(ODD[name]))) as mock:
        reply = await ask(mock.url)
    assert reply.answer is not None and reply.text == ANSWER


@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_thoughts_of_a_thinking_model_are_no_answer(finish: str) -> None:
    body = enveloped(None, finish, reasoning_content=ANSWER)
    async with MockOpenAI(fault=replying(lambda: raw(body))) as mock:
        assert (await ask(mock.url, thinking=True)).answer is None


async def test_content_type_does_not_matter() -> None:
    async def answer(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        body = mock_openai.completion(call.answer()).body
        assert isinstance(body, bytes)
        return raw(body, content_type="text/html")

    async with MockOpenAI(fault=answer) as mock:
        assert (await ask(mock.url)).answer is not None


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_compressed_body_is_inflated(coding: str) -> None:
    async def squeeze(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        assert coding in call.http.headers["Accept-Encoding"]
        response = mock_openai.completion(call.answer())
        response.enable_compression(mock_openai.web.ContentCoding(coding))
        return response

    async with MockOpenAI(fault=squeeze) as mock:
        assert (await ask(mock.url)).answer is not None


@pytest.mark.parametrize("wbits", [zlib.MAX_WBITS, zlib.MAX_WBITS | 16, -zlib.MAX_WBITS])
def test_unpacked_body_is_whole_and_bounded(wbits: int) -> None:
    packer = zlib.compressobj(wbits=wbits)
    packed = packer.compress(b"a" * 1_000_000) + packer.flush()
    assert unpacked(packed, 1_000_000) == b"a" * 1_000_000
    assert unpacked(packed, 999_999) is None
    with pytest.raises(zlib.error):
        unpacked(packed[:-5], 1_000_000)


async def test_brotli_body_is_inflated() -> None:
    async def squeeze(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        assert "br" in call.http.headers["Accept-Encoding"].split(", ")
        body = brotli.compress(bytes(mock_openai.completion(call.answer()).body or b""))
        return raw(body, Content_Encoding="br")

    async with MockOpenAI(fault=squeeze) as mock:
        assert (await ask(mock.url)).answer is not None


def test_brotli_body_is_whole_and_bounded() -> None:
    packed = brotli.compress(b"a" * 1_000_000)
    assert unbrotlied(packed, 1_000_000) == b"a" * 1_000_000
    assert unbrotlied(packed, 999_999) is None
    for broken in (packed[:-3], b"{}"):
        with pytest.raises(brotli.error):
            unbrotlied(broken, 1_000_000)


async def test_endless_body_is_cut_at_the_limit() -> None:
    written = 0

    async def endless(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        nonlocal written
        response = mock_openai.web.StreamResponse()
        await response.prepare(call.http)
        while written < 100 * MAX_BODY_BYTES:
            await response.write(b" " * 65_536)
            written += 65_536
        return response

    async with MockOpenAI(fault=endless) as mock:
        assert (await ask(mock.url)).reason == "judge_unparseable"
    assert written < 4 * MAX_BODY_BYTES


async def test_page_of_five_megabytes_with_lone_surrogates_is_sent() -> None:
    page = "\ud800 a page\udfff " * 400_000
    async with MockOpenAI() as mock:
        reply = await ask(mock.url, check(page))
        assert mock.last is not None
        assert len(mock.last.body) > 5_000_000
        assert "\ufffd a page\ufffd" in mock.last.messages.decode()
    assert reply.answer is not None


async def test_thinking_models_get_thinking_tokens_and_no_analysis() -> None:
    async def think(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        return mock_openai.completion(call.answer(), reasoning_content="Hmm {}. " * 1000)

    async with MockOpenAI(fault=think) as mock:
        reply = await ask(mock.url, thinking=True)
        assert mock.last is not None
        sent = msgspec.json.decode(mock.last.body)
    assert reply.answer is not None
    assert reply.answer.analysis == ""
    assert "Hmm" not in reply.text
    schema = json_schema(Verdict, 3, False)
    assert sent["max_tokens"] == max_tokens(schema) + THINKING_TOKENS
    assert sent["response_format"]["json_schema"]["schema"] == schema
    assert not judge_of("http://h/v1", thinking=True).identity.analysis
    assert judge_of("http://h/v1").identity.analysis


async def test_media_is_sent_only_to_judges_that_support_it() -> None:
    picture = Media(name="chart", type="image/png", data="aGVsbG8=")
    question = Check(context=Context.of(picture, page="text"))
    async with MockOpenAI() as mock:
        assert (await ask(mock.url, question)).reason == "media_unsupported"
        assert mock.calls == 0
        assert (await ask(mock.url, question, media=("image",))).answer is not None
        assert mock.last is not None
        user = msgspec.json.decode(mock.last.body)["messages"][1]
    assert user["role"] == "user"
    assert user["content"][0] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    assert "text" in user["content"][1]["text"]


def test_fingerprint_depends_on_the_model_not_the_server() -> None:
    plain = judge_of("http://a/v1")
    assert (
        plain.identity.fingerprint
        == judge_of("http://b:1/v1", max_in_flight=7, timeout_s=1.0).identity.fingerprint
        == "judge-1"
    )
    told = judge_of("http://a/v1", revision="abc", quantization="fp8")
    assert told.identity.fingerprint == "judge-1 revision=abc quantization=fp8"
    samplings = {
        judge_of("http://a/v1", **options).identity.sampling
        for options in ({}, {"temperature": 0.7}, {"thinking": True})
    }
    assert len(samplings) == 3


async def test_judge_reuses_one_connection() -> None:
    peers = set()

    async def note(mock: MockOpenAI, call: mock_openai.Call) -> None:
        assert call.http.transport is not None
        peers.add(call.http.transport.get_extra_info("peername"))

    async with MockOpenAI(fault=note) as mock:
        judge = judge_of(mock.url)
        for number in range(5):
            await judge.answer(check(str(number)), Asked(key=b"k" * 16))
        await judge.close()
        await judge.close()
    assert len(peers) == 1


COUNTS = [b"-1", b"1e400", b"%d" % 2**70, b'"many"', b"1.5", b"null", b"[[]]", b'"\\u0000"']


@pytest.mark.parametrize("count", COUNTS)
async def test_strange_token_counts_do_not_break_an_answer(count: bytes, tmp_path: Path) -> None:
    async def answer(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        good = msgspec.json.decode(bytes(mock_openai.completion(call.answer()).body))
        good["usage"] = msgspec.Raw(
            b'{"prompt_tokens":%b,"completion_tokens":%b,"prompt_tokens_details":{"cached_tokens":%b}}'
            % (count, count, count)
        )
        good["model"] = 7
        return raw(msgspec.json.encode(good))

    async with MockOpenAI(fault=answer) as mock:
        reply = await ask(mock.url)
    assert reply.answer is not None
    total = reply.usage + reply.usage
    assert all(0 <= number < 2**31 for number in msgspec.structs.astuple(total))
    assert (await stored(reply, tmp_path)).usage == reply.usage


async def stored(reply: Reply[Verdict], folder: Path) -> Judgment[Verdict]:
    """`reply` as a store gives it back."""

    class Says:
        identity = JudgeIdentity("says", "says", "")

        async def answer(self, question: Question[Any], asked: Asked) -> Reply[Any]:
            return reply

        async def close(self) -> None: ...

    question = check()
    async with store_at(folder) as store:
        written = await Asker(Says(), store, PromptBook()).ask(question)
    async with store_at(folder) as store:
        found = await store.get(written.key, question)
    assert found is not None
    return found


@asynccontextmanager
async def store_at(folder: Path) -> AsyncIterator[JudgmentStore]:
    store = JudgmentStore(Place.of(str(folder)), retry_unscored=False)
    await store.open(every=True)
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize("text", ["\udcff\ud800 and \x00", "Grüße \udc80", "plain"])
async def test_any_text_of_a_reply_is_stored(text: str, tmp_path: Path) -> None:
    reply = Reply[Verdict](reason="judge_unparseable", text=text, finish_reason=text)
    found = await stored(reply, tmp_path)
    assert found.text == found.finish_reason == storable(text)
    assert storable(text).encode().decode() == storable(storable(text))


async def test_latin_1_reason_phrase_is_stored(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Mau\xdfe\xff\r\nX-Odd: \xe9\r\nContent-Length: 3\r\n\r\n\xff\x00\xfe")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reply = await ask(f"http://127.0.0.1:{port}/v1", retries=0)
    assert reply.answer is None
    assert (await stored(reply, tmp_path)).text == reply.text


@given(st.binary() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(msgspec.json.encode))
def test_any_body_is_a_completion_or_broken(body: bytes) -> None:
    try:
        found = completion(body)
    except BrokenReply:
        return
    assert found.text is None or found.text.encode() is not None


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON = st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
REPLIES = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries(
                {"message": st.fixed_dictionaries({"content": JSON}, optional={"refusal": JSON})},
                optional={"finish_reason": JSON},
            )
        )
    },
    optional={"usage": JSON | st.fixed_dictionaries({"prompt_tokens": JSON, "prompt_tokens_details": JSON})},
)


@given(REPLIES)
def test_completion_takes_the_first_choice_or_is_broken(reply: dict[str, Any]) -> None:
    try:
        found = completion(msgspec.json.encode(reply))
    except (BrokenReply, UnicodeEncodeError):
        return
    content = reply["choices"][0]["message"]["content"]
    assert found.text == content or isinstance(content, list)
    assert found.usage.prompt_tokens >= 0


async def test_mock_reports_its_stats() -> None:
    async with MockOpenAI() as mock, aiohttp.ClientSession() as client:
        await ask(mock.url)
        async with client.get(mock.url.replace("/v1", "/stats")) as response:
            assert await response.json() == {"calls": 1, "peak": 1}
