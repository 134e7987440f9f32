"""SIGKILL at any moment: only what was in flight is asked again, and the result is the same."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.mock_openai import MockOpenAI
from tests.worlds import ADJUDGE, world

IN_FLIGHT = 8
LATENCY = 0.05


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
            config = world(folder, systems=6, tasks=7, judge=judged_by(mock))
            process = await evaluate(config, folder / "run", folder / "store")
            _, errors = await process.communicate()
            assert process.returncode == 0, errors.decode()
            return mock.calls

    return asyncio.run(run()), table(folder / "run")


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
async def test_killed_run_resumes_where_it_was(tmp_path, calm, signum):
    await kill_and_resume(tmp_path, calm, signum, moment=random.Random(signum).uniform(0.1, 0.8))


@pytest.mark.soak
@pytest.mark.parametrize("number", range(20))
async def test_killed_runs_ask_again_what_was_in_flight(tmp_path, calm, number):
    await kill_and_resume(tmp_path, calm, signal.SIGKILL, moment=random.Random(number).random() * 0.95)


async def kill_and_resume(tmp_path: Path, calm, signum: int, moment: float) -> None:
    """End a run by `signum` after a share `moment` of its questions, go on, and compare with the `calm` run."""
    questions, undisturbed = calm
    async with MockOpenAI(latency=LATENCY) as mock:
        config = world(tmp_path, systems=6, tasks=7, judge=judged_by(mock))
        process = await evaluate(config, tmp_path / "run", tmp_path / "store")
        while mock.calls < moment * questions:
            await asyncio.sleep(0.01)
            assert process.returncode is None
        os.kill(process.pid, signum)
        await process.communicate()
        mock.latency = 0.0
        assert process.returncode in (-signal.SIGKILL, 130)
        assert not (tmp_path / "run" / "scores.parquet").exists()
        resumed = await evaluate(config, tmp_path / "run", tmp_path / "store")
        _, errors = await resumed.communicate()
        assert resumed.returncode == 0, errors.decode()
        asked_again = mock.calls - questions

    assert table(tmp_path / "run") == undisturbed
    assert 0 <= asked_again <= IN_FLIGHT


async def test_background_run_of_a_script_can_be_stopped(tmp_path):
    async with MockOpenAI(latency=LATENCY) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 4}
        config = world(tmp_path, systems=6, tasks=7, judge=judge)
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
