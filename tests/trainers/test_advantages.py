"""What trainers' own code makes of a failed reward in advantages: None, a constant, and the group's mean."""

import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

from adjudge.engine.adapters import openrlhf, trl, verl
from adjudge.engine.config.reward import Constant, OnFailure
from adjudge.engine.rewards.reward import RewardError
from tests.tiny_model import tiny_model
from tests.trainers.fixed import fixed
from tests.trainers.rollouts import PROMPT

VALUES = (0.8, None, 0.2, 0.5)
OTHERS = (0.8, 0.2, 0.5)


def normal(values: tuple[float, ...], epsilon: float) -> list[float]:
    """Advantages of a group by definition."""
    found = torch.tensor(values)
    return ((found - found.mean()) / (found.std() + epsilon)).tolist()


def trl_advantages(folder: Path, monkeypatch: pytest.MonkeyPatch, *functions: object) -> list[float]:
    """The advantages of one step of GRPOTrainer with `functions`."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    trainer = GRPOTrainer(
        model=str(tiny_model()),
        reward_funcs=list(functions),
        args=GRPOConfig(
            output_dir=str(folder), per_device_train_batch_size=4, num_generations=4, max_completion_length=8,
            max_steps=1, use_cpu=True, bf16=False, gradient_checkpointing=False, report_to=[], save_strategy="no",
        ),
        train_dataset=Dataset.from_dict({"prompt": [PROMPT] * 4, "task_id": ["1"] * 4}),
    )  # fmt: skip
    seen: list[list[float]] = []
    score = trainer._generate_and_score_completions

    def kept(inputs: object) -> dict[str, torch.Tensor]:
        found = score(inputs)
        seen.append(found["advantages"].tolist())
        return found

    monkeypatch.setattr(trainer, "_generate_and_score_completions", kept)
    trainer.train()
    (advantages,) = seen
    return advantages


def one(on_failure: OnFailure) -> object:
    return functools.partial(trl.async_reward, source=fixed(VALUES), on_failure=on_failure)


def constant_zero(prompts: list[str], **columns: object) -> list[float]:
    """A second reward function."""
    return [0.0] * len(prompts)


class TestTRL:
    def test_none_is_neutral(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first, failed, *rest = trl_advantages(tmp_path, monkeypatch, one("none"))
        assert failed == 0.0
        assert [first, *rest] == pytest.approx(normal(OTHERS, 1e-4), rel=0.3)
        assert sum([first, *rest]) == pytest.approx(0.0, abs=1e-3)

    def test_group_mean_is_neutral(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = trl_advantages(tmp_path, monkeypatch, one("group_mean"))
        assert found == pytest.approx(normal((0.8, 0.5, 0.2, 0.5), 1e-4), abs=1e-3)
        assert found[1] == pytest.approx(0.0, abs=1e-3)

    @pytest.mark.parametrize("constant", [-1.0, 0.0])
    def test_constant_is_a_bad_mark(self, constant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = trl_advantages(tmp_path, monkeypatch, one(Constant(constant)))
        assert found == pytest.approx(normal((0.8, constant, 0.2, 0.5), 1e-4), abs=1e-3)
        assert found[1] < -1

    def test_beside_a_second_function_only_the_mean_is_neutral(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        none = trl_advantages(tmp_path, monkeypatch, one("none"), constant_zero)
        assert none[1] == pytest.approx(normal((0.8, 0.0, 0.2, 0.5), 1e-4)[1], abs=1e-3) and none[1] < -1
        mean = trl_advantages(tmp_path, monkeypatch, one("group_mean"), constant_zero)
        assert mean[1] == pytest.approx(0.0, abs=1e-3)


async def verl_advantages(on_failure: float | str) -> list[float]:
    """By verl's GRPO, of the scores that its managers get, one call each."""
    scores = []
    for value in VALUES:
        found = await verl.compute_score("d", "text", "1", {}, source=fixed([value]), on_failure=on_failure)
        scores.append(found["score"])
    tensor = torch.tensor([[score] for score in scores])
    advantages, _ = compute_grpo_outcome_advantage(tensor, torch.ones_like(tensor), np.array(["a"] * 4))
    return advantages[:, 0].tolist()


class TestVerl:
    @pytest.mark.parametrize("constant", [-1.0, 0.0])
    async def test_constant_is_a_bad_mark(self, constant) -> None:
        found = await verl_advantages(constant)
        assert found == pytest.approx(normal((0.8, constant, 0.2, 0.5), 1e-6), abs=1e-3)
        assert found[1] < -1

    async def test_one_call_a_sample_has_no_mean(self) -> None:
        for stated in ("raise", "group_mean"):
            with pytest.raises(BaseException, match="deadline") as caught:
                await verl_advantages(stated)
            assert not isinstance(caught.value, Exception), "rate_limited would make 0 of it"


class TestOpenRLHF:
    @pytest.mark.parametrize(
        ("stated", "second"), [("group_mean", 0.5), ("-1.0", -1.0), ("0", 0.0)], ids=["mean", "-", "0"]
    )
    def test_tensor_of_a_group(self, stated, second, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ADJUDGE_ON_FAILURE", stated)
        found = openrlhf.reward_func([f"{PROMPT}text"] * 4, [PROMPT] * 4, ["1"] * 4, source=fixed(VALUES))
        assert found["rewards"].tolist() == pytest.approx([0.8, second, 0.2, 0.5])
        assert found["extra_logs"]["failed"].tolist() == [0, 1, 0, 0]


def test_mean_of_nothing_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a whole call fails, the group's mean is none: TRL gets None, others an error."""
    items = {"source": fixed([None, None]), "task_id": ["1"] * 2}
    assert trl.reward([PROMPT] * 2, ["a", "b"], on_failure="group_mean", **items) == [None, None]
    monkeypatch.setenv("ADJUDGE_ON_FAILURE", "group_mean")
    with pytest.raises(BaseException, match="deadline") as caught:
        openrlhf.reward_func([PROMPT] * 2, [PROMPT] * 2, ["1"] * 2, source=fixed([None, None]))
    assert not isinstance(caught.value, RewardError)
