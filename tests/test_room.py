"""Budgets that fit: what servers say of their limits, in numbers, and prompts that they did not read whole."""

import json
import time
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.evaluation.dry_run import NoteTaker
from adjudge.judges import Asked, Context, Reply
from adjudge.judges.completions import models
from adjudge.judges.openai import OpenAIJudge, window_of
from adjudge.judges.room import is_cut_short, room
from adjudge.judges.schema import likely_tokens, max_tokens, schema_of, shortened
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from tests.mock_openai import Call, Fault, MockOpenAI, completion, refused
from tests.sized_questions import Check, Ready


def check(page: str = "The sky is blue.") -> Check:
    return Check(context=Context.of(page=page))


def judge_of(url: str, **options: Any) -> OpenAIJudge:
    config = OpenAIConfig(url=url, model="judge-1", retries=2, backoff_s=0.001, **options)
    return OpenAIJudge(config, PromptBook(), b"a secret")


async def ask(url: str, **options: Any) -> Reply[Ready]:
    judge = judge_of(url, **options)
    try:
        return await judge.answer(check(), Asked(key=b"k" * 16))
    finally:
        await judge.close()


def sent(mock: MockOpenAI) -> Any:
    assert mock.last is not None
    return msgspec.json.decode(mock.last.body)


def refusing_over(most: int, message: str) -> Fault:
    """A server that takes at most so many `max_tokens`; MAX in its message is what it was asked for."""

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        if call.is_probe or call.max_tokens <= most:
            return None
        return refused(400, message.replace("MAX", str(call.max_tokens)))

    return fault


@pytest.mark.parametrize(
    ("most", "message"),
    [
        (240, "max_tokens must lie between 1 and 240"),
        (240, "<400> InternalError: max_tokens is outside its range, [1, 240]"),
        (240, "max_tokens is too large: MAX. At most 240 completion tokens are possible with this model."),
        (240, "max_tokens above 240 needs stream=true"),
        (240, "max_tokens参数非法。限制范围[1,240] 1210"),
        (240, "The maximum tokens you requested exceed the limit of 241. Try a value lower than 241."),
        (240, "maxOutputTokens must be from 1 (inclusive) to 241 (exclusive)"),
        (
            500,
            "max_tokens=MAX is too large for a context of 3,200 tokens with 2,700 tokens (MAX > 3200 - 2700).",
        ),
        (500, "`max_tokens` and input length exceed the context limit: 2700 + MAX > 3200"),
    ],
)
async def test_refused_max_tokens_is_asked_again_with_what_fits(most: int, message: str) -> None:
    async with MockOpenAI(fault=refusing_over(most, message)) as mock:
        reply = await ask(mock.url)
        assert reply.answer is not None
        assert mock.calls == 2
        shown = sent(mock)["response_format"]["json_schema"]["schema"]["properties"]
        assert 0.9 * most <= sent(mock)["max_tokens"] <= most
    assert 16 <= shown["analysis"]["maxLength"] <= most


async def test_room_too_small_for_any_answer_is_an_overflow() -> None:
    message = "`max_tokens` and input length exceed the context limit: 3180 + MAX > 3200"
    async with MockOpenAI(fault=refusing_over(20, message)) as mock:
        reply = await ask(mock.url)
    assert (reply.reason, mock.calls) == ("context_overflow", 1)


async def test_sum_of_prompt_and_answer_tells_the_room() -> None:
    """The server counts four bytes as a token, and names the sum and its window, but not what was asked for."""

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        both = len(call.body) // 4 + call.max_tokens
        said = f"AiError: the estimated number of input and maximum output tokens ({both}) exceeded the limit (1000)."
        body = {"errors": [{"message": said, "code": 5021}], "success": False}
        return web.json_response(body, status=413) if both > 1000 else None

    async with MockOpenAI(fault=fault) as mock:
        assert (await ask(mock.url)).answer is not None
        assert mock.calls == 2


async def test_limit_of_every_answer_is_remembered() -> None:
    async with MockOpenAI(fault=refusing_over(240, "max_tokens must lie between 1 and 240")) as mock:
        judge = judge_of(mock.url)
        for number in range(3):
            asked = Asked(key=bytes([number]) * 16)
            assert (await judge.answer(check(), asked)).answer is not None
        await judge.close()
    assert mock.calls == 4


