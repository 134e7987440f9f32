"""Compiles the kernels of a leaderboard, so that the first one finds them on disk.

    python -m adjudge.scoring.kernels.precompilation

Kernels are compiled on first use, which delays the first leaderboard after an installation by four seconds or more.
`make demo` runs this beside its run, in an order that seldom makes the two compile the same kernel: first what its
leaderboard needs last, and at the end what that begins with, which the run compiles.
"""

import gc

import numpy as np

from adjudge.scoring.kernels.comparison.claims import differences
from adjudge.scoring.kernels.comparison.paired_tests import paired_t
from adjudge.scoring.kernels.resampling.bootstrap import bootstrap
from adjudge.scoring.kernels.resampling.intervals import difference_intervals
from adjudge.scoring.kernels.resampling.rankings import leave_one_out, rankings


def precompile() -> None:
    """Use every kernel that a leaderboard of systems with scores uses, on as little as is not done without."""
    scores = np.arange(12_000.0).reshape(12, 1_000) % 7
    paired_t(scores)
    leave_one_out(scores)
    difference_intervals(scores, 0.95)
    differences(scores)
    rankings(scores.mean(axis=1), scores)
    bootstrap(scores, resamples=128)


if __name__ == "__main__":
    gc.disable()  # collections take a sixth of the time, and free nothing that matters to so short a process
    precompile()
