"""Ctrl-C at any moment, on a terminal and in a pipe: the run ends with 130, soon, and says that it can go on."""

import asyncio
import contextlib
import os
import pty
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos import Pages, cited_world
from tests.mock_openai import MockOpenAI

COMMAND = "from adjudge.engine.__main__ import main; main()"
SECONDS = 10.0  # in which an interrupted run has ended
WHOLE = float(
    os.environ.get("WH", "6")
)  # seconds over which the moments are spread: imports, parsing, judging


@contextlib.contextmanager
def terminal() -> Iterator[int]:
    """The far end of a new terminal, whose output is read and dropped."""
    near, far = pty.openpty()
    loop = asyncio.get_running_loop()

    def drop() -> None:
        with contextlib.suppress(OSError):
            os.read(near, 1 << 16)

    loop.add_reader(near, drop)
    try:
        yield far
    finally:
        loop.remove_reader(near)
        os.close(near)
        os.close(far)


async def interrupted(config: Path, out: Path, moment: float, on_terminal: bool) -> tuple[int, float]:
    """The exit code of a run that gets SIGINT after `moment` seconds, and the seconds it took to end."""
    loop = asyncio.get_running_loop()
    arguments = [
        sys.executable,
        "-c",
        COMMAND,
        "evaluate",
        str(config),
        "--out",
        str(out),
        "--store",
        f"{out}/s",
    ]
    with terminal() if on_terminal else contextlib.nullcontext(asyncio.subprocess.PIPE) as stream:
        process = await asyncio.create_subprocess_exec(
            *arguments, stdout=stream, stderr=stream, start_new_session=True
        )
        reading = asyncio.ensure_future(process.communicate())
        try:
            await asyncio.wait([reading], timeout=moment)
            assert not reading.done(), "the run was over before it was interrupted"
            started = loop.time()
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            await asyncio.wait([reading], timeout=SECONDS * 3)
            took = loop.time() - started
            return (-1 if process.returncode is None else process.returncode), took
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await reading


async def interrupt(folder: Path, runs: int, at_once: int) -> list[tuple[int, float]]:
    """Interrupt `runs` runs at moments spread over a run's life, every other one on a terminal."""
    chance = random.Random(runs)
    room = asyncio.Semaphore(at_once)
    async with Pages(0.5) as pages, MockOpenAI(latency=float(os.environ.get("LAT", "0.3"))) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 64}
        config = cited_world(folder, pages, systems=20, tasks=40, judge=judge)

        async def one(number: int) -> tuple[int, float]:
            async with room:
                moment = WHOLE * (number + chance.random()) / runs
                return await interrupted(config, folder / str(number), moment, number % 2 == 0)

        return await asyncio.gather(*map(one, range(runs)))


def assert_all_ended(found: list[tuple[int, float]]) -> None:
    assert [each for each in found if each[0] != 130 or each[1] > SECONDS] == []


@pytest.mark.timeout(200)
async def test_runs_end_when_interrupted(tmp_path):
    assert_all_ended(await interrupt(tmp_path, 20, 4))


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_hundred_interrupted_runs_end(tmp_path):
    assert_all_ended(await interrupt(tmp_path, 100, 4))
