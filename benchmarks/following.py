"""What following a run costs it: `python -m benchmarks.following [--quick] [--json]`.

The same run of rubrics over 12 systems x 60 tasks (quick: 6), judged by a local server that takes 0.1 s for an
answer, is made with and without `adjudge view` and an open stream of its figures, alternating, each time with a new
store. Rows: the processor time of `adjudge evaluate` (user and system, its workers included) with a viewer and without;
its wall time likewise; and the processor time of the viewer per second, from its first event to the end of the run.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from benchmarks.timing import QUICK_RUNS, RUNS, Row, alone, main
from tests.processes import free_port
from tests.worlds import ADJUDGE, world

SYSTEMS, TASKS, QUICK_TASKS = 12, 60, 6
_TICK = os.sysconf("SC_CLK_TCK")


class Spent(msgspec.Struct, frozen=True):
    """What a run took: processor seconds, wall seconds, and the viewer's processor seconds per second."""

    cpu: float
    wall: float
    viewer: float = 0.0


class Watcher:
    """`adjudge view` on the run in `out`, with a stream of figures that is read to its end."""

    def __init__(self, out: Path) -> None:
        self._process = subprocess.Popen(
            [*ADJUDGE, "view", str(out), "--port", "0", "--json"], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        url = json.loads(self._process.stdout.readline())["url"]
        self._first = threading.Event()
        self._began = (0.0, 0.0)
        self._thread = threading.Thread(target=self._read, args=(f"{url}events",), daemon=True)
        self._thread.start()

    def _read(self, url: str) -> None:
        with suppress(OSError), urllib.request.urlopen(url) as stream:
            for line in stream:
                if line.startswith(b"data: ") and not self._first.is_set():
                    self._began = (time.perf_counter(), self._cpu())
                    self._first.set()

    def _cpu(self) -> float:
        words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / _TICK

    def end(self) -> float:
        """The viewer's processor seconds per second from its first event on."""
        assert self._first.wait(60)
        began, before = self._began
        share = (self._cpu() - before) / (time.perf_counter() - began)
        self._process.terminate()
        self._process.wait()
        return share


def run(folder: Path, *, followed: bool) -> Spent:
    """Evaluate the world in `folder` from nothing."""
    for name in ("run", "store"):
        shutil.rmtree(folder / name, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(
        [*ADJUDGE, "evaluate", str(folder / "adjudge.yaml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    watcher = None
    if followed:
        while not (folder / "run" / "run.json").exists():
            time.sleep(0.05)
        watcher = Watcher(folder / "run")
    assert process.wait() in (0, 3)
    wall = time.perf_counter() - began
    after = resource.getrusage(
        resource.RUSAGE_CHILDREN
    )  # the viewer is not waited for yet, so it does not count
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(cpu, wall, 0.0 if watcher is None else watcher.end())


@contextmanager
def judge() -> Iterator[str]:
    """The URL of a server that takes 0.1 s for an answer."""
    port = free_port()
    command = [sys.executable, "-m", "tests.mock_openai", "--port", str(port), "--latency", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            for _ in range(300):
                with suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/stats").close()
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Make runs, every other one followed."""
    tasks, runs = (QUICK_TASKS, QUICK_RUNS) if quick else (TASKS, RUNS)
    with tempfile.TemporaryDirectory() as name, judge() as url:
        folder = Path(name)
        server = {"backend": "openai", "url": url, "model": "mock", "max_in_flight": 32}
        world(folder, systems=SYSTEMS, tasks=tasks, judge=server)
        run(folder, followed=False)
        plain, followed = [], []
        for number in range(runs):
            for watched in (True, False) if number % 2 else (False, True):
                (followed if watched else plain).append(run(folder, followed=watched))
    n = SYSTEMS * tasks
    for what, of in (("processor time", lambda one: one.cpu), ("wall time", lambda one: one.wall)):
        with_it, without = (statistics.median(map(of, side)) for side in (followed, plain))
        ratio = statistics.median(of(b) / of(a) for a, b in zip(followed, plain, strict=True))
        yield Row(
            f"following: {what} of a run that is followed",
            with_it,
            without,
            "not followed",
            ratio,
            "s",
            n,
            runs,
        )
    share = statistics.median(one.viewer for one in followed)
    yield alone("following: the viewer's processor time while it follows", share, "s per s", n=n)


if __name__ == "__main__":
    main(__doc__, rows)
