"""`judges:` on a cluster: the same scores, each judge under its own limit, its own replicas and its own probe."""

import asyncio
from pathlib import Path

import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.evaluation.gate import Patience
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.runs.record import RunRecord
from adjudge.judges.errors import JudgeError
from tests.clusters import on_cluster, rows
from tests.judged_worlds import Noting, judged, serving, two_protocols
from tests.mock_openai import MockOpenAI
from tests.outages import stored
from tests.small_ray import RAY_WARNINGS

pytest.importorskip("ray")

pytestmark = [*RAY_WARNINGS, pytest.mark.usefixtures("small_ray"), pytest.mark.timeout(180)]


def judges_of(
    plain: MockOpenAI, strong: MockOpenAI, sees: MockOpenAI, **options: object
) -> dict[str, object]:
    return {
        "judge": judged(plain, "plain-1"),
        "judges": {"dr3": judged(strong, "strong-1", **options), "image": judged(sees, "sees-1")},
    }


@pytest.mark.parametrize("replicas", [None, 2])
async def test_cluster_asks_each_judge_like_one_process(tmp_path: Path, replicas: int | None) -> None:
    plain, strong, sees = Noting(), Noting(), Noting()
    async with serving(plain, strong, sees):
        settings = judges_of(plain, strong, sees)
        alone = await evaluate_async(RunConfig.load(two_protocols(tmp_path, tasks=4, **settings)))
        probes = [one.probes for one in (plain, strong, sees)]
        asked = [one.asked.copy() for one in (plain, strong, sees)]
        path = two_protocols(tmp_path, tasks=4, **judges_of(plain, strong, sees, replicas=replicas))
        found = await evaluate_async(on_cluster(path, "cluster", evaluators=2))
    assert (found.unscored, found.from_judge) == (0, alone.from_judge)
    assert rows(found.out) == rows(alone.out)
    assert [one.asked for one in (plain, strong, sees)] == [before + before for before in asked]
    # Each evaluator tries a server itself, and each replica is tried.
    assert probes == [1, 1, 1] and all(2 <= one.probes <= 5 for one in (plain, strong, sees))
    judges = RunRecord.read(Path(found.out)).judges
    assert {answer: judge.name for answer, judge in judges.items()} == {
        "rubrics": "plain-1", "dr3": "strong-1", "image": "sees-1",
    }  # fmt: skip


async def test_limits_of_each_judge_hold_on_a_cluster(tmp_path: Path) -> None:
    plain, one, two = Noting(0.05), Noting(0.05), Noting(0.05)
    async with serving(plain, one, two):
        members = [judged(one, "one-1", max_in_flight=4), judged(two, "two-1", max_in_flight=3)]
        path = two_protocols(
            tmp_path,
            systems=["A", "B", "C"],
            judge=judged(plain, "plain-1", max_in_flight=5, media=["image"]),
            judges={"rubrics": {"backend": "panel", "members": members}},
        )
        result = await evaluate_async(on_cluster(path, evaluators=8))
    assert result.unscored == 0
    assert one.asked.total() == two.asked.total() == 90
    assert (one.peak <= 4, two.peak <= 3, plain.peak <= 5) == (True, True, True), (
        one.peak,
        two.peak,
        plain.peak,
    )


async def test_one_dead_judge_ends_a_cluster_which_resumes(tmp_path: Path) -> None:
    plain, dies, well = Noting(), Noting(dies_after=4), Noting()
    patience = Patience(silence_s=0.3, patience_s=1.5, backoff_s=0.05, longest_s=0.2)
    async with serving(plain, dies, well):

        def world(strong: MockOpenAI) -> RunConfig:
            judges = {"dr3": judged(strong, "strong-1", media=["image"])}
            return on_cluster(
                two_protocols(tmp_path, judge=judged(plain, "plain-1"), judges=judges), evaluators=2
            )

        with pytest.raises(JudgeError, match="judge strong-1: not back after"):
            await evaluate_async(world(dies), patience=patience)
        before = len(stored(tmp_path, "run-store"))
        assert before >= 4
        result = await evaluate_async(world(well))
    assert result.unscored == 0 and result.from_store >= before
    assert well.asked.total() + plain.asked.total() >= result.from_judge


async def test_sick_replicas_of_one_judge_are_named(tmp_path: Path) -> None:
    plain, sick = Noting(), MockOpenAI()
    async with serving(plain, sick):
        judges = {"dr3": {**judged(sick, "strong-1", replicas=2), "url": sick.at("garbage")}}
        path = two_protocols(tmp_path, judge=judged(plain, "plain-1"), judges=judges)
        with pytest.raises(JudgeError, match=r"JudgeActor of judges\.dr3.*ignores the JSON schema"):
            await evaluate_async(on_cluster(path, evaluators=2))
    assert not [row for row in stored(tmp_path, "run-store") if row["judge"] == "strong-1"]


async def test_rewards_of_a_cluster_ask_each_judge(tmp_path: Path) -> None:
    plain, strong, sees = Noting(), Noting(), Noting()
    async with serving(plain, strong, sees):
        settings = judges_of(plain, strong, sees, replicas=2)
        reward = {"weights": {"score_clipped": 1.0, "average": 1.0}, "deadline_s": 60}
        path = two_protocols(tmp_path, **settings, reward=reward)
        with pytest.raises(ConfigError, match=r"judges\.dr3\.replicas: needs a cluster"):
            assert RunConfig.load(path).resolved.is_on_cluster
        item = {"task_id": "0", "text": "It costs 5 [Doc: plan.pdf]. It grew [Image: chart.png]."}
        with RewardModel(RunConfig.load(path, cluster={"address": "local"})) as model:
            [found] = await asyncio.wait_for(model.score([item]), 90)
    assert found.status == "scored", found
    assert set(plain.asked) == {("plain-1", False)} and set(strong.asked) == {("strong-1", False)}
    assert set(sees.asked) == {("sees-1", True)}
