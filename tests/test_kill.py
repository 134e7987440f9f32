"""SIGKILL at any moment: nothing written is lost or asked again, and the result is the same."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adjudge.engine.store.parts import FLUSH_SECONDS
from tests.mock_openai import MockOpenAI
from tests.worlds import ADJUDGE, world

IN_FLIGHT = 8
LATENCY = 0.1
WRITING_SECONDS = 3  # how long writing a part may take on a busy disk, while answers keep arriving


async def evaluate(config: Path, out: Path, store: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *ADJUDGE,
        "evaluate",
        str(config),
        "--out",
        str(out),
        "--store",
        str(store),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )


def judged_by(mock: MockOpenAI) -> dict[str, object]:
    return {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": IN_FLIGHT}


def table(out: Path) -> list[dict[str, object]]:
    return pq.read_table(out / "scores.parquet").to_pylist()


@pytest.fixture(scope="module")
def calm(tmp_path_factory) -> tuple[int, list[dict[str, object]]]:
    """The number of questions of an undisturbed run, and its table."""
    folder = tmp_path_factory.mktemp("calm")

    async def run() -> int:
        async with MockOpenAI() as mock:
            config = world(folder, systems=6, tasks=14, judge=judged_by(mock))
            process = await evaluate(config, folder / "run", folder / "store")
            _, errors = await process.communicate()
            assert process.returncode == 0, errors.decode()
            return mock.calls

    return asyncio.run(run()), table(folder / "run")


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
async def test_killed_run_resumes_where_it_was(tmp_path, calm, signum):
    questions, undisturbed = calm
    async with MockOpenAI(latency=LATENCY) as mock:
        config = world(tmp_path, systems=6, tasks=14, judge=judged_by(mock))
        process = await evaluate(config, tmp_path / "run", tmp_path / "store")
        moment = random.Random(signum).randrange(int(0.6 * questions), int(0.8 * questions))
        while mock.calls < moment:
            await asyncio.sleep(0.01)
            assert process.returncode is None
        os.kill(process.pid, signum)
        await process.communicate()
        assert process.returncode in (-signal.SIGKILL, 130)
        assert not (tmp_path / "run" / "scores.parquet").exists()
        parts = (tmp_path / "store" / "judgments").glob("*.parquet")
        lost = mock.calls - sum(pq.read_metadata(part).num_rows for part in parts)

        resumed = await evaluate(config, tmp_path / "run", tmp_path / "store")
        _, errors = await resumed.communicate()
        assert resumed.returncode == 0, errors.decode()
        asked_again = mock.calls - questions

    assert table(tmp_path / "run") == undisturbed
    unwritten = IN_FLIGHT / LATENCY * (FLUSH_SECONDS + WRITING_SECONDS) if signum == signal.SIGKILL else 0
    assert 0 <= asked_again == lost <= unwritten + IN_FLIGHT
    assert unwritten + IN_FLIGHT < 0.6 * questions


async def test_background_run_of_a_script_can_be_stopped(tmp_path):
    async with MockOpenAI(latency=LATENCY) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 4}
        config = world(tmp_path, systems=6, tasks=14, judge=judge)
        process = await asyncio.create_subprocess_exec(
            *ADJUDGE,
            "evaluate",
            str(config),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
        while mock.calls < 8:
            await asyncio.sleep(0.01)
            assert process.returncode is None
        process.terminate()
        _, errors = await process.communicate()
    assert process.returncode == 130, errors.decode()
