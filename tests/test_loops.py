"""Replies that end in repetition are cut, counted and not asked again; what only looks alike is left as it is."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adjudge.judges import Asked, Context, Reply
from adjudge.judges.loops import LOOP, SHORTEST, loop_begins
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from adjudge.scoring.deepresearch_bench.fact_questions import Backed, Verdicts
from tests.examples_of_questions import REPORT
from tests.mock_openai import Call, MockOpenAI, completion, replying

SAID = "The page says so. It also says that the sky is blue, and this is what the statement claims. "

ANSWER = '{"items": {"c01": "supported"}}'


async def ask(url: str, **options: Any) -> Reply[Verdicts]:
    judge = OpenAIJudge(OpenAIConfig(url=url, model="mock", **options), PromptBook(), b"a secret")
    question = Backed(context=Context.of(page="The sky is blue."), statements=("The sky is blue.",))
    try:
        return await judge.answer(question, Asked(key=bytes(16)))
    finally:
        await judge.close()


rounds = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Nd"]), min_size=1, max_size=300)


@given(st.text(max_size=500), rounds, st.integers(0, 299))
def test_any_repetition_is_found_near_where_it_begins(before: str, one: str, more: int) -> None:
    times = max(7, 2 * SHORTEST // len(one))
    text = before + "\n#\n" + one * times + one[: more % len(one)]
    begins = loop_begins(text)
    assert begins is not None and begins <= len(before) + 3 + 2 * len(one)
    assert len(text) - begins >= SHORTEST


@given(st.lists(st.text("abcdefghij ", min_size=5, max_size=30), min_size=40, max_size=400), st.booleans())
def test_text_that_goes_on_is_no_loop(words: list[str], exact: bool) -> None:
    text = " ".join(f"{word} {chr(0x4E00 + place)}" for place, word in enumerate(words))
    assert loop_begins(text, exact) is None


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("", False),
        (" " * SHORTEST, True),
        ('{"analysis": "' + "\n" * 900, True),
        ('{"analysis": "' + "\\n" * 900, True),
        ("好" * 399, False),
        ("这一页支持该陈述。" * 60, True),
        (SAID * 5, False),
        (SAID * 8, True),
        ("".join(f"Step {n}: look at the page. " for n in range(10, 60)), True),
        ("{" + ", ".join(f'"c{n:02d}": {{"mark": 7}}' for n in range(10, 90)), False),
        (REPORT[: len(REPORT) // 2], False),
        (SAID * 9 + "But then it ends.", False),
    ],
)
def test_loops_are_told_from_likeness(text: str, loops: bool) -> None:
    assert (loop_begins(text) is not None) == loops
    assert loop_begins(text, exact=True) is None or loops


async def test_looping_answer_is_cut_and_asked_once() -> None:
    """More tokens would be spent on the same words."""
    reply = '{"analysis": "Let me think about it. ' + SAID * 40
    async with MockOpenAI(fault=replying(lambda: completion(reply, "length"))) as mock:
        found = await ask(mock.url)
        assert mock.calls == 1
    assert (found.reason, found.finish_reason) == ("answer_truncated", LOOP)
    assert len(found.text) < 300 and found.text.startswith('{"analysis": "Let me think')


async def test_looping_thought_is_asked_once() -> None:
    body = lambda: completion(None, "length", reasoning_content="Hmm, wait. Let me check. " * 90)  # noqa: E731
    async with MockOpenAI(fault=replying(body)) as mock:
        found = await ask(mock.url, thinking=True)
        assert mock.calls == 1
    assert (found.reason, found.finish_reason) == ("answer_truncated", LOOP)


async def test_blanks_after_a_whole_answer_are_no_loop() -> None:
    async with MockOpenAI(fault=replying(lambda: completion(ANSWER + "\n" * 3_000, "length"))) as mock:
        found = await ask(mock.url)
    assert found.answer is not None and found.finish_reason == "length"


def event(text: str, **choice: Any) -> bytes:
    return (
        b"data: "
        + json.dumps({"choices": [{"index": 0, "delta": {"content": text}, **choice}]}).encode()
        + b"\n\n"
    )


class Streaming:
    """Streams pieces until the client hangs up; `sent` counts them."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self.pieces = pieces
        self.sent = 0

    async def __call__(self, mock: MockOpenAI, call: Call) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(call.http)
        for piece in self.pieces:
            await response.write(event(piece))
            self.sent += 1
            await asyncio.sleep(0)
        await response.write(event("", finish_reason="stop") + b"data: [DONE]\n\n")
        return response


def endless(begin: str, one: str) -> Iterator[str]:
    yield begin
    for _ in range(1_000_000):
        yield one


@pytest.mark.parametrize(
    ("begin", "one", "answered"),
    [('{"analysis": "', SAID, False), ('{"analysis": ', "\n  \n", False), (ANSWER, "\n", True)],
)
async def test_streamed_loop_is_stopped_early(begin: str, one: str, answered: bool) -> None:
    stream = Streaming(endless(begin, one))
    async with MockOpenAI(fault=stream) as mock:
        found = await asyncio.wait_for(ask(mock.url, stream=True), 30)
        assert mock.calls == 1
    assert stream.sent < 200_000
    assert found.usage.completion_tokens > 20
    if answered:
        assert found.answer is not None
    else:
        assert (found.reason, found.finish_reason) == ("answer_truncated", LOOP)


async def test_long_stream_without_a_loop_is_read_whole() -> None:
    pieces = ["Well. ", *(f"Point {n * n} is {n % 13} of {n}. " for n in range(3_000)), "\n", ANSWER]
    stream = Streaming(iter(pieces))
    async with MockOpenAI(fault=stream) as mock:
        found = await ask(mock.url, stream=True)
    assert found.answer is not None and stream.sent == len(pieces)


async def test_mark_of_the_prompt_is_not_kept() -> None:
    """Who reads an analysis does not learn what encloses the texts of a later prompt."""
    seen: list[str] = []

    async def repeats(mock: MockOpenAI, call: Call) -> web.StreamResponse:
        mark = call.messages.decode().rpartition("<<")[2][:12]
        seen.append(mark)
        return completion(ANSWER.replace("{", '{"analysis": "Between ' + mark + ' stands the page.", ', 1))

    async with MockOpenAI(fault=repeats) as mock:
        found = await ask(mock.url)
    assert found.answer is not None and seen and len(seen[0]) == 12
    assert seen[0] not in found.text and "Between * stands" in found.answer.analysis
