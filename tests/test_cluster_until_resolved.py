"""A run on a cluster stops where the same run in one process does. Real Ray."""

import os
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from adjudge.engine import RunConfig
from adjudge.engine.run import evaluate_async

from tests.test_until_resolved import unequal

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's own pipes to its processes
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]


@pytest.fixture(scope="module", autouse=True)
def small_ray():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        num_cpus=4,
        object_store_memory=100_000_000,
        include_dashboard=False,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()


async def test_a_cluster_stops_after_the_same_tasks_with_the_same_scores(tmp_path: Path):
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
