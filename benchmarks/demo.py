"""What a newcomer waits for: `make demo` in a fresh clone, from nothing installed to the leaderboard.

    python -m benchmarks.demo [--quick] [--json]

The last commit is cloned into a temporary folder, where `make demo` makes an environment, installs what is needed from
the package index or its cache, compiles the kernels and judges the example. Needs git, make and the index. The median
of three (quick: one); what is downloaded the first time is in the cache for the others.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

from benchmarks.timing import ROOT, Row, alone, main

RUNS, QUICK_RUNS = 3, 1


def demo() -> tuple[float, float]:
    """Seconds of `make demo` in a new clone, and those after everything was installed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        began = time.perf_counter()
        subprocess.run(["make", ".venv/demo.stamp"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        installed = time.perf_counter()
        subprocess.run(["make", "demo"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began, time.perf_counter() - installed


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """The whole, and the part after installation."""
    if not wanted("make demo, fresh clone"):
        return
    taken = [demo() for _ in range(QUICK_RUNS if quick else RUNS)]
    whole, after = (statistics.median(each) for each in zip(*taken, strict=True))
    yield alone("make demo, fresh clone", whole, "s", runs=len(taken))
    yield alone("make demo, fresh clone, of which after installation", after, "s", runs=len(taken))


if __name__ == "__main__":
    main(__doc__, rows)
