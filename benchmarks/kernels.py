"""The kernels beside scipy, pandas, numpy's fastest formulation and one matrix product of the same shape.

    python -m benchmarks.kernels [--quick] [--json] [--only WORDS]

Both sides get the same arrays and produce the same outputs, which are compared before the clock runs. The full run
takes a quarter of an hour, almost all of it in pandas; `--only bootstrap` runs only rows with that word.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain
from os import environ

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adjudge.scoring.kernels.agreement.correlations import Coefficient, correlations
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap, bootstrap
from benchmarks import kernels_pairs
from benchmarks.numpy_bootstrap import Summary, numpy_bootstrap
from benchmarks.timing import Row, alone, compare, main

Scores = NDArray[np.float64]
Wanted = Callable[[str], bool]
RESAMPLES = 10_000
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")

FIRST_CALLS = """
import numpy as np
from adjudge.scoring.kernels.resampling.bootstrap import bootstrap
from adjudge.scoring.kernels.agreement.correlations import correlations
scores = np.random.default_rng(0).normal(size=(5, 100))
bootstrap(scores, resamples=200)
correlations(scores)
correlations(np.round(scores))
"""


def rows(quick: bool, wanted: Wanted) -> Iterator[Row]:
    """The rows whose names are wanted."""
    return chain(
        bootstrap_rows(quick, wanted),
        correlation_rows(quick, wanted),
        kernels_pairs.rows(quick, wanted),
        () if quick else compile_rows(wanted),
    )


def leaderboard(systems: int, tasks: int, missing: float = 0.05) -> Scores:
    """Scores around 50 with a common difficulty of each task, some of them missing."""
    generator = np.random.default_rng(1)
    skills = generator.normal(50.0, 5.0, (systems, 1))
    scores = skills + generator.normal(0.0, 8.0, tasks) + generator.normal(0.0, 12.0, (systems, tasks))
    scores[generator.random(scores.shape) < missing] = np.nan
    return np.asarray(scores, dtype=np.float64)


def bootstrap_rows(quick: bool, wanted: Wanted) -> Iterator[Row]:
    """Means, percentile (ours: and BCa) intervals, all pairs' intervals, ranks, tau and rho; 5% missing."""
    shapes = [(20, 100), (50, 1_000)] if quick else [(20, 100), (50, 1_000), (100, 10_000)]
    for systems, tasks in shapes:
        name = f"bootstrap S={systems} T={tasks} B={RESAMPLES}"
        scores = leaderboard(systems, tasks)
        if wanted(name):
            _check_bootstrap(bootstrap(scores, resamples=RESAMPLES), numpy_bootstrap(scores, RESAMPLES, 0))
            yield compare(
                name,
                lambda scores=scores: _with_pairs(bootstrap(scores, resamples=RESAMPLES)),
                lambda scores=scores: numpy_bootstrap(scores, RESAMPLES, 0),
                peer_name="numpy: bincount, sgemm, partition, argsort",
                n=RESAMPLES,
                quick=quick,
            )
        if wanted(name + " against its product alone"):
            counts = np.random.default_rng(0).poisson(1.0, (RESAMPLES, tasks)).astype(np.float32)
            sides = np.random.default_rng(0).normal(size=(tasks, 2 * systems)).astype(np.float32)
            yield compare(
                name + " against its product alone",
                lambda scores=scores: _with_pairs(bootstrap(scores, resamples=RESAMPLES)),
                lambda counts=counts, sides=sides: counts @ sides,
                peer_name=f"one float32 product of {RESAMPLES} x {tasks} by {tasks} x {2 * systems}",
                n=RESAMPLES,
                quick=quick,
            )


def _with_pairs(found: Bootstrap) -> object:
    """With the intervals of all pairs, which are computed when asked for."""
    return found.difference_interval


def _check_bootstrap(ours: Bootstrap, theirs: Summary) -> None:
    """Same quantities from other random numbers: ends of intervals within a quarter of a standard error."""
    noise = 0.25 * ours.standard_error
    assert (np.abs(ours.percentile - theirs.percentile) < noise[:, None]).all()
    pairs = noise[:, None] + noise[None, :]
    assert (np.abs(ours.difference_interval - theirs.difference) < pairs[:, :, None]).all()
    assert abs(ours.tau.mean - theirs.tau.mean()) < 0.01
    assert abs(ours.rho.mean - theirs.rho.mean()) < 0.01
    assert np.abs(ours.rank_counts - theirs.ranks).max() < 0.04 * RESAMPLES


def correlation_rows(quick: bool, wanted: Wanted) -> Iterator[Row]:
    """All pairs of raters, 5% missing: continuous scores, then the same in halves of 0 to 10... as whole numbers."""
    raters, items = (40, 5_000) if quick else (200, 10_000)
    generator = np.random.default_rng(2)
    scores = generator.normal(size=items) + generator.normal(0.0, 1.5, (raters, items))
    grades = np.clip(np.rint(5.0 + 1.2 * scores), 0.0, 10.0)
    absent = generator.random(scores.shape) < 0.05
    scores[absent] = grades[absent] = np.nan
    size = f"{raters} raters x {items} items"
    for coefficient in COEFFICIENTS:
        name = f"{coefficient} of {size}"
        if wanted(name):
            yield _correlation_row(name, scores, (coefficient,), quick)
    name = f"all three coefficients of {size}, scores 0 to 10"
    if wanted(name):
        yield _correlation_row(name, grades, COEFFICIENTS, quick)


def _correlation_row(name: str, scores: Scores, coefficients: tuple[Coefficient, ...], quick: bool) -> Row:
    frame = pd.DataFrame(scores.T)

    def ours() -> object:
        return correlations(scores, coefficients=coefficients)

    def theirs() -> object:
        return [frame.corr(method=coefficient) for coefficient in coefficients]

    sample = correlations(scores[:6], coefficients=coefficients)
    for coefficient in coefficients:
        expected = frame[list(range(6))].corr(method=coefficient).to_numpy()
        np.testing.assert_allclose(getattr(sample, coefficient), expected, atol=1e-10)
    return compare(
        name, ours, theirs, peer_name="pandas", n=len(scores) * (len(scores) - 1) // 2, quick=quick
    )


def compile_rows(wanted: Wanted) -> Iterator[Row]:
    """How long a process's first calls take: when nothing was ever compiled, and with code from the disk."""
    names = (
        "first calls ever: import, compile, run",
        "first calls of a process: import, load code from disk, run",
    )
    if not any(wanted(name) for name in names):
        return
    with tempfile.TemporaryDirectory() as cache:
        for name in names:
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", FIRST_CALLS], env=environ | {"NUMBA_CACHE_DIR": cache}, check=True
            )
            yield alone(name + " (bootstrap and correlations)", time.perf_counter() - start, "s")


if __name__ == "__main__":
    main(__doc__, rows)
