"""What starting costs: `import adjudge`, and commands that only look something up, each in a new process.

    python -m benchmarks.imports [--quick] [--json] [--only WORDS]

The import is timed by Python's own account (`-X importtime`), commands by the clock and by the processor time of their
process (user and system). Files are in the page cache. Completion is asked for as bash does by argcomplete.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.timing import QUICK_RUNS, Row, alone, main
from tests.examples import shipped

NAME = "import adjudge"
TIMES = 21
COMMAND_TIMES = 11
ADJUDGE = Path(sys.executable).with_name("adjudge")
EXAMPLE = shipped("quickstart") / "adjudge.yaml"
LINE = "adjudge evaluate --pro"


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Yield the median time of the import; its `n` is how many modules of adjudge were loaded. Then each command's."""
    if wanted(NAME):
        _measured()  # reads the files into the page cache
        found = [_measured() for _ in range(5 if quick else TIMES)]
        milliseconds = statistics.median(time for time, _ in found)
        yield alone(NAME, milliseconds, "ms", n=found[0][1], runs=len(found))
    with tempfile.TemporaryDirectory() as folder:
        yield from _commands(Path(folder), QUICK_RUNS if quick else COMMAND_TIMES, wanted)


def _measured() -> tuple[float, int]:
    """Milliseconds of one import, and the modules of adjudge that it loaded."""
    command = [sys.executable, "-X", "importtime", "-c", NAME]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines()
    cumulative = {name.strip(): time for _, time, name in (line.split("|") for line in lines if "|" in line)}
    own = [name for name in cumulative if name.split(".")[0] == "adjudge"]
    return int(cumulative["adjudge"]) / 1000, len(own)


def _commands(folder: Path, times: int, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Clock and processor time of commands on the run of the example."""
    run, store = str(folder / "run"), str(folder / "store")
    commands = {
        "adjudge --help": ["--help"],
        "tab completion": [],
        "adjudge store ls": ["store", "ls", store],
        "adjudge show": ["show", run, "--task", "heat-pumps", "--system", "atlas"],
    }
    if not any(wanted(f"{name}, {what}") for name in commands for what in ("clock", "processor")):
        return
    _run(["evaluate", str(EXAMPLE), "--out", run, "--store", store], {}, codes=(0, 3))
    asked = {
        "_ARGCOMPLETE": "1",
        "COMP_LINE": LINE,
        "COMP_POINT": str(len(LINE)),
        "_ARGCOMPLETE_STDOUT_FILENAME": str(folder / "answer"),
    }
    for name, words in commands.items():
        environment = {} if words else asked
        _run(words, environment)  # reads the files into the page cache
        found = [_run(words, environment) for _ in range(times)]
        for what, taken in zip(("clock", "processor"), zip(*found, strict=True), strict=True):
            yield alone(f"{name}, {what}", statistics.median(taken), "s", runs=times)


def _run(words: list[str], environment: dict[str, str], codes: tuple[int, ...] = (0,)) -> tuple[float, float]:
    """Seconds by the clock, and of processor time, that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(
        [ADJUDGE, *words], env={**os.environ, **environment}, capture_output=True, text=True
    )
    clock = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in codes, done.stderr
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main(__doc__, rows)
