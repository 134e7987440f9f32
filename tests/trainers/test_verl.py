"""verl's own reward managers, by its own configuration, and its reward loop on Ray."""

import json
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import ray
import torch
import verl
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from tensordict import TensorDict
from transformers import AutoTokenizer
from verl import DataProto
from verl.experimental.reward_loop import RewardLoopManager, migrate_legacy_reward_impl
from verl.trainer.ppo.reward import extract_reward, load_reward_manager

from adjudge.engine.adapters.source import TrainingStop
from tests.reward_pages import URL, block
from tests.tiny_model import tiny_model
from tests.trainers.rollouts import DEADLINE_S, PROMPT, RUBRICS, TEXT

MANAGERS = {
    "naive": "verl.experimental.reward_loop.reward_manager.naive.NaiveRewardManager",
    "dapo": "verl.experimental.reward_loop.reward_manager.dapo.DAPORewardManager",
    "gdpo": "verl.experimental.reward_loop.reward_manager.gdpo.GDPORewardManager",
    "rate_limited": "verl.experimental.reward_loop.reward_manager.limited.RateLimitedRewardManager",
    "remote": "verl.experimental.reward_loop.reward_manager.remote.RemoteRewardManager",
}
KEYS = {"parts", "score", "failed", "reason", "n_asked", "n_answered", "score_clipped"}


def configured(
    manager: str, source: str, *more: str, function: str = "compute_score", constant: bool = False
) -> DictConfig:
    """verl's configuration of its trainer, from the command of its page; the constant only where it is wanted."""
    typed = [word for word in shlex.split(block("verl", "sh").replace(URL, source)) if "reward." in word]
    given = {
        **dict(word.split("=", 1) for word in typed),
        "reward.custom_reward_function.name": function,
        "+reward.custom_reward_function.reward_kwargs.deadline": DEADLINE_S,
        "reward.reward_manager.name": manager,
        "reward.num_workers": 1,
        "actor_rollout_ref.model.path": tiny_model(),
    }
    if not constant:
        del given["+reward.custom_reward_function.reward_kwargs.on_failure"]
    folder = Path(verl.__file__).parent / "trainer" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("ppo_trainer", [*(f"{key}={value}" for key, value in given.items()), *more])
    return migrate_legacy_reward_impl(config)


