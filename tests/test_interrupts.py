"""Ctrl-C at any moment, on a terminal and in a pipe: the run ends with 130, soon, and says that it can go on."""

import asyncio
import contextlib
import os
import pty
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.runs.run import Run
from tests.chaos import Pages, cited_world
from tests.made_runs import made_run
from tests.mock_openai import MockOpenAI
from tests.nightly import quick_or_whole
from tests.result_folders import fact_row
from tests.worlds import lines, world

# What a script runs in the background is started with SIGINT ignored, and so is all that it starts.
COMMAND = (
    "import os, signal; from adjudge.engine.commands.exits import end; signal.signal(signal.SIGINT, end); "
    "from adjudge.engine.__main__ import main; os.close({begun}); main()"
)
SECONDS = 10.0  # in which an interrupted run has ended
WHOLE = 8.0  # seconds over which the moments are spread: imports, parsing, judging


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
    """The exit code of a run that gets SIGINT after `moment` seconds, and the seconds it took to end.

    The seconds begin with our own code: an interpreter that has not loaded it yet ends in its own way.
    """
    loop = asyncio.get_running_loop()
    begins, begun = os.pipe()
    arguments = [
        sys.executable,
        "-c",
        COMMAND.format(begun=begun),
        "evaluate",
        str(config),
        "--out",
        str(out),
        "--store",
        f"{out}/s",
    ]
    with terminal() if on_terminal else contextlib.nullcontext(asyncio.subprocess.PIPE) as stream:
        process = await asyncio.create_subprocess_exec(
            *arguments, stdout=stream, stderr=stream, start_new_session=True, pass_fds=(begun,)
        )
        os.close(begun)
        reading = asyncio.ensure_future(process.communicate())
        try:
            with os.fdopen(begins) as until_begun:
                await asyncio.to_thread(until_begun.read)
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
    async with Pages(0.5) as pages, MockOpenAI(latency=1.0) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 64}
        config = cited_world(folder, pages, systems=20, tasks=40, judge=judge)

        async def one(number: int) -> tuple[int, float]:
            async with room:
                moment = WHOLE * (number + chance.random()) / runs
                return await interrupted(config, folder / str(number), moment, number % 2 == 0)

        return await asyncio.gather(*map(one, range(runs)))


def assert_all_ended(found: list[tuple[int, float]]) -> None:
    print(f"\n{len(found)} interrupted runs ended, the slowest in {max(took for _, took in found):.2f} s")
    assert [each for each in found if each[0] != 130 or each[1] > SECONDS] == []


@pytest.mark.nightly
@pytest.mark.timeout(200)
async def test_runs_end_when_interrupted(tmp_path):
    assert_all_ended(await interrupt(tmp_path, quick_or_whole(8, 20), 4))


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_hundred_interrupted_runs_end(tmp_path):
    assert_all_ended(await interrupt(tmp_path, 100, 4))


async def test_run_ends_while_it_reads_its_files(tmp_path):
    """A file that never ends, as a pipe whose writer waits, or a report that takes minutes to parse."""
    config = world(tmp_path, systems=1, tasks=1)
    os.mkfifo(tmp_path / "reports" / "endless.jsonl")
    code, took = await interrupted(config, tmp_path / "run", 2.5, on_terminal=False)
    assert code == 130 and took < SECONDS


STUCK = """
import asyncio, signal, threading, time
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.runs.run import Run

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a script runs in the background

async def stuck():
    print("at work", flush=True)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("cancelled", flush=True)

interruptible(stuck(), ends_s={seconds})
"""


