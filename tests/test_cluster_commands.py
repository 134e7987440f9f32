"""`adjudge evaluate --cluster` as people run it: signals and unreachable addresses."""

import asyncio
import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.chaos import done, evaluate
from tests.mock_openai import MockOpenAI
from tests.worlds import METRICS, world

pytest.importorskip("ray")


def table(out: Path) -> list[dict[str, object]]:
    return pq.read_table(out / "scores.parquet").to_pylist()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_stopped_run_has_stored_everything_and_resumes(tmp_path, signum):
    async with MockOpenAI(latency=0.1) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 8}
        cluster = {"address": "local", "evaluators": 2, "flush_seconds": 60}
        path = world(tmp_path, systems=6, tasks=8, judge=judge, cluster=cluster)
        process = await evaluate(path)
        while mock.calls < 100 and process.returncode is None:
            await asyncio.sleep(0.05)
        if signum == signal.SIGTERM:
            process.terminate()
        else:
            os.killpg(process.pid, signum)  # as a terminal does
        errors = await done(process)
        assert process.returncode == 130 and "continues from there" in errors
        asked, mock.latency = mock.calls, 0.0
        again = await evaluate(path, "--cluster", "none")
        errors = await done(again)
        assert again.returncode == 0, errors
        assert mock.calls <= 480 + 2 * 8 and asked >= 100
        assert len(table(tmp_path / "run")) == 48 * METRICS


@pytest.mark.timeout(120)
async def test_unreachable_address_gives_one_line(tmp_path):
    process = await evaluate(world(tmp_path), "--cluster", "127.0.0.1:1")
    errors = await done(process)
    assert process.returncode == 2
    assert errors.startswith("adjudge: cluster: 127.0.0.1:1:") and len(errors.strip().splitlines()) == 1


@pytest.mark.timeout(120)
async def test_local_cluster_is_its_own_where_another_runs(tmp_path, monkeypatch):
    """Ray would connect to the cluster that the environment names, and then refuse to say how large its own is."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    process = await evaluate(world(tmp_path, systems=1, tasks=1), "--cluster", "local")
    errors = await done(process)
    assert process.returncode == 0, errors