def rollouts(texts: list[str], tasks: list[object], extra: Mapping[str, object]) -> DataProto:
    """A batch as verl's rollout makes it: token ids to the right of the prompt, and the data set's row."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_model())
    prompts = tokenizer([PROMPT] * len(texts), return_tensors="pt")["input_ids"]
    encoded = [tokenizer(text)["input_ids"] for text in texts]
    width = max(map(len, encoded))
    responses = torch.tensor([ids + [0] * (width - len(ids)) for ids in encoded])
    mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids in encoded])
    batch = TensorDict(
        {
            "prompts": prompts,
            "responses": responses,
            "attention_mask": torch.cat([torch.ones_like(prompts), mask], dim=1),
        },
        batch_size=len(texts),
    )
    rows = {
        "data_source": ["reports"] * len(texts),
        "reward_model": [{"style": "rule", "ground_truth": task} for task in tasks],
        "extra_info": [{"index": n, **extra} for n in range(len(texts))],
    }
    return DataProto(batch, {name: np.array(values, dtype=object) for name, values in rows.items()})


def path_of(kind: type) -> str:
    """Where a class is imported from."""
    return f"{kind.__module__}.{kind.__qualname__}"


async def seen(
    manager: str,
    source: str,
    *more: str,
    constant: bool = False,
    truth: object = "1",
    extra: Mapping[str, object] = {"prompt": PROMPT},
) -> dict:
    """What the manager makes of one rollout."""
    config = configured(manager, source, *more, constant=constant)
    made = load_reward_manager(config, AutoTokenizer.from_pretrained(tiny_model()))
    assert path_of(type(made)) == MANAGERS[manager]
    return await made.run_single(rollouts([TEXT], [truth], extra))


@pytest.mark.parametrize("manager", [name for name in MANAGERS if name != "remote"])  # which needs Ray
class TestManagers:
    async def test_manager_sees_the_reward_and_its_metrics(self, manager, good):
        found = await seen(manager, good)
        assert found["reward_score"] == 0.8
        extra = found["reward_extra_info"]
        assert set(extra) == KEYS and (extra["score_clipped"], extra["failed"]) == (0.8, 0)

    async def test_judge_that_is_down_stops_the_step(self, manager, down):
        with pytest.raises(TrainingStop, match="judge_unavailable"):
            await seen(manager, down)

    async def test_judge_that_is_slow_stops_the_step_in_time(self, manager, slow):
        began = time.monotonic()
        with pytest.raises(TrainingStop, match="deadline"):
            await seen(manager, slow)
        assert time.monotonic() - began < 30

    async def test_failure_is_the_constant_where_one_is_set(self, manager, down, slow):
        for source, reason in ((down, "judge_unavailable"), (slow, "deadline")):
            found = await seen(manager, source, constant=True)
            extra = found["reward_extra_info"]
            assert (found["reward_score"], extra["failed"], extra["reason"]) == (-1.0, 1, reason)
            assert set(extra) == KEYS and extra["score_clipped"] == -1.0

    async def test_row_brings_its_own_rubrics(self, manager, good):
        for truth, extra in (
            ({"rubrics": RUBRICS}, {}),
            (json.dumps(RUBRICS), {}),
            ("", {"rubrics": RUBRICS}),
        ):
            found = await seen(manager, good, truth=truth, extra=extra)
            assert found["reward_score"] == 1.0
        (part,) = json.loads(found["reward_extra_info"]["parts"])
        assert (part["protocol"], part["value"]) == ("rubrics", 1.0)

    async def test_truncated_rollout_gets_the_minimum(self, manager, good):
        found = await seen(manager, good, extra={"truncated": True})
        assert (found["reward_score"], found["reward_extra_info"]["reason"]) == (0.0, "truncated")

    async def test_wrong_settings_stop_the_step(self, manager, good):
        with pytest.raises(TrainingStop, match="no_such"):
            await seen(manager, good, "reward.custom_reward_function.reward_kwargs.metrics=[no_such]")


class TestReportManager:
    """Ours, from the second command of its page."""

    FOUND = f"<|im_start|>user\n{TEXT}<|im_end|>\n<|im_start|>assistant\n"

    @staticmethod
    def made(source: str, *more: str) -> object:
        page = [
            word for word in shlex.split(block("verl", "sh", 1).replace(URL, source)) if "reward." in word
        ]
        config = configured("naive", source, *(word for word in page if "reward_manager" in word), *more)
        return load_reward_manager(config, AutoTokenizer.from_pretrained(tiny_model()))

    @staticmethod
    def rolled(turns: list[tuple[str, int]], has_mask: bool) -> DataProto:
        """A response of `turns`, padded, with a mask of those that the policy wrote (1) if the batch has one."""
        data = rollouts(["".join(text for text, _ in turns), f"{TEXT} " * 40], ["1", "1"], {"prompt": PROMPT})
        width = data.batch["responses"].shape[-1]
        tokenizer = AutoTokenizer.from_pretrained(tiny_model())
        marks = [own for text, own in turns for _ in tokenizer(text)["input_ids"]]
        if has_mask:
            mask = torch.tensor([marks + [0] * (width - len(marks)), [1] * width])
            data.batch["response_mask"] = mask
        return data[:1]

    @pytest.mark.parametrize("has_mask", [True, False], ids=["mask", "tokens alone"])
    async def test_what_a_tool_says_is_not_paid(self, has_mask, good):
        manager = self.made(good)
        assert path_of(type(manager)) == "adjudge.engine.adapters.verl_manager.ReportManager"
        search = ("I search.<|im_end|>\n", 1)
        paid = [search, (self.FOUND, 0), (f"{TEXT}<|im_end|>", 1)]
        unpaid = [search, (self.FOUND, 0), ("Nothing was found.<|im_end|>", 1)]
        found = await manager.run_single(self.rolled(paid, has_mask))
        assert found["reward_score"] == 0.8 and set(found["reward_extra_info"]) == KEYS
        assert (await manager.run_single(self.rolled(unpaid, has_mask)))["reward_score"] == 0.0

    async def test_mask_tells_what_no_mark_does(self, good):
        manager = self.made(good)
        turns = [("I search. ", 1), (f"{TEXT} ", 0), ("Nothing was found.", 1)]
        assert (await manager.run_single(self.rolled(turns, True)))["reward_score"] == 0.0
        assert (await manager.run_single(self.rolled(turns, False)))["reward_score"] == 0.8

    @pytest.mark.parametrize(("end", "value"), [("", 0.0), ("<|im_end|>", 0.8)])
    async def test_response_of_full_length_without_an_end_is_cut(self, end, value, good):
        length = len(AutoTokenizer.from_pretrained(tiny_model())(f"{TEXT}{end}")["input_ids"])
        manager = self.made(good, f"actor_rollout_ref.rollout.response_length={length}")
        assert (await manager.run_single(self.rolled([(f"{TEXT}{end}", 1)], True)))["reward_score"] == value

    async def test_failure_stops_the_step(self, down):
        with pytest.raises(TrainingStop, match="judge_unavailable"):
            await self.made(down).run_single(self.rolled([(TEXT, 1)], True))


async def test_rate_limit_that_runs_out_first_is_no_zero(slow):
    limits = ("+reward.timeout=0.5", "reward.custom_reward_function.reward_kwargs.deadline=15")
    with pytest.raises(TrainingStop, match="deadline"):
        await seen("rate_limited", slow, *limits)
    found = await seen("rate_limited", slow, *limits, constant=True)
    assert (found["reward_score"], found["reward_extra_info"]["reason"]) == (-1.0, "deadline")


class TestRewardLoop:
    @pytest.fixture(scope="class", autouse=True)
    def cluster(self) -> Iterator[None]:
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()

    @pytest.mark.parametrize(
        ("manager", "function"),
        [("naive", "compute_score"), ("rate_limited", "compute_score"), ("remote", "compute_score_sync")],
    )
    def test_loop_on_ray_carries_rewards_and_failures(self, manager, function, good):
        loop = RewardLoopManager(configured(manager, good, function=function, constant=True))
        assert path_of(loop.reward_manager_cls) == MANAGERS[manager]
        truths = ["1", "1", {"rubrics": RUBRICS}, "", "1", "nobody"]
        batch = rollouts([TEXT, "", TEXT, TEXT, TEXT, TEXT], truths, {"prompt": PROMPT})
        brought = {3: {"prompt": "another", "rubrics": RUBRICS}, 4: {"truncated": True}, 5: {}}
        for place, extra_info in brought.items():
            batch.non_tensor_batch["extra_info"][place] = extra_info
        tensor, extra = extract_reward(batch.union(loop.compute_rm_score(batch)))
        values = [0.8, 0.0, 1.0, 1.0, 0.0, -1.0]
        assert tensor.sum(dim=1).tolist() == pytest.approx(values)
        assert set(extra) == KEYS
        assert extra["failed"].tolist() == [0, 0, 0, 0, 0, 1]
        assert extra["reason"].tolist() == ["", "report_empty", "", "", "truncated", "task_unknown"]
        assert extra["score_clipped"].tolist() == values

    def test_loop_on_ray_is_stopped_by_a_failure(self, down):
        loop = RewardLoopManager(configured("rate_limited", down))
        with pytest.raises(ray.exceptions.RayTaskError, match="judge_unavailable"):
            loop.compute_rm_score(rollouts([TEXT], ["1"], {}))
