"""Metrics of a cluster's workers on the driver's page: equal to the tables, and correct after a worker has died."""

import os
import signal

import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from tests.chaos import children, command
from tests.clusters import on_cluster
from tests.exposition import by, check, check_scorecards, rows, samples
from tests.mock_openai import Call, MockOpenAI
from tests.small_ray import RAY_WARNINGS
from tests.worlds import world

ray = pytest.importorskip("ray")

pytestmark = [*RAY_WARNINGS, pytest.mark.usefixtures("small_ray")]


async def test_metrics_of_all_workers_match_the_stored_tables(tmp_path):
    async with MockOpenAI(latency=0.02) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 16, "replicas": 2}
        config = on_cluster(world(tmp_path, systems=5, tasks=6, judge=judge), evaluators=2, cpus=0.5)
        result = await evaluate_async(config)
    found = samples((tmp_path / "run" / "metrics.prom").read_text())
    check(found, rows(tmp_path / "run-store", "judgments"))
    check_scorecards(found, tmp_path / "run", tmp_path / "run-store")
    assert result.from_judge == sum(by(found, "adjudge_questions_total").values())
    assert not by(found, "adjudge_workers_lost_total")


def evaluators() -> set[int]:
    """Processes of evaluators; one of an earlier cluster may still be ending."""
    raylet = ray._private.worker._global_node.all_processes["raylet"][0].process.pid
    return {pid for pid in children(raylet) if b"ray::EvaluatorActor" in command(pid)}


async def test_dead_evaluator_is_counted_and_each_case_once(tmp_path):
    before, killed = evaluators(), []

    async def kill(mock: MockOpenAI, call: Call) -> None:
        if mock.calls >= 60 and not killed:
            killed.extend(evaluators() - before)
            (only,) = killed  # with two, one that is not open yet could die unnoticed by the run
            os.kill(only, signal.SIGKILL)

    async with MockOpenAI(latency=0.05, fault=kill) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 16}
        config = on_cluster(world(tmp_path, systems=5, tasks=6, judge=judge), evaluators=1)
        await evaluate_async(config)
    found = samples((tmp_path / "run" / "metrics.prom").read_text())
    check_scorecards(found, tmp_path / "run", tmp_path / "run-store")
    assert by(found, "adjudge_workers_lost_total", "kind") == {("evaluator",): 1}
