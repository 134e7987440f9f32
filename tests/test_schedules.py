"""Weights that depend on the trainer's step: their values, what a call must carry, and what rewards record."""

import asyncio
from pathlib import Path

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.config.reward import LAST_STEP, Formula, RewardConfig, Schedule, weight_at
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.rewards.model import RewardError, RewardModel
from adjudge.engine.rewards.scorer import open_rewards
from adjudge.engine.serving.client import RewardClient
from adjudge.judges import Reply, ScriptedJudge
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Missing, Scorecard
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.rewarding import best, scripted
from tests.scheduled import served
from tests.worlds import world

LATE = {"weight": {100: 0.0, 200: 0.5}}
WEIGHTS = {"rubrics.score_clipped": 1.0, "fact.c_acc": LATE}
PROTOCOLS = ["rubrics", {"name": "fact", "extraction": "markers"}]
PAGE = {"url": "https://example.org/a", "title": "A", "text": "It states fact number 0."}
TEXT = "It states fact number 0 [1].\n\n[1] https://example.org/a"
ITEM = {"task_id": "1", "text": TEXT, "pages": [PAGE]}
CASE = Case(task=Task(id="1", prompt="p"), report=Report(task_id="1", system="policy", text="text"))


def scheduled(folder: Path, **reward: object) -> RunConfig:
    settings = {"protocols": PROTOCOLS, "weights": WEIGHTS, **reward}
    return RunConfig.load(world(folder, reward=settings))


def test_weight_is_linear_between_steps_and_constant_outside():
    weight = {10: 0.0, 20: 1.0, 21: -1.0}
    at = [weight_at(weight, step) for step in (0, 10, 15, 20, 21, 22, LAST_STEP)]
    assert at == [0.0, 0.0, 0.5, 1.0, -1.0, -1.0, -1.0]
    assert weight_at(0.25, 7) == 0.25 and weight_at({3: 2.0}, 0) == 2.0


@given(
    st.dictionaries(st.integers(0, 100), st.floats(-10, 10), min_size=1, max_size=6),
    st.integers(0, 120),
)
def test_weight_lies_between_its_neighbours(weight, step):
    found = weight_at(weight, step)
    before = [weight[known] for known in sorted(weight) if known <= step][-1:]
    after = [weight[known] for known in sorted(weight) if known >= step][:1]
    near = before + after
    assert min(near) - 1e-12 <= found <= max(near) + 1e-12
    assert step not in weight or found == weight[step]


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"score": {"weight": {}}}, "length >= 1"),
        ({"score": {"weight": {-1: 1.0}}}, ">= 0"),
        ({"score": {"weight": {0: float("nan")}}}, "finite"),
        ({"score": {"weight": {0: 0.0, 9: 0.0}}}, "no effect"),
        ({"score": {"weight": {0: 1.0, 9: -1.0}}}, "must be positive"),
        ({"score": {"weight": {0: 0.0, 9: 1.0}}}, "at step 0 all are 0"),
        ({"score": {"weight": {0: 1.0, 9: 0.0}}, "c_acc": {"weight": {5: 0.0, 6: 1.0, 9: 0.0}}}, "at step 9"),
        (
            {"score": {"weight": {"soon": 1.0}}},
            r"reward\.weights\[\.\.\.\]\.weight: Expected `int`.* as a key",
        ),
        ({"score": {0: 0.0, 10: 1.0}}, r"reward\.weights\[\.\.\.\]: Expected `str` as a key"),
    ],
)
def test_schedule_that_cannot_be_used_is_refused(tmp_path, weights, says):
    with pytest.raises(ConfigError, match=says):
        scheduled(tmp_path, weights=weights)


def test_formula_of_a_step_has_its_weights():
    formula = Formula(msgspec.convert({"weights": WEIGHTS}, RewardConfig), [Rubrics(), Fact()])
    cards = {
        "rubrics": Scorecard.of("rubrics", CASE, {"score_clipped": 0.5}),
        "fact": Scorecard.of("fact", CASE, {"c_acc": 0.8}),
    }
    assert formula.scheduled == ("fact.c_acc",)
    assert [formula.at(step).value(cards, {}).value for step in (0, 150, 999)] == pytest.approx(
        [0.5, 0.7, 0.9]
    )
    lacking = {**cards, "fact": Scorecard.of("fact", CASE, {"c_acc": Missing("judge_timeout")})}
    assert formula.at(100).value(lacking, {}).value == 0.5, "a weight of 0 withholds nothing"
    assert formula.at(101).value(lacking, {}) == formula.at(200).value(lacking, {})
    assert formula.at(200).value(lacking, {}).reason == "judge_timeout"


