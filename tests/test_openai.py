import asyncio
import logging
import time
from typing import Annotated, Any, Literal

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.judges import Answer, Asked, Context, Media, Question, Reply
from adjudge.judges.completions import BrokenReply, completion
from adjudge.judges.errors import JudgeError
from adjudge.judges.openai import MAX_BODY_BYTES, THINKING_TOKENS, OpenAIConfig, OpenAIJudge
from adjudge.judges.schema import json_schema, max_tokens
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


async def ask(
    url: str, question: Question[Verdict] | None = None, deadline: float | None = None, **options: Any
) -> Reply[Verdict]:
    judge = judge_of(url, **options)
    try:
        return await judge.answer(question or check(), Asked(key=b"k" * 16, deadline=deadline))
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
    judge = judge_of("http://127.0.0.1:1/v1", backoff_s=0.5)
    for attempt in range(12):
        waits = [judge._server._wait(None, attempt) for _ in range(50)]
        assert all(0 <= wait <= min(30.0, 0.5 * 2**attempt) for wait in waits)
        assert len(set(waits)) > 1
    assert 60.0 <= judge._server._wait("86400", 0) <= 60.5


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


async def test_deadline_bounds_sending_queueing_and_waiting() -> None:
    now = asyncio.get_running_loop().time()
    async with MockOpenAI() as mock:
        assert (await ask(mock.at("slow"), deadline=now + 0.1)).reason == "deadline"
        mock.fault = replying(lambda: refused(429, "later", Retry_After="50"))
        assert (await ask(mock.url, deadline=now + 0.3)).reason == "deadline"
        mock.fault = None
        judge = judge_of(mock.url)
        await judge.answer(check(), Asked(key=b"k" * 16))  # connected, so that sending would be immediate
        calls = mock.calls
        assert (await judge.answer(check(), Asked(key=b"k" * 16, deadline=now))).reason == "deadline"
        await judge.answer(check(), Asked(key=b"k" * 16))
        assert mock.calls == calls + 1
        await judge.close()

        judge = judge_of(mock.at("slow"), max_in_flight=1)
        holder = asyncio.create_task(judge.answer(check("holder"), Asked(key=b"k" * 16)))
        while mock.open < 1:
            await asyncio.sleep(0.001)
        soon = asyncio.get_running_loop().time() + 0.1
        assert (await judge.answer(check(), Asked(key=b"k" * 16, deadline=soon))).reason == "deadline"
        assert mock.calls == calls + 2
        holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)
        await judge.close()


async def test_answer_truncated_twice_is_truncated() -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.at("truncated"))
    assert reply.reason == "answer_truncated"
    assert reply.finish_reason == "length"
    assert mock.calls == 2
    assert reply.usage.prompt_tokens == 200
    assert mock.seen.most_common(1)[0][1] == 2  # the identical request


async def test_answer_truncated_once_is_retried() -> None:
    async with MockOpenAI(fault=first(lambda: mock_openai.completion('{"anal', "length"))) as mock:
        reply = await ask(mock.url)
    assert reply.answer is not None
    assert reply.usage.prompt_tokens == 200


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("refusal", "judge_refused"), ("filtered", "judge_refused"), ("garbage", "judge_unparseable")],
)
async def test_reply_without_an_answer_has_its_reason(fault: str, reason: str) -> None:
    async with MockOpenAI() as mock:
        reply = await ask(mock.at(fault))
    assert reply.answer is None
    assert reply.reason == reason
    assert mock.calls == 1


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
    needed = 100 + max_tokens(json_schema(Verdict, 3, True))
    async with MockOpenAI() as mock:
        assert (await ask(mock.url, max_context=needed)).answer is not None
        reply = await ask(mock.url, max_context=needed - 1)
    assert reply.reason == "context_overflow"
    assert reply.usage.prompt_tokens == 100


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (400, "The response was filtered: content_filter", "judge_refused"),
        (400, "seed: unknown parameter", "judge_unsupported"),
        (422, "unprocessable", "judge_unsupported"),
        (409, "conflict", "judge_unsupported"),
        (501, "not implemented", "judge_unavailable"),
    ],
)
async def test_other_refusals_affect_one_question(status: int, message: str, reason: str) -> None:
    async with MockOpenAI(fault=replying(lambda: refused(status, message))) as mock:
        reply = await ask(mock.url)
    assert reply.reason == reason
    assert message in reply.text


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
    ("base", "endpoint"), [("/v1", "/v1"), ("/v1/", "/v1"), ("/a/b/v1?api=2", "/a/b/v1")]
)
def test_endpoint_follows_the_base_url(base: str, endpoint: str) -> None:
    judge = judge_of(f"http://h:1{base}")
    assert judge._server.url.path == f"{endpoint}/chat/completions"
    assert judge._server.url.query_string == ("api=2" if "?" in base else "")


HOSTILE = {
    "no bytes": b"",
    "not JSON": b"<html><body>Bad gateway</body></html>",
    "cut off": b'{"choices": [{"message": {"content": "',
    "not UTF-8": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
    "lone surrogate": b'{"choices": [{"message": {"content": "\\ud800"}}]}',
    "NaN": b'{"choices": NaN}',
    "a list": b"[]",
    "null": b"null",
    "no choices": b'{"choices": []}',
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
    "an error with status 200": b'{"error": {"message": "overloaded", "code": 529}}',
    "an event stream": b'data: {"choices": []}\n\ndata: [DONE]\n\n',
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
    assert mock.calls == 1


async def test_content_type_does_not_matter() -> None:
    async def answer(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        body = mock_openai.completion(call.answer()).body
        assert isinstance(body, bytes)
        return raw(body, content_type="text/html")

    async with MockOpenAI(fault=answer) as mock:
        assert (await ask(mock.url)).answer is not None


async def test_compressed_body_is_not_inflated() -> None:
    async def squeeze(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        assert call.http.headers["Accept-Encoding"] == "identity"
        response = mock_openai.completion(call.answer())
        response.enable_compression(mock_openai.web.ContentCoding.gzip)
        return response

    async with MockOpenAI(fault=squeeze) as mock:
        assert (await ask(mock.url)).reason == "judge_unparseable"


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
    assert found.text == reply["choices"][0]["message"]["content"]
    assert found.usage.prompt_tokens >= 0


async def test_mock_reports_its_stats() -> None:
    async with MockOpenAI() as mock, aiohttp.ClientSession() as client:
        await ask(mock.url)
        async with client.get(mock.url.replace("/v1", "/stats")) as response:
            assert await response.json() == {"calls": 1, "peak": 1}
