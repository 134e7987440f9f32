"""OpenRLHF: a Python `reward_func`; the remote form is `/get_reward` of `adjudge serve`.

    --reward.remote_url .../adjudge/engine/adapters/openrlhf.py      with ADJUDGE_REWARDS set
    --reward.remote_url http://127.0.0.1:8300/get_reward

Tensors cannot hold None, and after an Exception OpenRLHF continues without a reward; so a failed reward ends the step,
unless ADJUDGE_ON_FAILURE is a number or `group_mean`. ADJUDGE_METRICS names the metrics for its logs, separated by
commas.
"""

import os
from collections.abc import Sequence
from typing import Any

from adjudge.engine.adapters.source import (
    Source,
    numbers,
    numbers_of,
    open_source,
    rollout,
    seconds,
    unswallowed,
)
from adjudge.engine.rewards.reward import labelled, response_in

__all__ = ["reward_func"]

METRICS = "ADJUDGE_METRICS"


def reward_func(
    queries: Sequence[str],
    prompts: Sequence[str],
    labels: Sequence[object],
    *,
    source: Source = None,
    deadline: float | None = None,
    **kwargs: object,
) -> dict[str, Any]:
    """Rewards of `queries`, each a prompt and its response; a label is the task's id, or what it is judged by as JSON.

    `rewards` and `scores` are float32 tensors of [len(queries)]; so is each of `extra_logs`: `failed`, 1 for a failed
    reward, and the metrics that are named. Raises TrainingStop.
    """
    import torch  # type: ignore[import-not-found]

    with unswallowed():
        items = [
            rollout(response_in(query, prompt), prompt=prompt, row=labelled(label))
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        rewards = open_source(source).score_sync(items, deadline=seconds(deadline)) if items else []
        metrics = [name for name in os.environ.get(METRICS, "").split(",") if name]
        logs = [{"failed": float(reward.value is None), **numbers_of(reward, metrics)} for reward in rewards]
        values = torch.tensor(numbers(items, rewards), dtype=torch.float32)
        extra = {name: torch.tensor([log[name] for log in logs]) for name in ("failed", *metrics)}
        return {"rewards": values, "scores": values, "extra_logs": extra}
