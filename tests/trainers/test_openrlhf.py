"""OpenRLHF's own executor of single-turn rollouts, in both forms of reward, and what becomes of them in its samples.

Stubbed: vllm and openrlhf.trainer.ray.vllm_engine (which starts it); a model that writes a fixed text is in its place.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import urllib.request
from types import SimpleNamespace

import pytest
import torch
from openrlhf.utils.agent import SingleTurnAgentExecutor
from transformers import AutoTokenizer

from adjudge.engine.adapters import openrlhf as adapter
from adjudge.engine.adapters.source import DEADLINE, ON_FAILURE, REWARDS, TrainingStop
from tests.reward_pages import URL, block
from tests.tiny_model import tiny_model
from tests.trainers.rollouts import DEADLINE_S, END, PROMPT, RUBRICS, TEXT
from tests.trainers.stubs import stub

assert SingleTurnAgentExecutor.__module__ == "openrlhf.utils.agent"
REMOTE = block("openrlhf", "sh", 1).split("--reward.remote_url ")[1].split()[0]


class Engine:
    """vLLM, of which the executor calls `generate` alone."""

    def __init__(self, text: str, finish_reason: str) -> None:
        ids = AutoTokenizer.from_pretrained(tiny_model())(text)["input_ids"]
        self.output = SimpleNamespace(token_ids=ids, finish_reason=finish_reason, logprobs=None)

    async def generate(self, *args: object, **more: object) -> SimpleNamespace:
        return SimpleNamespace(outputs=[self.output])


async def sampled(
    monkeypatch,
    where: str,
    text: str = TEXT,
    finish_reason: str = "stop",
    label: str = "1",
    prompt: str = PROMPT,
):
    """One rollout as OpenRLHF's trainer gets it."""
    stub(monkeypatch, "vllm", SamplingParams=object)
    stub(monkeypatch, "openrlhf.trainer.ray.vllm_engine", batch_vllm_engine_call=None)
    monkeypatch.delitem(sys.modules, "openrlhf.trainer.ppo_utils.samples_generator", raising=False)
    from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

    response = await SingleTurnAgentExecutor(where).execute(
        prompt,
        label,
        SimpleNamespace(max_tokens=64, logprobs=None),
        512,
        AutoTokenizer.from_pretrained(tiny_model()),
        Engine(text, finish_reason),
    )
    return SamplesGenerator._process_response_into_experience(None, response)


class TestPythonForm:
    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch) -> None:
        exports, run = block("openrlhf", "sh").split("python -m openrlhf", 1)
        for line in exports.splitlines():
            monkeypatch.setenv(*line.removeprefix("export ").split("=", 1))
        monkeypatch.setenv(DEADLINE, str(DEADLINE_S))
        (typed,) = re.findall(r"\$\((python .*)\)", run)
        monkeypatch.setenv("PATH", f"{sys.prefix}/bin:{os.environ['PATH']}")
        assert subprocess.check_output(typed, shell=True, text=True).strip() == adapter.__file__

    async def test_trainer_sees_the_reward_and_its_metrics(self, monkeypatch, good):
        monkeypatch.setenv(REWARDS, good)
        found = await sampled(monkeypatch, adapter.__file__)
        assert found.rewards.tolist() == pytest.approx([0.8])
        assert {name: found.info[name].item() for name in ("failed", "score_clipped")} == pytest.approx(
            {"failed": 0.0, "score_clipped": 0.8}
        )

    async def test_label_brings_its_own_rubrics(self, monkeypatch, good):
        for where in (adapter.__file__, REMOTE.replace(URL, good)):
            monkeypatch.setenv(REWARDS, good)
            found = await sampled(monkeypatch, where, label=json.dumps(RUBRICS), prompt="another prompt")
            assert found.rewards.flatten().tolist() == [1.0]

    async def test_rollout_without_its_end_gets_the_minimum(self, monkeypatch, ended):
        monkeypatch.setenv(REWARDS, ended)
        whole = await sampled(monkeypatch, adapter.__file__, f"{TEXT}{END}")
        cut = await sampled(monkeypatch, adapter.__file__, finish_reason="length")
        assert (whole.rewards.tolist(), cut.rewards.tolist()) == (pytest.approx([0.8]), [0.0])

    @pytest.mark.parametrize("failing", ["down", "slow"])
    async def test_failed_judge_ends_the_step(self, monkeypatch, failing, request):
        monkeypatch.setenv(REWARDS, request.getfixturevalue(failing))
        with pytest.raises(TrainingStop, match="judge_unavailable" if failing == "down" else "deadline"):
            await sampled(monkeypatch, adapter.__file__)

    @pytest.mark.parametrize("failing", ["down", "slow"])
    async def test_failure_is_the_constant_where_one_is_set(self, monkeypatch, failing, request):
        monkeypatch.setenv(REWARDS, request.getfixturevalue(failing))
        monkeypatch.setenv(ON_FAILURE, "-1")
        found = await sampled(monkeypatch, adapter.__file__)
        assert (found.rewards.tolist(), found.info["failed"].item()) == ([-1.0], 1.0)


class TestRemoteForm:
    async def test_trainer_sees_the_reward(self, monkeypatch, good):
        found = await sampled(monkeypatch, REMOTE.replace(URL, good))
        assert found.rewards.flatten().tolist() == pytest.approx([0.8])

    async def test_rollout_without_its_end_gets_the_minimum(self, monkeypatch, ended):
        whole = await sampled(monkeypatch, REMOTE.replace(URL, ended), f"{TEXT}{END}")
        cut = await sampled(monkeypatch, REMOTE.replace(URL, ended), finish_reason="length")
        assert whole.rewards.flatten().tolist() == pytest.approx([0.8])
        assert cut.rewards.flatten().tolist() == [0.0]

    @pytest.mark.parametrize("failing", ["down", "slow"])
    async def test_failed_judge_ends_the_step_at_once(self, monkeypatch, failing, request):
        url = request.getfixturevalue(failing)
        with pytest.raises((RuntimeError, TypeError), match="NoneType"):  # where it makes a tensor of rewards
            await sampled(monkeypatch, REMOTE.replace(URL, url))
        told = await asyncio.to_thread(lambda: urllib.request.urlopen(f"{url}/metrics").read().decode())
        assert ("judge_unavailable" if failing == "down" else "deadline") in told

    async def test_failure_is_the_constant_over_http(self, monkeypatch, constant):
        found = await sampled(monkeypatch, REMOTE.replace(URL, constant))
        assert found.rewards.flatten().tolist() == [-1.0]
        assert torch.is_tensor(found.info["failed"]) and found.info["failed"].item() == 1.0