async def test_reward_records_step_and_weights_with_the_same_keys(tmp_path):
    async with open_rewards(scheduled(tmp_path)) as scorer:
        early, middle, late = [(await scorer.score([ITEM], step=step))[0] for step in (0, 150, 1000)]
    name = "weight:fact.c_acc"
    assert [one.scores["step"] for one in (early, middle, late)] == [0.0, 150.0, 1000.0]
    assert [one.scores[name] for one in (early, middle, late)] == [0.0, 0.25, 0.5]
    assert set(early.scores) == set(middle.scores) == set(late.scores)
    rubrics, fact = late.scores["score_clipped"], late.scores["c_acc"]
    assert fact == 1.0 and early.value == rubrics
    assert (middle.value, late.value) == pytest.approx((rubrics + 0.25, rubrics + 0.5))


async def test_protocol_is_not_asked_while_its_weight_is_zero(tmp_path):
    config = scheduled(tmp_path)

    def opinion(question):
        kinds.add(type(question).__name__)
        return best(question) if question.options else Reply(reason="judge_unparseable")

    judge, kinds = ScriptedJudge(opinion), set()
    async with scripted(config, judge) as scorer:
        (early,) = await scorer.score([ITEM], step=100)
        assert early.value == 1.0 and len(kinds) == 1
        await scorer.score([ITEM], step=101)
        assert scorer.formula.at(101).needed == {"rubrics", "fact"}


@pytest.mark.parametrize("step", [-1, 1.5, "3", LAST_STEP + 1, None])
def test_call_without_a_valid_step_is_refused(tmp_path, step):
    with RewardModel(scheduled(tmp_path)) as model, pytest.raises(RewardError, match="step: "):
        model.score_sync([ITEM], step=step)


def test_step_is_not_needed_without_a_schedule(tmp_path):
    config = RunConfig.load(world(tmp_path))
    with RewardModel(config) as model:
        with_step, without = model.score_sync([ITEM], step=5) + model.score_sync([ITEM])
    assert with_step.value == without.value is not None and "step" not in without.scores


async def test_server_takes_the_step_and_refuses_a_call_without(tmp_path):
    async with served(scheduled(tmp_path)) as url, aiohttp.ClientSession() as session:
        for body, status in (
            ({"items": [ITEM], "step": 150}, 200),
            ({"items": [ITEM]}, 400),
            ({"items": [ITEM], "step": -1}, 400),
            ({"items": [ITEM], "step": True}, 400),
        ):
            async with session.post(f"{url}/v1/rewards", json=body) as response:
                assert response.status == status
                reply = await response.json()
                if status == 200:
                    assert reply["rewards"][0]["scores"]["weight:fact.c_acc"] == 0.25
                else:
                    assert "step" in reply["error"]
        async with session.get(f"{url}/openapi.json") as response:
            document = await response.json()
    assert "step" in document["components"]["schemas"]["Rollouts"]["properties"]


async def test_client_keeps_calls_of_different_steps_apart(tmp_path):
    async with served(scheduled(tmp_path)) as url:
        client = RewardClient(url)
        found = await asyncio.gather(*(client.score([ITEM], step=step) for step in (0, 150, 0, 200, 175)))
        with pytest.raises(RewardError, match="step"):
            await client.score([ITEM])
        await asyncio.to_thread(client.close)
    assert [reward.scores["step"] for (reward,) in found] == [0, 150, 0, 200, 175]


async def test_audit_judges_at_the_same_step(tmp_path):
    config = scheduled(tmp_path, audit={"judge": "lexical", "share": 1.0})
    async with open_rewards(config) as scorer:
        await scorer.score([ITEM], step=150)
        assert scorer.audit is not None
        async with asyncio.timeout(20):
            while not scorer.audit.done + scorer.audit.failed:
                await asyncio.sleep(0.01)
        assert (scorer.audit.done, scorer.audit.gap) == (1, 0.0)


async def test_canaries_are_judged_with_the_last_weights(tmp_path):
    file = tmp_path / "canaries.jsonl"
    file.write_bytes(msgspec.json.encode(ITEM))
    config = scheduled(tmp_path, canary={"file": str(file), "every_s": 1000})
    async with open_rewards(config) as scorer:
        (last,) = await scorer.score([ITEM], step=200)
        assert scorer.canary is not None
        async with asyncio.timeout(20):
            while not scorer.canary.rounds:
                await asyncio.sleep(0.01)
        assert scorer.canary._known == [last.value] != [None]


def test_schedule_survives_a_change_of_folder(tmp_path):
    config = scheduled(tmp_path)
    moved = config.rooted(str(tmp_path))
    assert moved.reward is not None and moved.reward.weights == config.reward_config().weights
    assert msgspec.json.decode(msgspec.json.encode({1: 0.5}), type=Schedule) == {1: 0.5}
