"""SIGKILL at random to every kind of process: the table stays the same, and few questions are asked twice."""

import asyncio
import random
import signal
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.chaos import KINDS, Pages, cited_world, done, evaluate, raylets
from tests.mock_openai import MockOpenAI

pytest.importorskip("ray")

IN_FLIGHT = 32
LATENCY = 0.2
FLUSH = 2.0
RATE = IN_FLIGHT / LATENCY

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's pipes to its processes
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def table(out: Path) -> list[dict[str, object]]:
    return pq.read_table(out / "scores.parquet").to_pylist()


def stored(store: Path, name: str) -> list[bytes]:
    files = sorted((store / name).glob("*.parquet"))
    return [key for file in files for key in pq.read_table(file, columns=["key"])["key"].to_pylist()]


async def disturbed(
    tmp_path: Path, *, tasks: int, interval: float, kills: list[str], driver: float | None
) -> dict[str, float]:
    """Run a world undisturbed in one process and disturbed on a cluster, compare them, and return what it cost.

    Every `interval` seconds a process of the next kind in `kills` is killed. If `driver` is None, each kind is killed
    once; else they repeat until the end, and after `driver` seconds the driver is killed once and started again.
    """
    chance = random.Random(1)
    async with MockOpenAI(latency=LATENCY) as mock, Pages(0.05) as pages:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": IN_FLIGHT}
        path = cited_world(tmp_path, pages, systems=6, tasks=tasks, judge=judge)
        calm = await evaluate(path, "--out", str(tmp_path / "calm"), "--store", str(tmp_path / "calm-store"))
        errors = await done(calm)
        assert calm.returncode in (0, 3), errors
        questions, mock.calls = mock.calls, 0
        with raylets(3, cpus=4) as cluster:
            wild = cited_world(
                tmp_path,
                pages,
                systems=6,
                tasks=tasks,
                judge={**judge, "replicas": 2},
                cluster={
                    "address": cluster.address,
                    "evaluators": 3,
                    "fetchers": 2,
                    "flush_seconds": FLUSH,
                    "hung_seconds": 20,
                },
            )
            began = time.monotonic()
            process = await evaluate(wild)
            while mock.calls < 20 and process.returncode is None:
                await asyncio.sleep(0.1)
            counts = {"kills": 0, "drivers": 0}
            next_kill = time.monotonic() + interval
            while process.returncode is None:
                await asyncio.sleep(0.1)
                now = time.monotonic()
                if driver is not None and now - began > driver and not counts["drivers"]:
                    process.send_signal(signal.SIGKILL)
                    await done(process)
                    counts["drivers"] = 1
                    process = await evaluate(wild)
                if now > next_kill and kills and process.returncode is None:
                    next_kill = now + interval
                    kind = kills[0]
                    if cluster.kill(kind, chance):
                        kills.append(kills.pop(0)) if driver is not None else kills.pop(0)
                        counts["kills"] += 1
            errors = await done(process)
            assert process.returncode == calm.returncode, errors
            seconds = time.monotonic() - began
        asked_again = mock.calls - questions
    assert table(tmp_path / "run") == table(tmp_path / "calm")
    for name in ("judgments", "pages"):
        kept = stored(tmp_path / "store", name)
        assert set(kept) == set(stored(tmp_path / "calm-store", name))
    deaths = counts["kills"] + counts["drivers"]
    allowed = deaths * (RATE * (FLUSH + 0.5) + IN_FLIGHT)
    assert 0 <= asked_again <= allowed
    return {"questions": questions, "again": asked_again, "allowed": allowed, "seconds": seconds, **counts}


@pytest.mark.soak
@pytest.mark.timeout(240)
async def test_run_survives_one_kill_of_each_kind(tmp_path, capsys):
    found = await disturbed(tmp_path, tasks=12, interval=2.0, kills=list(KINDS), driver=None)
    with capsys.disabled():
        print(found)
    assert found["kills"] == len(KINDS)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_run_survives_a_kill_every_15_seconds_and_a_driver_kill(tmp_path, capsys):
    found = await disturbed(tmp_path, tasks=360, interval=15.0, kills=list(KINDS), driver=100.0)
    with capsys.disabled():
        print(found)
    assert found["seconds"] >= 180 and found["kills"] >= 8 and found["drivers"] == 1
