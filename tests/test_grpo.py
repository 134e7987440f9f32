"""A real GRPO run: TRL, a tiny random model on the CPU, and rewards from a live `adjudge serve`."""

import contextlib
import functools
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adjudge.engine import RunConfig, evaluate
from adjudge.engine.adapters import trl as adapter
from tests.reward_server import judge_server, reward_server
from tests.tiny_model import tiny_model
from tests.worlds import lines, world

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]

STEPS = 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", [adapter.async_reward, adapter.reward], ids=["async", "sync"])
def test_rewards_of_three_optimiser_steps_equal_evaluate(tmp_path: Path, monkeypatch, form) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    seen: list[dict[str, object]] = []
    with contextlib.ExitStack() as stack:
        judge = {"backend": "openai", "url": stack.enter_context(judge_server()), "model": "mock"}
        config = world(tmp_path, tasks=4, judge=judge, reward={"metric": "score_clipped"})
        url, _ = stack.enter_context(reward_server(config))
        scored = functools.partial(form, source=url)
        rewards = functools.partial(_kept_async if form is adapter.async_reward else _kept, scored, seen)
        trainer = GRPOTrainer(
            model=str(tiny_model()),
            reward_funcs=rewards,
            args=GRPOConfig(
                output_dir=str(tmp_path / "out"),
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
        before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
        trainer.train()
        assert [row["value"] for row in seen] == _evaluated(tmp_path, seen)
    assert trainer.state.global_step == STEPS and len(seen) == 4 * STEPS
    assert len({row["value"] for row in seen}) > 2
    assert all(math.isfinite(row["loss"]) for row in trainer.state.log_history if "loss" in row)
    assert any((before[name] != weight).any() for name, weight in trainer.model.named_parameters())


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
