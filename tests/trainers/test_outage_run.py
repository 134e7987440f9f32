"""A GRPO run of twenty steps in which the judge and then the reward server are killed and started again.

Each outage begins with a step and ends some seconds later; a later step waits until it is over, so that its length in
steps is bounded on any machine.
"""

import contextlib
import functools
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from adjudge.engine.adapters import trl
from adjudge.engine.config.reward import OutageConfig
from adjudge.engine.rewards.outage import OutageStop
from adjudge.engine.serving.client import RewardClient
from tests.reward_server import SERVE
from tests.tiny_model import tiny_model
from tests.worlds import world

pytestmark = [pytest.mark.timeout(200)]

STEPS, GROUP = 20, 4
DEADLINE_S, AWAY_S = 2.0, 5.0
JUDGE_DIES, JUDGE_IS_BACK, SERVER_DIES, SERVER_IS_BACK = 4, 8, 12, 16


class Machine:
    """A process on a port of its own, that can be killed and started again."""

    def __init__(self, command: Callable[[int], list[str]]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._command = command(self.port)
        self._back: threading.Thread | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.1)
        raise TimeoutError(f"{self._command}: does not listen")

    def stop(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Kill it, and start it again after AWAY_S, meanwhile."""
        self.stop()
        self._back = threading.Thread(target=lambda: (time.sleep(AWAY_S), self.start()))
        self._back.start()

    def wait(self) -> None:
        """Wait until it is back."""
        if self._back is not None:
            self._back.join()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    """A judge, and a reward server before it."""
    judge = Machine(lambda port: [sys.executable, "-m", "tests.mock_openai", "--port", str(port)])
    served = {"backend": "openai", "url": f"http://127.0.0.1:{judge.port}/v1", "model": "mock", "retries": 0}
    config = world(
        tmp_path, tasks=2, judge=served, reward={"metric": "score_clipped", "deadline_s": DEADLINE_S}
    )
    server = Machine(lambda port: [*SERVE, str(config), "--port", str(port)])
    try:
        yield judge, server
    finally:
        for one in (server, judge):
            one.wait()
            one.stop()


Run = list[tuple[list[float | None], list[float]]]
"""Of each step, the rewards that TRL got and the advantages that it made of them."""


def trained(
    folder: Path, machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch, **outage: float
) -> tuple[Run, GRPOTrainer, BaseException | None]:
    """A run, its trainer, and what ended it early."""
    judge, server = machines
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    torch.set_num_threads(1)  # on a busy machine several wait for each other
    source = RewardClient(f"http://127.0.0.1:{server.port}", DEADLINE_S, OutageConfig(**outage))
    scored = functools.partial(trl.async_reward, source=source)
    rewards: list[list[float | None]] = []
    advantages: list[list[float]] = []

    async def reward(prompts: list[str], completions: list[str], **columns: Any) -> list[float | None]:
        step = len(rewards)
        {JUDGE_DIES: judge.restart, SERVER_DIES: server.restart}.get(step, lambda: None)()
        {JUDGE_IS_BACK: judge.wait, SERVER_IS_BACK: server.wait}.get(step, lambda: None)()
        rewards.append(await scored(prompts, completions, **columns))
        return rewards[-1]

    trainer = GRPOTrainer(
        model=str(tiny_model()),
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=str(folder / "out"), per_device_train_batch_size=GROUP, num_generations=GROUP, seed=1,
            max_completion_length=8, max_steps=STEPS, learning_rate=1e-3, use_cpu=True, bf16=False, logging_steps=1,
            gradient_checkpointing=False, report_to=[], save_strategy="no", disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict(
            {"prompt": [f"What is fact {n}?" for n in (0, 1)], "task_id": ["0", "1"]}
        ),
    )  # fmt: skip
    score = trainer._generate_and_score_completions

    def kept(inputs: object) -> dict[str, Any]:
        found = score(inputs)
        advantages.append(found["advantages"].tolist())
        return found

    monkeypatch.setattr(trainer, "_generate_and_score_completions", kept)
    error = None
    try:
        trainer.train()
    except OutageStop as stop:
        error = stop
    source.close()
    found = list(zip(rewards, advantages, strict=False))
    lost = sum(None in values for values, _ in found)
    print(f"{outage or 'none'}: {len(found)} steps, {lost} lost, {error}")
    return found, trainer, error


def test_outages_cost_steps_and_nothing_else(tmp_path: Path, machines, monkeypatch) -> None:
    run, trainer, _ = trained(tmp_path, machines, monkeypatch)
    assert len(run) == STEPS == trainer.state.global_step
    lost = [step for step, (values, _) in enumerate(run) if None in values]
    assert (
        {JUDGE_DIES, SERVER_DIES}
        <= set(lost)
        <= {*range(JUDGE_DIES, JUDGE_IS_BACK + 1), *range(SERVER_DIES, SERVER_IS_BACK + 1)}
    )
    for step, (values, advantages) in enumerate(run):
        if step in lost:
            assert values == [None] * GROUP and advantages == [0.0] * GROUP, "no gradient, in no direction"
        else:
            assert sum(advantages) == pytest.approx(0.0, abs=1e-3)
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert len(losses) == STEPS and all(map(math.isfinite, losses))


def test_held_run_loses_no_step(tmp_path: Path, machines, monkeypatch) -> None:
    run, trainer, _ = trained(tmp_path, machines, monkeypatch, hold_s=90)
    assert len(run) == STEPS == trainer.state.global_step
    assert all(None not in values for values, _ in run)


def test_run_stops_above_a_share_of_failures(tmp_path: Path, machines, monkeypatch) -> None:
    run, _, error = trained(tmp_path, machines, monkeypatch, stop_share=0.15)
    assert error is not None and "judge_unavailable" in str(error) and "stop_share 0.15" in str(error)
    assert JUDGE_DIES <= len(run) <= JUDGE_IS_BACK
