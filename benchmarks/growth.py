"""The most that 500,000 hostile characters cost whatever reads reports, pages, replies and URLs: CPU time and memory.

    python -m benchmarks.growth [--quick] [--json] [--only WORDS]

Each reader gets every text of the grammar of tests/growth.py at a tenth of the length, and at the full length the five
that took it longest and the five that took most memory: the worst of these is told. The aims are 2 s of CPU and 20
times the text (as Python holds it; memory is what Python's allocator gave out at most). A text is never read at once
where one is read by pieces.
"""

import heapq
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

from benchmarks.timing import Row, main
from tests.growth import GRAMMAR, READERS, hostile

CHARACTERS, QUICK_CHARACTERS = 500_000, 100_000
AIM_SECONDS, AIM_TIMES = 2.0, 20.0
_TRIED = 5

Read = Callable[[str], object]


Named = tuple[str, bool]
NAMED: tuple[Named, ...] = tuple((fragment, listed) for fragment in GRAMMAR for listed in (False, True))


def cpu_seconds(read: Read, text: str) -> float:
    """CPU time of one call."""
    start = time.process_time()
    read(text)
    return time.process_time() - start


def memory(read: Read, text: str) -> float:
    """The most that one call holds, in times of the text."""
    tracemalloc.start()
    try:
        read(text)
        return tracemalloc.get_traced_memory()[1] / sys.getsizeof(text)
    finally:
        tracemalloc.stop()


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Two rows for each reader."""
    length = QUICK_CHARACTERS if quick else CHARACTERS
    short = {named: hostile((named[0],), length // 10, named[1]) for named in NAMED}
    for name, read in READERS.items():
        if not wanted(name):
            continue
        for measure, aim, unit in ((cpu_seconds, AIM_SECONDS, "s"), (memory, AIM_TIMES, "x text")):
            worst = heapq.nlargest(_TRIED, short, key=lambda text: measure(read, short[text]))
            found, (fragment, listed) = max(
                (measure(read, hostile((fragment,), length, listed)), (fragment, listed))
                for fragment, listed in worst
            )
            made_of = f"{fragment!r}{' and a list' if listed else ''}"
            yield Row(f"{name}: {made_of}", found, aim, "aim", aim / max(found, 1e-9), unit, length, 1)


if __name__ == "__main__":
    main(__doc__, rows)
