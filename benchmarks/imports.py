"""What `import adjudge` costs before anything of it is used, by Python's own account of imports.

    python -m benchmarks.imports [--quick] [--json] [--only WORDS]

Each run is a new process under `python -X importtime`; the time is the cumulative one of the package itself, with files
already in the page cache.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks.timing import Row, alone, main

NAME = "import adjudge"
TIMES = 21


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Yield the median time; its `n` is how many modules of adjudge were loaded."""
    if wanted(NAME):
        _measured()  # reads the files into the page cache
        found = [_measured() for _ in range(5 if quick else TIMES)]
        milliseconds = statistics.median(time for time, _ in found)
        yield alone(NAME, milliseconds, "ms", n=found[0][1], runs=len(found))


def _measured() -> tuple[float, int]:
    """Milliseconds of one import, and the modules of adjudge that it loaded."""
    command = [sys.executable, "-X", "importtime", "-c", NAME]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines()
    cumulative = {name.strip(): time for _, time, name in (line.split("|") for line in lines if "|" in line)}
    own = [name for name in cumulative if name.split(".")[0] == "adjudge"]
    return int(cumulative["adjudge"]) / 1000, len(own)


if __name__ == "__main__":
    main(__doc__, rows)
