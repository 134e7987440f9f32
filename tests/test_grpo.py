"""Real GRPO runs: TRL, a tiny random model on the CPU, and rewards from a live `adjudge serve`.

The judge is a mock, or a vLLM server of the same tiny model: its verdicts mean nothing, and all around them is real.
"""

import contextlib
import functools
import math
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from adjudge.engine.adapters import trl as adapter
from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from tests import local_vllm
from tests.reward_server import judge_server, reward_server
from tests.tiny_model import tiny_model
from tests.worlds import lines, world

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]

STEPS = 3


def trainer_of(folder: Path, rewards: object, monkeypatch: pytest.MonkeyPatch) -> Any:
    """TRL's trainer for four prompts, a prompt a step with four rollouts."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    return GRPOTrainer(
        model=str(tiny_model()),
        reward_funcs=rewards,
        args=GRPOConfig(
            output_dir=str(folder / "out"),
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=16,
            max_steps=STEPS,
            learning_rate=1e-3,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to=[],
            save_strategy="no",
            seed=1,
        ),
        train_dataset=Dataset.from_dict(
            {
                "prompt": [f"What is fact {n}? It states fact number {n}." for n in range(4)],
                "task_id": [str(n) for n in range(4)],
            }
        ),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", [adapter.async_reward, adapter.reward], ids=["async", "sync"])
def test_rewards_of_three_optimiser_steps_equal_evaluate(tmp_path: Path, monkeypatch, form) -> None:
    seen: list[dict[str, object]] = []
    with contextlib.ExitStack() as stack:
        judge = {"backend": "openai", "url": stack.enter_context(judge_server()), "model": "mock"}
        config = world(tmp_path, tasks=4, judge=judge, reward={"metric": "score_clipped"})
        url, _ = stack.enter_context(reward_server(config))
        scored = functools.partial(form, source=url)
        rewards = functools.partial(_kept_async if form is adapter.async_reward else _kept, scored, seen)
        trainer = trainer_of(tmp_path, rewards, monkeypatch)
        before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
        trainer.train()
        assert [row["value"] for row in seen] == _evaluated(tmp_path, seen)
    assert trainer.state.global_step == STEPS and len(seen) == 4 * STEPS
    assert len({row["value"] for row in seen}) > 2
    assert all(math.isfinite(row["loss"]) for row in trainer.state.log_history if "loss" in row)
    assert any((before[name] != weight).any() for name, weight in trainer.model.named_parameters())


@pytest.mark.filterwarnings("ignore")
def test_rubrics_evolve_between_steps_before_a_real_vllm(tmp_path: Path, monkeypatch) -> None:
    """Each step has rubrics of its own, which come with the rows; the server knows no task."""
    seen: list[dict[str, Any]] = []
    with local_vllm.server() as judge:
        settings = {
            "protocols": ["rubrics"],
            "judge": {"backend": "openai", "url": judge.url, "model": "judge"},
            "fetch": {"mode": "off"},
            "store": str(tmp_path / "store"),
            "reward": {"metric": "score_clipped", "deadline_s": 100},
        }
        config = tmp_path / "rewards.yaml"
        config.write_bytes(msgspec.yaml.encode(settings))
        with reward_server(config) as (url, _):
            rewards = functools.partial(_evolving, functools.partial(adapter.async_reward, source=url), seen)
            trainer = trainer_of(tmp_path, rewards, monkeypatch)
            before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
            trainer.train()
    assert trainer.state.global_step == STEPS
    assert [row["step"] for row in seen] == [step for step in range(STEPS) for _ in range(4)]
    assert all(row["reason"] == "" and 0.0 <= row["value"] <= 1.0 for row in seen)
    for row in seen:
        assert [part["id"] for part in row["parts"]] == [r["id"] for r in _rubrics_of(row["step"])]
        points = sum(part["value"] for part in row["parts"])
        assert row["value"] == pytest.approx(points / sum(r["points"] for r in _rubrics_of(row["step"])))
    assert len({row["value"] for row in seen}) > 1
    assert any((before[name] != weight).any() for name, weight in trainer.model.named_parameters())


def _rubrics_of(step: int) -> list[dict[str, Any]]:
    """One that stays, and those that the policy's progress has brought so far."""
    lasting = [{"id": "asked", "criterion": "The report answers its question.", "points": 2}]
    return lasting + [
        {"id": f"step {n}", "criterion": f"The report names fact number {n}.", "points": n + 1}
        for n in range(step + 1)
    ]


async def _evolving(scored, seen, prompts, completions, *, trainer_state, task_id, log_extra=None, **columns):
    """Rewards by the rubrics of this step; what a reward is made of is read from TRL's table of completions."""
    step = trainer_state.global_step
    table: dict[str, list[str]] = {}
    rubrics = [_rubrics_of(step)] * len(prompts)
    values = await scored(prompts, completions, rubrics=rubrics, log_extra=table.__setitem__, **columns)
    told = zip(values, table["adjudge_reason"], table["adjudge_parts"], strict=True)
    seen += [
        {"step": step, "value": value, "reason": reason, "parts": msgspec.json.decode(parts)}
        for value, reason, parts in told
    ]
    return values


async def _kept_async(scored, seen, prompts, completions, **columns):
    return _keep(seen, completions, columns["task_id"], await scored(prompts, completions, **columns))


def _kept(scored, seen, prompts, completions, **columns):
    return _keep(seen, completions, columns["task_id"], scored(prompts, completions, **columns))


def _keep(seen, completions, tasks, values):
    seen += [
        {"text": text, "task_id": task, "value": value}
        for text, task, value in zip(completions, tasks, values, strict=True)
    ]
    return values


def _evaluated(folder: Path, seen: list[dict[str, object]]) -> list[float]:
    """The scores that `adjudge evaluate` gives the same completions, with a separate store."""
    for old in (folder / "reports").iterdir():
        old.unlink()
    rows = [
        {"task_id": row["task_id"], "system": "policy", "sample": number, "text": row["text"]}
        for number, row in enumerate(seen)
    ]
    lines(folder / "reports" / "policy.jsonl", rows)
    evaluate(RunConfig.load(folder / "adjudge.yaml", store=str(folder / "other")))
    found = {
        row["sample"]: row["value"]
        for row in pq.read_table(folder / "run" / "scores.parquet").to_pylist()
        if row["metric"] == "score_clipped"
    }
    return [found[number] for number in range(len(seen))]
