"""A run on a cluster stops where the same run in one process does. Real Ray."""

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from tests.boards import unequal
from tests.small_ray import RAY_WARNINGS

pytest.importorskip("ray")

pytestmark = [*RAY_WARNINGS, pytest.mark.usefixtures("small_ray")]


async def test_cluster_stops_after_the_same_tasks_and_scores(tmp_path: Path):
    path = unequal(tmp_path, {"high": 0.9, "low": 0.3}, until_resolved="score")
    alone = await evaluate_async(RunConfig.load(path))
    settings = {"address": "local", "evaluators": 2, "flush_seconds": 0.5, "hung_seconds": 20}
    config = RunConfig.load(
        path, cluster=settings, out=str(tmp_path / "cluster"), store=str(tmp_path / "other")
    )
    together = await evaluate_async(config)
    assert together.stopped == alone.stopped and alone.stopped is not None and alone.stopped.early
    tables = [pq.read_table(Path(result.out) / "scores.parquet") for result in (alone, together)]
    assert tables[0] == tables[1]
    assert msgspec.structs.replace(together.leaderboard, runs=(), sources=()) == msgspec.structs.replace(
        alone.leaderboard, runs=(), sources=()
    )
