"""The trainer's step in the rewards of those trainers that tell it, and the refusal of those that do not."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from areal.api import ModelResponse
from areal.api.cli_args import GenerationHyperparameters
from transformers import AutoTokenizer

from adjudge.engine.adapters import openrlhf, slime, trl, verl
from adjudge.engine.adapters.areal import ReportWorkflow
from adjudge.engine.adapters.source import REWARDS, TrainingStop
from tests.reward_server import reward_server
from tests.tiny_model import tiny_model
from tests.trainers.rollouts import PROMPT, TEXT
from tests.trainers.ways import Status
from tests.worlds import world

WEIGHT = {0: 1.0, 10: 3.0}  # 2 at step 5, where TEXT is worth 1.6


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server whose weight depends on the step."""
    reward = {"weights": {"score_clipped": {"weight": WEIGHT}}}
    with reward_server(world(tmp_path_factory.mktemp("scheduled"), reward=reward)) as (url, _):
        yield url


async def test_trl_tells_the_step_of_its_state(scheduled):
    state = SimpleNamespace(global_step=5)
    values = await trl.async_reward([PROMPT], [TEXT], source=scheduled, trainer_state=state)
    values += await asyncio.to_thread(
        trl.reward, [PROMPT], [TEXT], source=scheduled, trainer_state=SimpleNamespace(global_step=10)
    )
    assert values == pytest.approx([1.6, 2.4])


async def test_verl_tells_the_step_of_its_weights(scheduled):
    for extra in ({"max_global_steps": 5, "min_global_steps": 4}, {"global_steps": 5}):
        found = await verl.compute_score("d", TEXT, "1", extra, source=scheduled)
        assert found["score"] == pytest.approx(1.6)


async def test_slime_tells_the_version_of_its_weights(scheduled, monkeypatch):
    monkeypatch.setenv(REWARDS, scheduled)
    sample = SimpleNamespace(
        prompt=PROMPT, response=TEXT, label=None, metadata={}, status=Status.COMPLETED, remove_sample=False,
        weight_versions=["4", "5"],
    )  # fmt: skip
    assert await slime.reward(None, sample) == pytest.approx(1.6)


async def test_areal_tells_the_version_of_its_weights(scheduled):
    workflow = ReportWorkflow(GenerationHyperparameters(), str(tiny_model()), source=scheduled)
    tokens = AutoTokenizer.from_pretrained(tiny_model())(TEXT)["input_ids"]
    response = ModelResponse(output_tokens=tokens, output_versions=[4, 5], stop_reason="stop")
    row = {"messages": [{"role": "user", "content": PROMPT}]}
    assert await workflow._compute_rewards(response, PROMPT, row) == pytest.approx(1.6)


def test_trainer_without_a_step_is_refused_a_schedule(scheduled):
    with pytest.raises(TrainingStop, match="step: missing"):
        openrlhf.reward_func([PROMPT + TEXT], [PROMPT], [None], source=scheduled)