async def test_limit_that_does_not_help_is_not_remembered() -> None:
    """Numbers are a guess until an answer comes: here they are those of the prompt."""
    async with MockOpenAI(fault=refusing_over(100, "the input exceeds its maximum tokens: 300")) as mock:
        judge = judge_of(mock.url)
        assert (await judge.answer(check(), Asked(key=b"k" * 16))).reason == "context_overflow"
        await judge.close()
    assert judge._most is None


async def test_dry_run_reckons_with_likely_answers_where_they_shrink() -> None:
    judge = judge_of("http://127.0.0.1:9/v1")
    sizes = []
    for shrinks in (False, True):
        notes = NoteTaker(judge, PromptBook(), 0, shrinks)
        await notes.answer(check(), Asked(key=bytes(16)))
        sizes += notes.sizes["Check"]
    await judge.close()
    schema = schema_of(check(), analysis=True)
    prompt = sizes[0] - max_tokens(schema)
    assert prompt + likely_tokens(shortened(schema, 0)) <= sizes[1] < prompt + max_tokens(schema) / 2


def counting(most: int) -> Fault:
    """A server that counts four bytes of a request as a token, and reads the last `most` of them alone."""

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse:
        return completion(call.answer(), tokens=min(len(call.body) // 4, most))

    return fault


@pytest.mark.parametrize(("words", "reason"), [(300, None), (4000, "context_overflow")])
async def test_prompt_whose_front_was_dropped_is_not_scored(words: int, reason: str | None) -> None:
    async with MockOpenAI(fault=counting(900)) as mock:
        judge = judge_of(mock.url)
        assert (await judge.probe())[0].is_good
        long = check("A plain word. " * (words // 3))
        reply = await judge.answer(long, Asked(key=bytes(16)))
        await judge.close()
    assert reply.reason == reason
    assert not reason or "drops" in reply.text


async def test_server_that_counts_all_prompts_alike_is_no_witness() -> None:
    async with MockOpenAI() as mock:
        judge = judge_of(mock.url)
        assert (await judge.probe())[0].is_good
        long = check("A plain word. " * 2000)
        assert (await judge.answer(long, Asked(key=bytes(16)))).answer is not None
        await judge.close()


@pytest.mark.parametrize(
    "entry",
    [
        {"max_model_len": 2000},
        {"meta": {"n_ctx": 2000, "n_ctx_train": 131072}},
        {"loaded_context_length": 2000, "max_context_length": 131072},
        {"context_length": 131072, "top_provider": {"context_length": 2000}},
    ],
)
def test_window_is_that_of_the_very_model_as_it_is_served(entry: dict[str, object]) -> None:
    listed = json.dumps({"data": [{"id": "judge", "max_model_len": 64}, {"id": "judge-1", **entry}]}).encode()
    assert window_of(models(listed), OpenAIConfig(url="http://a/v1", model="judge-1")) == 2000


@given(st.integers(100, 200_000), st.integers(50, 20_000), st.integers(17, 20_000), st.booleans())
def test_window_and_prompt_tell_the_room(prompt: int, asked: int, left: int, with_sum: bool) -> None:
    window = prompt + min(left, asked - 1)
    said = f"The window is {window:,} tokens, but the prompt has {prompt:,} and {asked:,} are asked for"
    said += f", {prompt + asked:,} together." if with_sum else "."
    if len({window, prompt, asked, prompt + asked, 400}) == 5 and window - prompt > 16:
        here, anywhere = room(said, asked, prompt * 4, 400)
        assert anywhere is None
        assert here is not None and here <= max(window - prompt, asked - window + prompt)


@given(st.text(max_size=300), st.integers(1, 10_000))
def test_no_words_of_a_server_break_it(said: str, asked: int) -> None:
    here, anywhere = room(said, asked, 4000, 400)
    assert here is None or 16 <= here < asked
    assert anywhere is None or 16 <= anywhere < asked


def test_long_words_of_a_server_are_read_in_linear_time() -> None:
    started = time.perf_counter()
    for said in ("1," * 50_000, "[" * 100_000, "9" * 100_000, "max_" * 50_000):
        room(said, 100, 4000, 400)
    assert not is_cut_short("a " * 500_000, 1_000_000, 500_000)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "text", ["\u5929\u6c14" * 3000, "| --- " * 3000, "word " * 3000, " " * 20_000, "Stra\u00dfe, " * 3000]
)
def test_prompt_that_was_read_whole_is_never_called_cut(text: str) -> None:
    words = len(text.split())
    assert not is_cut_short(text, len(text.encode()), max(words, len(text) // 16))
