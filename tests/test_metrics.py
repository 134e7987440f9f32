"""Prometheus metrics, parsed by its own client and equal to the stored tables."""

import asyncio

import aiohttp
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.store import Place
from adjudge.engine.store.journal import live_parts
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.parts import scan
from adjudge.engine.telemetry.endpoint import metrics_served
from adjudge.engine.telemetry.metrics import Family, page
from tests.chaos import Pages, cited_world, done, evaluate
from tests.exposition import by, check, check_scorecards, rows, samples
from tests.mock_openai import Call, MockOpenAI, completion
from tests.processes import free_port
from tests.worlds import lines, text, world

IN_FLIGHT = 8


async def test_metrics_of_a_run_match_the_stored_tables(tmp_path):
    async def fault(mock: MockOpenAI, call: Call):
        return completion(None, refusal="No.") if call.hash[0] < 40 else None

    async with MockOpenAI(fault=fault) as mock, Pages(0.0) as pages:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 16}
        path = cited_world(tmp_path, pages, systems=3, tasks=4, judge=judge)
        await evaluate_async(RunConfig.load(path))
        found = samples((tmp_path / "run" / "metrics.prom").read_text())
        check(found, rows(tmp_path / "store", "judgments"))
        check_scorecards(found, tmp_path / "run", tmp_path / "store")
        assert by(found, "adjudge_scorecards_total", "status").keys() == {("scored",), ("unscored",)}
        kept = rows(tmp_path / "store", "pages")
        assert by(found, "adjudge_pages_total", "result") == {("read",): len(kept)}
        assert by(found, "adjudge_page_bytes_total") == {(): pc.sum(kept["size"]).as_py()}
        written = sum(file.stat().st_size for file in (tmp_path / "store").rglob("*.parquet"))
        assert sum(by(found, "adjudge_store_bytes_total", "table").values()) == written

        again = await evaluate_async(RunConfig.load(path))
        found = samples((tmp_path / "run" / "metrics.prom").read_text())
        hits = {("judgments",): again.from_store, ("pages",): again.pages_from_store}
        assert by(found, "adjudge_store_hits_total", "table") == hits
        assert not by(found, "adjudge_questions_total", "status") and not by(
            found, "adjudge_page_bytes_total"
        )
        check_scorecards(found, tmp_path / "run", tmp_path / "store")


async def test_resumed_run_counts_only_its_own_work(tmp_path):
    async with MockOpenAI(latency=0.1) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": IN_FLIGHT}
        path = world(tmp_path, systems=6, tasks=10, judge=judge)
        process = await evaluate(path)
        while not list((tmp_path / "store").glob("judgments/*.parquet")):
            await asyncio.sleep(0.02)
            assert process.returncode is None
        process.kill()
        await done(process)
        mock.latency = 0.0
        place = Place.of(str(tmp_path / "store"))
        before = live_parts(place / "judgments")  # the last of them is still a journal
        kept = sum(map(len, scan(place, JUDGMENTS, ["key"])))
        resumed = await evaluate(path)
        errors = await done(resumed)
        assert resumed.returncode == 0, errors
    new = [file for file in (tmp_path / "store" / "judgments").glob("*.parquet") if file.name not in before]
    found = samples((tmp_path / "run" / "metrics.prom").read_text())
    check(found, pa.concat_tables([pq.read_table(file) for file in sorted(new)]))
    check_scorecards(found, tmp_path / "run", tmp_path / "store")
    assert by(found, "adjudge_store_hits_total", "table") == {("judgments",): kept} and kept > 0


async def test_series_count_does_not_depend_on_the_input(tmp_path):
    counts = []
    for name, systems in (("few", 2), ("many", 20)):
        path = world(tmp_path / name, systems=systems, tasks=3)
        rows = [
            {"task_id": "0", "system": f'a "quoted"\nname {n}', "text": text("x", n)} for n in range(systems)
        ]
        lines(tmp_path / name / "reports" / "odd.jsonl", rows)
        await evaluate_async(RunConfig.load(path))
        found = samples((tmp_path / name / "run" / "metrics.prom").read_text())
        assert not [value for _, labels in found for _, value in labels if "quoted" in value]
        counts.append(len(found))
    assert counts[0] == counts[1] < 150


async def scraped(session: aiohttp.ClientSession, url: str, token: str) -> tuple[int, str]:
    try:
        async with session.get(url, headers={"Authorization": f"Bearer {token}"}) as response:
            return response.status, await response.text()
    except aiohttp.ClientConnectorError:
        return 0, ""


async def test_run_can_be_watched_with_the_token(tmp_path, monkeypatch):
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("ADJUDGE_METRICS", address)
    monkeypatch.setenv("ADJUDGE_TOKEN", "right")
    async with MockOpenAI(latency=0.05) as mock, aiohttp.ClientSession() as session:
        judge = {
            "backend": "openai",
            "urls": [mock.url, mock.at("drop")],
            "model": "mock",
            "max_in_flight": 8,
        }
        path = world(tmp_path, systems=4, tasks=5, judge=judge)
        running = asyncio.ensure_future(evaluate_async(RunConfig.load(path)))
        status, found = 0, {}
        while not by(found, "adjudge_questions_total") or not by(found, "adjudge_replica_questions"):
            assert not running.done()
            await asyncio.sleep(0.01)
            status, body = await scraped(session, f"http://{address}/metrics", "right")
            found = samples(body)
        assert status == 200
        assert (await scraped(session, f"http://{address}/metrics", "wrong"))[0] == 401
        assert (await scraped(session, f"http://{address}/", "right"))[0] == 404
        assert 0 < by(found, "adjudge_scorecards_in_flight")[()] <= 16
        assert set(by(found, "adjudge_replica_questions", "replica")) <= {(mock.url,), (mock.at("drop"),)}
        await running
        assert (await scraped(session, f"http://{address}/metrics", "right"))[0] == 0


@pytest.mark.parametrize("address", ["9400", "127.0.0.1:no", "127.0.0.1:99999", "203.0.113.1:9400"])
async def test_invalid_metrics_address_is_a_configuration_error(monkeypatch, address):
    monkeypatch.setenv("ADJUDGE_METRICS", address)
    monkeypatch.delenv("ADJUDGE_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="ADJUDGE_METRICS"):
        async with metrics_served(None):
            pass


def test_families_of_several_processes_are_summed():
    def family(*values: tuple[str, float]) -> Family:
        return Family(
            "made", "counter", "Made", tuple(("made_total", {"kind": kind}, n) for kind, n in values)
        )

    text = page([family(("a", 1), ("b", 2)), family(("a", 10), ("c", 3))]).decode()
    assert by(samples(text), "made_total", "kind") == {("a",): 11, ("b",): 2, ("c",): 3}
