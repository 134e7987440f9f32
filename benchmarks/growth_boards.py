"""How leaderboards grow with systems: `python -m benchmarks.growth_boards [--quick] [--json] [--only WORDS]`.

100, 200 and 400 systems x 100 tasks (quick: 50, 100, 200), of whose scores one in 100 is missing, as one metric, as ten
headline metrics, and as one by ten domains: CPU time of the largest, and the exponent with which the time grows over
the three sizes (the slope of a line through their logarithms). Then the sizes of files for the largest. The first board
of the process, which loads compiled code, is not timed.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.tables.files import write_leaderboard
from benchmarks.leaderboard import write_run
from benchmarks.timing import Row, main

SIZES, QUICK_SIZES, TASKS = (100, 200, 400), (50, 100, 200), 100
AIM_EXPONENT = 1.2
AIM_BYTES = {"leaderboard.json": 2e6, "leaderboard.md": 4e5}
SHAPES = {"one metric": (1, 1, 2.0), "ten headline metrics": (10, 1, 8.0), "ten domains": (1, 10, 8.0)}
"""Metrics, domains, and the seconds that the largest may take."""


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """For each shape two rows, then one for each file."""
    sizes = QUICK_SIZES if quick else SIZES
    with tempfile.TemporaryDirectory() as name:
        made = {
            (shape, size): _made(Path(name) / f"{shape} {size}", size, metrics, domains)
            for shape, (metrics, domains, _) in SHAPES.items()
            for size in (10, *sizes)
            if wanted(shape) or shape == "one metric"
        }
        for shape, (_, _, aim) in SHAPES.items():
            if not wanted(shape):
                continue
            build_leaderboard([made[shape, 10]])
            spent = [_seconds(made[shape, size]) for size in sizes]
            slope = float(np.polyfit(np.log(sizes), np.log(spent), 1)[0])
            said = f"{shape}, {sizes[-1]} systems x {TASKS} tasks"
            yield Row(said, spent[-1], aim, "aim", aim / spent[-1], "s", sizes[-1] * TASKS, 1)
            yield Row(
                f"{shape}: exponent over {', '.join(map(str, sizes))} systems",
                slope,
                AIM_EXPONENT,
                "aim",
                AIM_EXPONENT / max(slope, 1e-9),
                "",
                sizes[-1] * TASKS,
                1,
            )
        board = build_leaderboard([made["one metric", sizes[-1]]])
        yield from _sizes(board, Path(name) / "files", wanted)


def _made(folder: Path, systems: int, metrics: int, domains: int) -> Path:
    folder.mkdir()
    write_run(folder, systems, TASKS, metrics=metrics, domains=domains, unscored=0.01)
    return folder


def _seconds(folder: Path) -> float:
    began = time.process_time()
    build_leaderboard([folder])
    return time.process_time() - began


def _sizes(board: Leaderboard, folder: Path, wanted: Callable[[str], bool]) -> Iterator[Row]:
    write_leaderboard(board, folder)
    for name, aim in AIM_BYTES.items():
        size = float((folder / name).stat().st_size)
        if wanted(name):
            systems = len(board.metrics[0].standings)
            yield Row(f"{name} of {systems} systems", size, aim, "aim", aim / size, "bytes", systems, 1)


if __name__ == "__main__":
    main(__doc__, rows)
