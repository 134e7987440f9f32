"""A run's folder while it is at work, and after it was stopped: run.json says so, and commands use what is there."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from adjudge.engine.config.settings import ConfigError
from adjudge.engine.runs.pulse import FILE, STALE_S, Reading, alive, beating, held, last_pulse
from adjudge.engine.runs.record import Due, RunRecord
from adjudge.engine.runs.scores import provisional, settled
from tests.commands import run as command
from tests.made_record import made_record
from tests.mock_openai import Call, MockOpenAI
from tests.worlds import ADJUDGE, world

SYSTEMS, TASKS, DONE = 3, 6, 80  # of 180 questions


@asynccontextmanager
async def at_work(folder: Path, done: int) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.Event]]:
    """`adjudge evaluate` in `folder`, whose judge has answered `done` questions, and no more until the event is set."""
    on = asyncio.Event()

    async def keeps_waiting(mock: MockOpenAI, call: Call) -> None:
        if mock.calls > done:
            await on.wait()

    async with MockOpenAI(fault=keeps_waiting) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 2}
        config = world(folder, systems=SYSTEMS, tasks=TASKS, judge=judge)
        process = await asyncio.create_subprocess_exec(
            *ADJUDGE, "evaluate", str(config), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            while mock.calls <= done:
                assert process.returncode is None
                await asyncio.sleep(0.02)
            yield process, on
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()
            on.set()


async def adjudge(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The exit code of a command beside the loop, and what it prints."""
    return await asyncio.to_thread(command, capsys, *arguments)


async def test_running_run_says_so_and_its_commands_work(tmp_path, capsys):
    run = tmp_path / "run"
    async with at_work(tmp_path, done=DONE) as (process, _):
        record = RunRecord.read(run)
        assert record.state == "running" and record.judge.name == "mock" and record.judge.fingerprint
        assert record.due is not None and set(record.due.systems.values()) == {TASKS}
        pulse = last_pulse(run)
        assert pulse is not None and pulse.pid == process.pid
        code, out, _ = await adjudge(capsys, "leaderboard", run, "--json")
        assert code == 0
        board = json.loads(out)
        assert "still running" in board["provisional"][0] and board["provisional"][0] in board["notes"]
        assert 0 < board["metrics"][0]["n_tasks"] < TASKS
        assert all(row["coverage"] == 1.0 for row in board["metrics"][0]["standings"]), "nobody lags behind"
        code, _, error = await adjudge(capsys, "evaluate", tmp_path / "adjudge.yaml")
        assert code == 2 and "another run is at work" in error and f"process {process.pid}" in error
    assert RunRecord.read(run).state == "stopped"


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT])
async def test_stopped_run_says_so_and_is_continued(tmp_path, capsys, signum):
    run = tmp_path / "run"
    before = time.time()
    async with at_work(tmp_path, done=DONE) as (process, on):
        process.send_signal(signum)
        await process.wait()
        record = RunRecord.read(run)
        assert record.state == "stopped" and before < record.ended < time.time()
        assert record.why == ("its process was killed" if signum == signal.SIGKILL else "interrupted")
        system = next(iter(record.systems))
        code, out, error = await adjudge(capsys, "compare", run, *record.systems[:2], "--json")
        assert code == 0 and json.loads(out)["metrics"]
        assert "provisional" in error and record.why in error
        code, out, error = await adjudge(
            capsys, "show", run, "--task", next(iter(record.tasks)), "--system", system
        )
        assert code == 0 and "provisional" in error
        on.set()
        code, _, error = await adjudge(capsys, "evaluate", tmp_path / "adjudge.yaml")
        assert code in (0, 3), error
    after = RunRecord.read(run)
    assert after.state == "finished" and after.due is None and after.run != record.run
    assert not (run / FILE).exists()
    code, out, _ = await adjudge(capsys, "leaderboard", run, "--json")
    assert code == 0 and not json.loads(out)["provisional"]


