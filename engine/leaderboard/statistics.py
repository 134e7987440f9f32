"""Reads score rows and draws resamples of tasks."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from adjudge.engine.records.matrices import read_scores
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap, bootstrap

__all__ = ["CONFIDENCE", "RESAMPLES", "Statistics"]

RESAMPLES = 10_000
CONFIDENCE = 0.95

Floats = npt.NDArray[np.float64]


class Statistics:
    """Reads and draws in this process; a subclass may do so elsewhere."""

    resamples = RESAMPLES

    def read(self, runs: list[Path]) -> pa.Table:
        """The score rows of `runs`. Raises UsageError."""
        return read_scores(runs)

    def resample(
        self, values: Floats, denominators: Floats | None, seed: int, clip: tuple[float, float] | None = None
    ) -> Bootstrap:
        """The bootstrap of `values[S, T]`, `resamples` at CONFIDENCE; means are held between the ends of `clip`."""
        return bootstrap(
            values,
            denominators=denominators,
            resamples=self.resamples,
            level=CONFIDENCE,
            clip=clip,
            seed=seed,
        )
