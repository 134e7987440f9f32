"""What is compiled for a leaderboard: nothing that few systems and tasks can do without, and no numba of strings."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from adjudge.scoring.kernels.base import arrays
from adjudge.scoring.kernels.base.arrays import Floats
from adjudge.scoring.kernels.comparison import claims
from adjudge.scoring.kernels.comparison.claims import Differences, differences
from adjudge.scoring.kernels.resampling import rankings as ranked
from adjudge.scoring.kernels.resampling.rankings import LeaveOneOut, Rankings, leave_one_out, rankings

_BEGIN = """
import numpy as np
from adjudge.scoring.kernels.comparison import claims
from adjudge.scoring.kernels.resampling import bootstrap, rankings
scores = np.random.default_rng(0).random(({systems}, {tasks}))
"""
_USE = """
rankings.rankings(scores.mean(axis=1), bootstrap.bootstrap(scores, resamples=200).means)
rankings.leave_one_out(scores)
claims.differences(scores)
"""
_FEW = """
kernels = [rankings._rank_resamples, rankings._leave_out, claims._test_pairs]
print(*[one.__name__ for one in kernels if one._made is not None])
"""
_LISTENING = """
import numba.core.event as event

class Listener(event.Listener):
    def on_start(self, begun): modules.append(begun.data["dispatcher"].py_func.__module__)
    def on_end(self, ended): pass

modules = []
event.register("numba:compile", Listener())
"""
_HEAVY = """
heavy = ("numba.cpython.unicode", "numba.np.arraymath", "numba.misc.quicksort")
print(*sorted({name for name in modules if name.startswith(heavy)}))
"""


def _said(folder: Path, *source: str) -> str:
    """What the source prints in a process of its own, with nothing compiled yet."""
    found = subprocess.run(
        [sys.executable, "-c", "".join(source)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


def test_few_systems_and_tasks_compile_no_kernels_of_ranks(tmp_path: Path) -> None:
    assert _said(tmp_path, _BEGIN.format(systems=4, tasks=6), _USE, _FEW) == ""


def test_kernels_compile_none_of_numba_for_strings_or_sorting(tmp_path: Path) -> None:
    assert _said(tmp_path, _LISTENING, _BEGIN.format(systems=10, tasks=60), _USE, _HEAVY) == ""


def test_precompilation_compiles_all_that_a_leaderboard_uses(tmp_path: Path) -> None:
    ahead = "from adjudge.scoring.kernels import precompilation\nprecompilation.precompile()\n"
    said = _said(tmp_path, ahead, _LISTENING, _BEGIN.format(systems=15, tasks=300), _USE, "print(*modules)")
    assert said == ""


def _scores(systems: int, tasks: int, boards: int = 20) -> Iterator[Floats]:
    """Scores with and without ties, zeros of both signs and gaps."""
    for seed in range(boards):
        rng = np.random.default_rng(seed)
        scores = rng.random((systems, tasks)) - 0.5
        if seed % 3:
            scores = np.round(scores * (seed % 3) * 2) / 2
        if seed % 2:
            scores[rng.random(scores.shape) < 0.1] = np.nan
        yield scores


def _bytes(found: Differences | LeaveOneOut | Rankings) -> list[bytes]:
    names = getattr(found, "_fields", None) or found.__struct_fields__
    return [np.asarray(getattr(found, name)).tobytes() for name in names]


def _spare_kernels(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Let the next `steps` be plain Python, as if no kernel had been compiled."""
    patch.setattr(arrays, "_plain_steps", 0)
    patch.setattr(arrays, "_PLAIN_STEPS", steps)
    for kernel in (*vars(claims).values(), *vars(ranked).values()):
        if isinstance(kernel, arrays._Kernel):
            patch.setattr(kernel, "_made", None)


@pytest.mark.parametrize(
    ("systems", "tasks"), [(2, 1), (4, 5), (4, 8), (3, 12), (3, 13), (9, 6), (5, 40), (12, 30), (2, 300)]
)
def test_plain_python_gives_the_same_bits_as_kernels(
    systems: int, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[bytes]:
        uses = (differences, leave_one_out)
        every = [_bytes(use(scores)) for scores in _scores(systems, tasks, 6) for use in uses]
        return [one for each in every for one in each]

    _spare_kernels(monkeypatch, 10**9)
    plain = found()
    assert claims._test_pairs._made is None and ranked._leave_out._made is None  # type: ignore[attr-defined]
    _spare_kernels(monkeypatch, 0)
    assert found() == plain
    assert claims._test_pairs._made is not None  # type: ignore[attr-defined]


def test_a_process_takes_only_so_many_steps_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    _spare_kernels(monkeypatch, 10_000)
    boards = 0
    for scores in _scores(4, 6, 100):
        differences(scores)
        if claims._test_pairs._made is not None:  # type: ignore[attr-defined]
            break
        boards += 1
    assert 5 <= boards <= 20


@pytest.mark.parametrize("scores", [_scores(9, 900), _scores(20, 20), _scores(4, 12), _scores(9, 14)])
def test_steps_are_not_fewer_than_those_of_plain_python(
    scores: Iterator[Floats], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is at most 16 lines of Python. A tracer counts them, since times depend on the machine."""
    _spare_kernels(monkeypatch, 10**9)
    board, lines = next(scores), 0

    def count(frame: FrameType, event: str, argument: object) -> object:
        nonlocal lines
        lines += event == "line" and frame.f_code.co_filename == claims.__file__
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        differences(board)
    finally:
        sys.settrace(before)
    assert lines <= 16 * arrays._plain_steps


@pytest.mark.parametrize("systems", range(2, ranked.FEW + 1))
@pytest.mark.parametrize("resamples", [1, 300])
def test_ranks_of_few_systems_are_those_of_the_kernel(
    systems: int, resamples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[list[bytes]]:
        return [_bytes(rankings(means[:, 0], means)) for means in _scores(systems, resamples)]

    plain = found()
    monkeypatch.setattr(ranked, "FEW", 0)
    assert found() == plain
