"""Who answered: the served model, its system and whether a schema bound it are kept, and a change is told."""

import asyncio
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from aiohttp import web

from adjudge.engine.commands.doctor import examine
from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.run import Run
from adjudge.judges import Asked, Context, Reply
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from adjudge.scoring.deepresearch_bench.fact_questions import Backed, Verdicts
from tests.mock_openai import Call, MockOpenAI, completion, raw, refused
from tests.worlds import world

QUESTIONS = [Backed(context=Context.of(page="p"), statements=(f"Fact {number}.",)) for number in range(3)]


def answered(call: Call, model: str, system: str) -> web.Response:
    """What the mock answers, as `model` on `system`."""
    body = msgspec.json.decode(completion(call.answer(), model=model).body)
    return raw(msgspec.json.encode(body | {"system_fingerprint": system}))


async def replies(url: str, count: int = 3) -> list[Reply[Verdicts]]:
    judge = OpenAIJudge(OpenAIConfig(url=url, model="mock", backoff_s=0.001), PromptBook(), b"secret")
    try:
        return [await judge.answer(one, Asked(key=bytes(16))) for one in QUESTIONS[:count]]
    finally:
        await judge.close()


async def test_reply_says_who_gave_it(caplog: pytest.LogCaptureFixture) -> None:
    async def changing(mock: MockOpenAI, call: Call) -> web.Response:
        return answered(call, "mock-2024-08-06", "fp_1" if mock.calls < 2 else "fp_2")

    async with MockOpenAI(fault=changing) as mock:
        found = await replies(mock.url)
    assert {(one.served, one.constrained) for one in found} == {("mock-2024-08-06", True)}
    assert found[0].system_fingerprint == "fp_1" and found[-1].system_fingerprint == "fp_2"
    told = [
        one.getMessage()
        for one in caplog.records
        if "its system changed from fp_1 to fp_2" in one.getMessage()
    ]
    assert len(told) == 1


async def test_reply_without_its_schema_says_so() -> None:
    async def loose(mock: MockOpenAI, call: Call) -> web.Response:
        if call.constrained:
            return refused(400, "response_format is not supported here")
        return completion('{"items": {"c01": "supported"}}')

    async with MockOpenAI(fault=loose) as mock:
        found = await replies(mock.url, 2)
    assert [one.constrained for one in found] == [False, False] and found[1].answer is not None


async def test_run_keeps_who_answered_and_what_was_probed(tmp_path: Path) -> None:
    async def two(mock: MockOpenAI, call: Call) -> web.Response:
        return answered(call, "mock" if call.is_probe or call.hash[0] % 4 else "other", "fp_1")

    async with MockOpenAI(serves="mock", window=20_000, fault=two) as mock:
        path = world(tmp_path, systems=3, judge={"backend": "openai", "url": mock.url, "model": "mock"})
        result = await evaluate_async(RunConfig.load(path))
        (judge,) = [
            one for one in await asyncio.to_thread(examine, RunConfig.load(path)) if one.what == "judge"
        ]
    assert "window of 20,000 tokens by its list of models" in judge.found
    assert "tokens per second" in judge.found and "asked by json_schema" in judge.found
    run = Run.open(tmp_path / "run")
    ((verdict,),) = run.record.probed.values()
    assert (verdict.where, verdict.window, verdict.window_by) == (mock.url, 20_000, "its list of models")
    assert (verdict.served, verdict.system_fingerprint) == ("mock", "fp_1") and verdict.manner is not None
    (note,) = [note for note in result.leaderboard.notes if "models" in note]
    assert note.startswith("rubrics: answers come from 2 models (mock ") and "other " in note
    rows = [
        row
        for part in (tmp_path / "store/judgments").glob("*.parquet")
        for row in pq.read_table(part).to_pylist()
    ]
    assert {row["served"] for row in rows} == {"mock", "other"}
    assert {(row["system_fingerprint"], row["constrained"]) for row in rows} == {("fp_1", True)}
