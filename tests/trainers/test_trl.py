"""TRL's own GRPOTrainer: what it makes of rewards, and what it logs."""

import functools
import json
import math
import time
from pathlib import Path

import msgspec
import pytest
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from tests.reward_pages import URL, block
from tests.tiny_model import tiny_model
from tests.trainers.rollouts import DEADLINE_S, PROMPT, RUBRICS, TEXT

END = 2
TASK = {"task_id": "1"}


@pytest.fixture(params=["async_reward", "reward"])
def scored(request, tmp_path: Path, monkeypatch):
    """What the trainer makes of completions: its rewards, and the metrics and columns that are waiting to be logged."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    page = block("trl", "python").replace("async_reward", request.param)

    def score(
        source: str, *texts: str, last: int = END, row: dict[str, object] = TASK
    ) -> tuple[list[float], dict, dict]:
        typed = {}
        exec(page.replace(URL, source), typed)
        trainer = GRPOTrainer(
            model=str(tiny_model()),
            reward_funcs=functools.partial(typed["reward_funcs"], deadline=DEADLINE_S, end_ids=[END]),
            args=GRPOConfig(
                output_dir=str(tmp_path), per_device_train_batch_size=2, num_generations=2, use_cpu=True,
                bf16=False, report_to=[],
            ),
            train_dataset=Dataset.from_dict({"prompt": [PROMPT], "task_id": ["1"]}),
        )  # fmt: skip
        path = f"{type(trainer).__module__}.{type(trainer).__qualname__}"
        assert path == "trl.trainer.grpo_trainer.GRPOTrainer"
        inputs = [{"prompt": PROMPT, **row}] * len(texts)
        encoded = [[*trainer.processing_class(text)["input_ids"], last] for text in texts]
        found = trainer._calculate_rewards(inputs, [row["prompt"] for row in inputs], list(texts), encoded)
        return found[:, 0].tolist(), dict(trainer._pending_metrics), dict(trainer._pending_extra_logs)

    return score


def test_trainer_sees_and_logs_the_rewards(scored, good):
    values, metrics, columns = scored(good, TEXT, "")
    assert values == pytest.approx([0.8, 0.0])
    assert metrics["adjudge/score_clipped"] == [0.8, 0.0] and metrics["adjudge/failed"] == [0.0, 0.0]
    assert columns["adjudge_reason"] == ["", "report_empty"]
    first, *_ = msgspec.json.decode(columns["adjudge_parts"][0])
    assert first["protocol"] == "rubrics" and first["value"] is not None


def test_row_brings_its_own_rubrics(scored, good):
    row = {"prompt": "another prompt", "rubrics": RUBRICS}
    assert scored(good, TEXT, row=row)[0] == [1.0]
    assert scored(good, TEXT, row={**row, "rubrics": json.dumps(RUBRICS)})[0] == [1.0]


def test_truncated_rollout_gets_the_minimum(scored, good):
    values, _, columns = scored(good, TEXT, last=7)
    assert values == [0.0] and columns["adjudge_reason"] == ["truncated"]


def test_failed_judge_is_no_number(scored, down):
    values, metrics, columns = scored(down, TEXT, TEXT)
    assert all(map(math.isnan, values))  # what TRL makes of None: such a row has no gradient
    assert metrics["adjudge/failed"] == [1.0, 1.0]
    assert columns["adjudge_reason"] == ["judge_unavailable"] * 2


def test_slow_judge_is_no_number_in_time(scored, slow):
    began = time.monotonic()
    values, _, columns = scored(slow, TEXT)
    assert math.isnan(values[0]) and columns["adjudge_reason"] == ["deadline"]
    assert time.monotonic() - began < 30
