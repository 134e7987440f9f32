"""The store on object storage: written, read again, shared by two runs at once, compacted. A real S3 server."""

import asyncio
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import StoreError
from adjudge.engine.store import Place
from adjudge.engine.store.upkeep import compact, contents, prune
from tests.buckets import bucket
from tests.mock_openai import MockOpenAI
from tests.worlds import world

__all__ = ["bucket"]

pytest.importorskip("moto.server")


def table(out: str) -> list[dict[str, object]]:
    return pq.read_table(Path(out) / "scores.parquet").to_pylist()


async def test_stored_run_answers_again(tmp_path, bucket):
    path = world(tmp_path)
    local = await evaluate_async(RunConfig.load(path))
    first = await evaluate_async(RunConfig.load(path, store=bucket("again"), out=str(tmp_path / "first")))
    second = await evaluate_async(RunConfig.load(path, store=bucket("again"), out=str(tmp_path / "second")))
    assert table(first.out) == table(second.out) == table(local.out)
    assert (first.from_judge, second.from_judge) == (local.from_judge, 0)


async def test_two_runs_write_one_store_at_once(tmp_path, bucket):
    async with MockOpenAI(latency=0.05) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 8}
        path = world(tmp_path, judge=judge)
        load = [RunConfig.load(path, store=bucket("two"), out=str(tmp_path / name)) for name in "ab"]
        one, two = await asyncio.gather(*map(evaluate_async, load))
        assert table(one.out) == table(two.out)
        asked = mock.calls
        third = await evaluate_async(RunConfig.load(path, store=bucket("two"), out=str(tmp_path / "c")))
        assert mock.calls == asked and table(third.out) == table(one.out)


async def test_housekeeping_works_on_an_object_store(tmp_path, bucket):
    path = world(tmp_path)
    await evaluate_async(RunConfig.load(path, store=bucket("kept")))
    await evaluate_async(RunConfig.load(path, store=bucket("kept"), repeats=2))
    place = Place.of(bucket("kept"))
    before = {found.table: found.rows for found in contents(place)}
    assert before["judgments"] == 400
    compact(place)
    found = {found.table: found for found in contents(place)}
    assert found["judgments"].parts == 1 and found["judgments"].rows == 400
    again = await evaluate_async(RunConfig.load(path, store=bucket("kept"), repeats=2))
    assert again.from_judge == 0
    prune(place, judge="lexical")
    assert {found.table: found.rows for found in contents(place)}["scores"] > 0


def test_unreachable_store_is_a_store_error():
    place = Place.of("s3://bucket/x?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1")
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:1"):
        place.files()
