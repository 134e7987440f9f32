"""AReaL's own executor of workflows, with an engine that answers at once in place of its inference servers."""

import functools
import time

import pytest
from areal.api import ModelResponse
from areal.api.cli_args import GenerationHyperparameters, InferenceEngineConfig
from areal.infra.workflow_executor import WorkflowExecutor
from areal.utils.dynamic_import import import_from_string
from areal.workflow.rlvr import RLVRWorkflow
from transformers import AutoTokenizer

from adjudge.engine.adapters.areal import ReportWorkflow
from tests.reward_pages import block
from tests.reward_server import judge_server, reward_server
from tests.tiny_model import tiny_model
from tests.trainers.conftest import REWARD
from tests.trainers.rollouts import DEADLINE_S, PROMPT, RUBRICS, TEXT
from tests.worlds import world

ROW = {"messages": [{"role": "user", "content": PROMPT}], "task_id": "1"}


class Engine:
    """An inference engine whose model writes `text`."""

    def __init__(self, text: str, stop_reason: str) -> None:
        self.tokens = AutoTokenizer.from_pretrained(tiny_model())(text)["input_ids"]
        self.stop_reason = stop_reason

    async def agenerate(self, request: object) -> ModelResponse:
        count = len(self.tokens)
        return ModelResponse(
            input_tokens=request.input_ids,
            output_tokens=self.tokens,
            output_logprobs=[0.0] * count,
            output_versions=[0] * count,
            stop_reason=self.stop_reason,
        )

    def get_version(self) -> int:
        return 0


def rolled_out(
    workflow, text: str = TEXT, stop_reason: str = "stop", count: int = 1, row: dict = ROW
) -> list[dict | None]:
    """The trajectories that AReaL keeps; None in place of a rejected one."""
    assert issubclass(type(workflow), RLVRWorkflow)
    assert RLVRWorkflow.__module__ == "areal.workflow.rlvr"
    config = InferenceEngineConfig(consumer_batch_size=count, max_concurrent_rollouts=count)
    executor = WorkflowExecutor(config, Engine(text, stop_reason))
    executor.initialize(train_data_parallel_size=1)
    try:
        for _ in range(count):
            executor.submit(row, workflow)
        return executor.wait(count, timeout=60, raise_timeout=False)
    finally:
        executor.destroy()


@pytest.fixture
def workflow():
    typed: dict = {}
    exec(block("areal", "python"), typed)
    made = import_from_string(typed["workflow"])
    assert made is ReportWorkflow
    given = {**typed["workflow_kwargs"], "deadline": DEADLINE_S}
    return functools.partial(made, GenerationHyperparameters(), str(tiny_model()), **given)


def test_rollout_carries_its_reward(workflow, good):
    (kept,) = rolled_out(workflow(source=good))
    assert kept["rewards"].tolist() == pytest.approx([0.8])


def test_row_brings_its_own_rubrics(workflow, good):
    row = {"messages": [{"role": "user", "content": "another prompt"}], "rubrics": RUBRICS}
    (kept,) = rolled_out(workflow(source=good), row=row)
    assert kept["rewards"].tolist() == [1.0]


def test_truncated_rollout_gets_the_minimum(workflow, good):
    (kept,) = rolled_out(workflow(source=good), stop_reason="length")
    assert kept["rewards"].tolist() == [0.0]


@pytest.mark.parametrize("failing", ["down", "slow"])
def test_failed_judge_rejects_the_rollout(workflow, failing, request):
    source = request.getfixturevalue(failing)  # starts the server, which takes its time on a busy machine
    began = time.monotonic()
    assert rolled_out(workflow(source=source)) == [None]
    assert time.monotonic() - began < 30


def test_busy_judge_rejects_and_zeroes_nothing(workflow, tmp_path):
    with judge_server(latency=4.0) as judge:
        judged = {"backend": "openai", "url": judge, "model": "mock", "retries": 0}
        with reward_server(world(tmp_path, judge=judged, reward=REWARD)) as (url, _):
            kept = rolled_out(workflow(source=url, deadline=30.0), count=32)
    values = {row["rewards"].item() for row in kept if row is not None}
    assert len(kept) == 32 and None not in kept and len(values) == 1 and values != {0.0}
