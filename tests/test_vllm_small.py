"""A real small model behind a real vLLM server: real tokens, a real window, and answers as weak as they come."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from adjudge.judges import Question, Reply
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.server import OpenAIConfig
from tests import local_vllm
from tests.local_vllm import Server
from tests.real_model import real_model
from tests.sized_questions import Check, asked, fits_schema, quick, report

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
]

MANY = 8
WINDOW = 2048  # of the 8,192 that the model has: prompts up to it are soon read


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Processors without bfloat16 compute float32 several times faster.
    options = ("--dtype", "float32", "--max-num-seqs", "16", "--max-model-len", f"{WINDOW}")
    with local_vllm.server(*options, model=real_model()) as running:
        yield running


def judge_of(server: Server, **settings: Any) -> OpenAIJudge:
    config = OpenAIConfig(url=server.url, model="judge", **{"retries": 0, **settings})
    return OpenAIJudge(config, local_vllm.BOOK, local_vllm.SECRET)


@pytest_asyncio.fixture(loop_scope="module")
async def judge(server: Server) -> AsyncIterator[OpenAIJudge]:
    made = judge_of(server)
    yield made
    await made.close()


async def answers(judge: OpenAIJudge, questions: list[Question[Any]]) -> list[Reply[Any]]:
    return await asyncio.gather(*(judge.answer(q, asked(n)) for n, q in enumerate(questions)))


async def test_probe_finds_the_window_and_the_strictest_format(judge: OpenAIJudge) -> None:
    [verdict] = await judge.probe(300)
    assert verdict.is_good and verdict.window == WINDOW
    assert verdict.manner is not None and verdict.manner.format == "json_schema"


async def test_constraint_alone_makes_its_answers_readable(server: Server, judge: OpenAIJudge) -> None:
    questions: list[Question[Any]] = [quick(report("one", 4), number) for number in range(MANY)]
    bound = await answers(judge, questions)
    assert all(reply.answer is not None and fits_schema(questions[0], reply.text) for reply in bound)
    free = judge_of(server, omit=("response_format", "max_tokens"), request={"max_tokens": 60})
    loose = await answers(free, questions)
    await free.close()
    assert sum(reply.answer is not None for reply in loose) < MANY
    assert {reply.reason for reply in loose if reply.answer is None} <= {
        "judge_unparseable",
        "answer_truncated",
    }


async def test_same_question_has_the_same_answer(judge: OpenAIJudge) -> None:
    question = Check(context=report("same", 2))
    first = await judge.answer(question, asked(5))
    assert first.text and first.text == (await judge.answer(question, asked(5))).text


async def test_prompt_beyond_the_window_is_an_overflow(judge: OpenAIJudge) -> None:
    [reply] = await answers(judge, [quick(report("long", 150), 0)])
    assert reply.reason == "context_overflow"
    assert f"{WINDOW}" in reply.text


async def test_answer_that_is_cut_is_truncated(server: Server) -> None:
    made = judge_of(server)
    question = Check(context=report("cut", 2))
    made._requests.form(question).budgets = (4, 6)
    [reply] = await answers(made, [question])
    await made.close()
    assert reply.reason == "answer_truncated"
