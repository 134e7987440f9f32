"""Times two sides doing the same work in the same run, alternating: medians, their ratio, and the machine.

A benchmark is a module with `rows(quick, wanted)` and the last line `main(__doc__, rows)`; it is run as

    python -m benchmarks.NAME [--quick] [--json] [--only WORDS]
"""

import argparse
import compileall
import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "judges", "fetchers", "scoring", "prompts")

RUNS = 5
QUICK_RUNS = 1
SETTLE_SECONDS = 0.1  # between the sides: thread pools of one may spin on for some milliseconds


class Row(msgspec.Struct, frozen=True):
    """One comparison. `ours` and `peer` are medians over `runs`, in `unit`; a ratio above 1 means ours is better.

    `n` is the amount of work a run does. `peer` and `ratio` are None for a figure that has no other side.
    """

    name: str
    ours: float
    peer: float | None
    peer_name: str
    ratio: float | None
    unit: str
    n: int
    runs: int


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    time.sleep(SETTLE_SECONDS)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternating(ours: Callable[[], T], peer: Callable[[], T], runs: int) -> tuple[list[T], list[T]]:
    """What both sides gave, run by run, changing which goes first. Ours is called once before, to load its code."""
    ours()
    sides: tuple[tuple[Callable[[], T], list[T]], ...] = ((ours, []), (peer, []))
    for run in range(runs):
        for side, given in sides if run % 2 == 0 else sides[::-1]:
            given.append(side())
    return sides[0][1], sides[1][1]


def compare(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    peer_name: str,
    n: int,
    quick: bool,
    passes: int = 1,
) -> Row:
    """Times both sides, alternating; ours is the mean of `passes`, where one is too short beside the peer's."""

    def ours_again() -> None:
        for _ in range(passes):
            ours()

    times = alternating(
        lambda: seconds(ours_again) / passes, lambda: seconds(peer), QUICK_RUNS if quick else RUNS
    )
    our_time, peer_time = map(statistics.median, times)
    return Row(name, our_time, peer_time, peer_name, peer_time / our_time, "s", n, len(times[0]))


def alone(name: str, value: float, unit: str, *, n: int = 1, runs: int = 1) -> Row:
    """A figure to be stated, with nothing to compare it with."""
    return Row(name, value, None, "", None, unit, n, runs)


def machine() -> str:
    """Processor, cores and versions, in one line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text().splitlines()
            if "model name" in line
        ]
        model = models[0] if models else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The rows for people, one line each."""
    for row in rows:
        line = f"{row.name:<58} {row.ours:>10.4g} {row.unit}"
        if row.peer is not None and row.ratio is not None:
            line += f"   {row.peer_name}: {row.peer:.4g} {row.unit}   x {row.ratio:.3g}"
        yield line


def _compile_bytecode() -> None:
    """Leaves what an installer leaves; where Python may write none, each process would compile the source again."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=1)


def main(doc: str | None, rows: Callable[[bool, Callable[[str], bool]], Iterable[Row]]) -> None:
    """Reads the command line, runs `rows(quick, wanted)` and prints them; progress goes to stderr."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller problems, one run")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--only", default="", metavar="WORDS", help="only rows whose name contains this")
    options = parser.parse_args()
    print(machine(), file=sys.stderr)
    _compile_bytecode()
    done: list[Row] = []
    for row in rows(options.quick, lambda name: options.only.lower() in name.lower()):
        done.append(row)
        print(next(table([row])), file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(done)).decode())