async def test_failed_start_leaves_the_earlier_run(tmp_path, capsys):
    async with MockOpenAI() as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock"}
        config = world(tmp_path, systems=2, tasks=2, judge=judge)
        code, _, error = await adjudge(capsys, "evaluate", config)
        assert code in (0, 3), error
    before = (tmp_path / "run" / "run.json").read_bytes()
    code, _, error = await adjudge(capsys, "evaluate", config, "--store", tmp_path / "other")
    assert code == 1 and "nothing was stored" in error, error
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    code, out, _ = await adjudge(capsys, "leaderboard", tmp_path / "run", "--json")
    assert code == 0 and not json.loads(out)["provisional"]


async def test_judge_that_never_answers_leaves_the_earlier_run(tmp_path, capsys):
    config = world(tmp_path, systems=2, tasks=2)
    with (tmp_path / "reports/system1.jsonl").open("a") as file:
        file.write('{"task_id": "0", "system": "blank", "text": ""}\n')  # scored without a judge
    code, _, error = await adjudge(capsys, "evaluate", config)
    assert code in (0, 3), error
    before = (tmp_path / "run" / "run.json").read_bytes()
    nobody = ("--judge", "openai:http://127.0.0.1:9/v1#m", "--serial")
    code, _, error = await adjudge(capsys, "evaluate", config, "--system", "blank", "system0", *nobody)
    assert code == 1 and "nothing was stored" in error, error
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_folder_is_held_by_one_run(tmp_path):
    assert not alive(tmp_path)
    with held(tmp_path), beating(tmp_path, Reading):
        assert alive(tmp_path)
        with pytest.raises(ConfigError, match="another run is at work"), held(tmp_path):
            pass
    assert not alive(tmp_path)
    with held(tmp_path):
        pass


def test_run_of_another_machine_lives_while_its_pulse_is_fresh(tmp_path):
    with beating(tmp_path, Reading):
        pulse = last_pulse(tmp_path)
    assert pulse is not None
    file = tmp_path / FILE
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(pulse, boot="another")))
    assert alive(tmp_path)
    old = time.time() - STALE_S - 1
    os.utime(file, (old, old))
    assert not alive(tmp_path)


def test_damaged_pulse_is_no_sign_of_life(tmp_path):
    for content in (b"", b"{", b"[]", b'{"boot": 3}', b"\xff" * 100):
        (tmp_path / FILE).write_bytes(content)
        assert last_pulse(tmp_path) is None and not alive(tmp_path)


def test_only_complete_tasks_count_before_the_end(tmp_path):
    """Of two systems and three tasks, one task lacks a system's report and one was never reported on by it."""
    rows = [
        {"protocol": "p", "system": system, "task_id": task, "sample": 0, "repeat": 0, "metric": metric, "value": 1.0}
        for system, task in (("a", "1"), ("b", "1"), ("a", "2"), ("a", "3"))
        for metric in ("m", "n")
    ]  # fmt: skip
    due = Due(scorecards=5, systems={"a": 3, "b": 2}, tasks={"1": 2, "2": 2, "3": 1})
    record = made_record({}, {}, ["a", "b"], state="running", due=due)
    kept, said = settled(record, pa.Table.from_pylist(rows))
    assert sorted({row["task_id"] for row in kept.to_pylist()}) == ["1", "3"]
    assert said.startswith("provisional: 4 of 5 scorecards; still running; standings are over the 2 of ")
    assert provisional(made_record({}, {}, []), kept) == ""


def test_nothing_scored_yet_is_a_leaderboard_without_metrics(tmp_path):
    from adjudge.engine.statistics.build import leaderboard_so_far
    from adjudge.engine.statistics.placement import Statistics
    from adjudge.engine.store import Place
    from adjudge.engine.store.scorecards import score_table

    record = made_record({}, {}, ["a"], state="running", due=Due(scorecards=5, systems={"a": 5}, tasks={}))
    board = leaderboard_so_far(record, score_table(Place.of(str(tmp_path)), "made"), Statistics())
    assert board.metrics == () and "0 of 5" in board.provisional[0]