@pytest.mark.parametrize(("seconds", "again"), [(0.5, False), (60.0, True)], ids=["in time", "second signal"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_that_ignores_its_cancellation_is_ended(seconds, again, number):
    code = STUCK.replace("{seconds}", str(seconds))
    with subprocess.Popen([sys.executable, "-c", code], stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "at work\n"
        process.send_signal(number)
        assert process.stdout.readline() == "cancelled\n"
        if again:
            process.send_signal(number)  # within a second: the same one, passed on twice
            time.sleep(1.2)
            assert process.poll() is None
            process.send_signal(number)
        assert process.wait(30) == 130
        assert "the same command continues" in process.stderr.read()


STARTING = """
import asyncio, os, signal, threading
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.runs.run import Run

async def starts_a_thread():
    with threading._active_limbo_lock:  # held by Thread.start
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass
    await asyncio.sleep(20)

try:
    interruptible(starts_a_thread())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_signal_while_a_thread_starts_ends_the_work():
    done = subprocess.run([sys.executable, "-c", STARTING], capture_output=True, text=True, timeout=30)
    assert done.stdout == "interrupted\n", done.stderr


IMPORTING = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
for name in ("atexit", "gc", "signal"):
    sys.modules.pop(name, None)  # as in an interpreter that has just started


def importing(event, given):
    if event == "import" and given[0] == "{module}":
        os.kill(os.getpid(), {number})


sys.addaudithook(importing)
sys.argv[1:] = ["store", "ls", "nowhere"]
from adjudge.engine.__main__ import main

main()
"""


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("atexit", signal.SIGINT),
        ("signal", signal.SIGINT),
        *(
            (module, number)
            for module in ("adjudge.engine.commands.exits", "argparse", "msgspec", "adjudge.engine.store")
            for number in (signal.SIGINT, signal.SIGTERM)
        ),
    ],
)
def test_a_signal_during_an_import_ends_a_command_quietly(module, number):
    code = IMPORTING.replace("{module}", module).replace("{number}", str(int(number)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("package", ["adjudge", "adjudge.engine"])
def test_packages_of_the_command_import_nothing(package):
    """They are imported before the command can mind a signal."""
    code = "import sys; had = {*sys.modules}; exec(open(sys.argv[1]).read()); print({*sys.modules} - had)"
    arguments = [sys.executable, "-I", "-S", "-c", code, str(import_module(package).__file__)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30)
    assert done.stdout == "set()\n", done.stderr


LOADING = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
from adjudge.engine.commands import main


def load(name):
    try:  # as in a callback, whose exceptions are dropped
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
    except KeyboardInterrupt:
        print("lost", flush=True)


main.import_module = load
main.main(["store", "ls", "nowhere"])
"""


def test_an_interrupt_while_a_command_loads_is_not_lost():
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr


WRITING = """
import os, pathlib, signal, sys
from adjudge.engine.commands import export


def write(form, run, out, *rest):
    (out / "half.json").write_text("{")
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        pass
    yield out / "half.json"


export._write = write
sys.argv[1:] = ["export", sys.argv[1], "--format", "scores", "--out", sys.argv[2]]
from adjudge.engine.__main__ import main

main()
"""


def test_a_request_to_end_leaves_nothing_half_written(tmp_path):
    run = made_run(tmp_path / "run", ["a", "b"], 4)
    out = tmp_path / "out"
    arguments = [sys.executable, "-c", WRITING, str(run), str(out)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30)
    assert done.returncode == 130 and done.stderr.startswith("adjudge: interrupted"), done.stderr
    assert list(out.iterdir()) == []


IMPORTED = """
import os, shutil, signal, sys
from adjudge.engine.commands import import_results


def send():
    for _ in range({times}):  # as a terminal and a parent process pass on the same one
        os.kill(os.getpid(), {number})
        for _ in range(1000):
            pass


def before(name, home):
    step = getattr(home, name)

    def interrupted(*given, **named):
        send()
        return step(*given, **named)

    setattr(home, name, interrupted)


before("{step}", import_results)
if {times} > 1:
    before("rmtree", shutil)  # and while what was written is taken away
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[1:] = ["import", sys.argv[1], "--format", "deepresearch-bench", "--out", sys.argv[2]]
from adjudge.engine.__main__ import main

main()
"""


@pytest.mark.parametrize(
    ("step", "number", "times"),
    [
        ("write_whole", signal.SIGTERM, 2),
        ("_bounded", signal.SIGINT, 1),
        ("score_table", signal.SIGTERM, 1),
        ("write_leaderboard", signal.SIGINT, 2),
    ],
)
def test_an_import_that_is_interrupted_leaves_nothing(tmp_path, step, times, number):
    code = (
        IMPORTED.replace("{step}", step).replace("{number}", str(int(number))).replace("{times}", str(times))
    )
    results = tmp_path / "results"
    lines(results / "a" / "validated.jsonl", [fact_row(1, {"https://a.org": ["supported"]})])
    arguments = [sys.executable, "-c", code, str(results), str(tmp_path / "run")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "adjudge: interrupted\n")
    assert [one.name for one in tmp_path.iterdir()] == [results.name]


FINISHING = """
import os, signal, sys, threading
from adjudge.engine.commands import interruption, run_folder

signalled, write = threading.Event(), run_folder.write_leaderboard
cancel = interruption._Ending.signalled


def minded(self, *given):
    cancel(self, *given)
    self._loop.call_soon_threadsafe(self._loop.call_later, 0.2, signalled.set)  # when the cancelled task has run


def interrupted(*given):
    os.kill(os.getpid(), {number})
    assert signalled.wait(10)
    write(*given)


interruption._Ending.signalled, run_folder.write_leaderboard = minded, interrupted
sys.argv[1:] = ["evaluate", sys.argv[1], "--out", sys.argv[2]]
from adjudge.engine.__main__ import main

main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_interrupted_at_its_leaderboard_completes(tmp_path, number):
    config, out = world(tmp_path, systems=2, tasks=3), tmp_path / "run"
    code = FINISHING.replace("{number}", str(int(number)))
    arguments = [sys.executable, "-c", code, str(config), str(out)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "everything is scored" in done.stderr, done.stderr
    assert Run.open(out).record.state == "finished" and "6 scorecards" in done.stdout
    assert {"leaderboard.json", "leaderboard.html", "scores.parquet"} <= {one.name for one in out.iterdir()}
    assert not list(out.glob(".*.tmp"))


TWICE = """
import atexit, os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
from adjudge.engine.commands import main


def send(*_):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass


{again}
sys.argv[1:] = ["store", "ls", "nowhere"]
from adjudge.engine.commands import store

store.run = {run}
from adjudge.engine.__main__ import main

main()
"""


@pytest.mark.parametrize(
    ("again", "run", "code"),
    [
        ("main._ended = lambda *said: send() or 130", "send", 130),
        ("atexit.register(send)", "send", 130),
        ("atexit.register(send)", "lambda options: 0", 0),
    ],
    ids=["says so", "ends", "done"],
)
def test_an_interrupt_of_what_ends_changes_nothing(again, run, code):
    arguments = [sys.executable, "-c", TWICE.replace("{again}", again).replace("{run}", run)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_interruptible_work_gives_its_result():
    async def work() -> int:
        return 3

    before = signal.getsignal(signal.SIGINT)
    assert interruptible(work()) == 3 and signal.getsignal(signal.SIGINT) == before
