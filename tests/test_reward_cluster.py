"""Rewards from a cluster: the same values, and no reward lost with a replica. Real Ray."""

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import aiohttp
import pytest

from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.rewards.model import RewardModel
from tests.clocks import Timed, timed
from tests.mock_openai import MockOpenAI
from tests.processes import command, descendants
from tests.reward_server import judge_server
from tests.small_ray import RAY_WARNINGS
from tests.worlds import ADJUDGE, world

pytest.importorskip("ray")

pytestmark = [*RAY_WARNINGS, pytest.mark.usefixtures("small_ray")]
ITEMS = [
    {"task_id": str(task), "text": f"It states fact number {fact}. The value was 42 units.", "sample": fact}
    for task in range(3)
    for fact in range(4)
]


def rewarded(
    folder: Path, mock: MockOpenAI, cluster: object, group: str = "none", **judge: object
) -> RunConfig:
    folder.mkdir()
    settings = {"backend": "openai", "url": mock.url, "model": "mock", **judge}
    reward = {"weights": {"score_clipped": 1.0}, "deadline_s": 60, "group": {"kind": group}}
    return RunConfig.load(world(folder, tasks=3, judge=settings, reward=reward), cluster=cluster)


async def test_clustered_rewards_equal_those_of_one_process(tmp_path: Path) -> None:
    async with MockOpenAI() as mock:
        with RewardModel(rewarded(tmp_path / "alone", mock, "none", "pairwise")) as model:
            alone = await model.score(ITEMS)
        local = {"address": "local"}
        with RewardModel(rewarded(tmp_path / "front", mock, local, "pairwise", replicas=2)) as model:
            front = await model.score(ITEMS)
            asked = mock.calls
            assert await model.score(ITEMS) == front and mock.calls == asked
    assert [reward.value for reward in front] == [reward.value for reward in alone]
    assert [reward.scores["group"] for reward in front] == [reward.scores["group"] for reward in alone]
    assert all(reward.status == "scored" for reward in front)


async def test_dead_replica_loses_no_reward(tmp_path: Path) -> None:
    async with MockOpenAI(latency=0.3) as mock:
        config = rewarded(tmp_path / "front", mock, {"address": "local"}, replicas=2, max_in_flight=4)
        with RewardModel(config) as model:
            first = await model.score(ITEMS[:1])
            work = asyncio.create_task(model.score(ITEMS))
            while mock.calls < 20:
                await asyncio.sleep(0.01)
            os.kill(_replicas()[0], signal.SIGKILL)
            rewards = await work
    assert all(reward.status == "scored" for reward in [*first, *rewards])


async def test_replicas_require_a_cluster(tmp_path: Path) -> None:
    async with MockOpenAI() as mock:
        config = rewarded(tmp_path / "alone", mock, "none", replicas=2)
        with pytest.raises(ConfigError, match=r"judge\.replicas: needs a cluster"):
            await RewardModel(config).score(ITEMS)


async def test_server_answers_in_front_of_a_cluster(tmp_path: Path) -> None:
    async with MockOpenAI() as mock:
        rewarded(tmp_path / "front", mock, "none", replicas=2)
        serve = [
            *ADJUDGE,
            "serve",
            str(tmp_path / "front" / "adjudge.yaml"),
            "--port",
            "0",
            "--cluster",
            "local",
        ]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                url = server.stdout.readline().strip()
                async with aiohttp.ClientSession() as session:
                    answer = await session.post(f"{url}/v1/rewards", data=json.dumps({"items": ITEMS}))
                    found = await answer.json()
                assert answer.status == 200 and len(found["rewards"]) == len(ITEMS)
                assert all(reward["status"] == "scored" for reward in found["rewards"])
            finally:
                server.send_signal(signal.SIGTERM)
                assert server.wait(60) == 0


def test_workers_with_copies_of_a_model_end_in_time(tmp_path: Path) -> None:
    import ray

    @ray.remote
    def called(model: RewardModel, seconds: float) -> tuple[str | None, Timed]:
        no_text = {"task_id": "0", "text": ""}
        (opened,) = model.score_sync([no_text], deadline=60)  # a fresh worker loads its packages first
        assert opened.reason != "deadline"
        with timed(seconds) as call:
            (found,) = model.score_sync(ITEMS[:1], deadline=seconds)
        return found.reason, call

    with judge_server(60) as url:
        judge = {"backend": "openai", "url": url, "model": "mock", "retries": 0}
        model = RewardModel(world(tmp_path, tasks=3, judge=judge, reward={"metric": "score_clipped"}))
        ended = ray.get([called.remote(model, 5.0) for _ in range(4)])
    assert {reason for reason, _ in ended} == {"deadline"}
    assert all(call.is_in_time for _, call in ended), ended


def _replicas() -> list[int]:
    """Process ids of the judge replicas in this process's Ray."""
    return [
        process for process in descendants(os.getpid()) if command(process).startswith(b"ray::JudgeActor")
    ]
