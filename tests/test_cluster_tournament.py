"""`pairwise` on Ray: the same comparisons are chosen, and the same strengths come of them."""

import json

import msgspec
import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import compared
from tests.arenas import arena
from tests.mock_openai import MockOpenAI
from tests.small_ray import RAY_WARNINGS

pytest.importorskip("ray")

pytestmark = [pytest.mark.usefixtures("small_ray"), *RAY_WARNINGS]


async def test_cluster_chooses_the_same_comparisons(tmp_path):
    async with MockOpenAI() as server:
        found = []
        for name, cluster in (
            ("alone", "none"),
            ("ray", {"address": "local", "flush_seconds": 0.5, "evaluators": 3}),
        ):
            judge = {"backend": "openai", "url": server.url, "model": "mock", "max_in_flight": 6}
            config = arena(
                tmp_path / name,
                systems=4,
                tasks=6,
                protocols=[{"name": "pairwise", "budget": 24}],
                judge=judge,
                cluster=cluster,
            )
            assert isinstance(config, RunConfig)
            result = await evaluate_async(config)
            rows = compared(Run.open(tmp_path / name / "run").scores).to_pylist()
            board = msgspec.to_builtins(result.leaderboard.metrics)
            found.append((json.dumps(rows, sort_keys=True), board, result.scorecards))
        assert found[0] == found[1] and found[0][2] == 24
