"""A leaderboard computed on a cluster: Ray tasks read score files and draw resamples; bit-identical results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import ray
from ray.exceptions import RayTaskError

from adjudge.engine.cluster.session import connected
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.placement import CONFIDENCE, Statistics
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap, BootstrapPart, bootstrap_part, merge

__all__ = ["statistics_on"]

Floats = npt.NDArray[np.float64]


@contextmanager
def statistics_on(address: str) -> Iterator[Statistics]:
    """The `Statistics` of `build_leaderboard`, computed on the cluster at `address`. Raises UsageError."""
    with connected(address, 1):
        cpus = int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
        yield _OnRay(max(1, cpus))


class _OnRay(Statistics):
    """Statistics whose resamples are drawn by `parts` tasks."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._read = ray.remote(_read)
        self._part = ray.remote(_part)

    def read(self, runs: Sequence[Run]) -> pa.Table:
        """The score rows of `runs`, one Ray task per run."""
        try:
            tables: list[pa.Table] = ray.get([self._read.remote(run.folder.absolute()) for run in runs])
        except RayTaskError as error:
            raise error.cause from None
        return pa.concat_tables(tables, promote_options="default")

    def resample(
        self, values: Floats, denominators: Floats | None, seed: int, clip: tuple[float, float] | None = None
    ) -> Bootstrap:
        """The bootstrap of `values[S, T]`; means are held between the ends of `clip`."""
        shared = ray.put((values, denominators))
        edges = np.linspace(0, self.resamples, self._parts + 1).astype(int).tolist()
        ranges = [(first, end - first) for first, end in pairwise(edges) if end > first]
        parts: list[BootstrapPart] = ray.get(
            [self._part.remote(shared, first, count, seed) for first, count in ranges]
        )
        return merge(parts, level=CONFIDENCE, clip=clip)


def _read(folder: Path) -> pa.Table:
    return Run.open(folder).scores


def _part(scores: tuple[Floats, Floats | None], first: int, count: int, seed: int) -> BootstrapPart:
    values, denominators = scores
    return bootstrap_part(values, denominators=denominators, first=first, count=count, seed=seed, threads=1)
