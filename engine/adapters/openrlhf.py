"""OpenRLHF: a Python `reward_func`; the remote form is `/get_reward` of `adjudge serve`.

    --reward.remote_url .../adjudge/engine/adapters/openrlhf.py      with ADJUDGE_REWARDS set
    --reward.remote_url http://127.0.0.1:8300/get_reward

Tensors cannot hold None: a failed reward raises, unless ADJUDGE_ON_FAILURE is a number.
"""

import os
from collections.abc import Sequence
from typing import Any

from adjudge.engine.adapters.source import Source, number, open_source
from adjudge.engine.rewards.reward import RewardItem
from adjudge.engine.serving.conversation import response_in, task_name

__all__ = ["reward_func"]

ON_FAILURE = "ADJUDGE_ON_FAILURE"


def reward_func(
    queries: Sequence[str],
    prompts: Sequence[str],
    labels: Sequence[object],
    *,
    source: Source = None,
    deadline: float | None = None,
    **kwargs: object,
) -> dict[str, Any]:
    """Rewards of `queries`, each a prompt and its response; a label that is a text or whole number is the task's id.

    `rewards` and `scores` are float32 tensors of [len(queries)]; so is `extra_logs["failed"]`, 1 for a failed reward.
    """
    import torch  # type: ignore[import-not-found]

    items = [
        RewardItem(text=response_in(query, prompt), prompt=prompt, task_id=task_name(label))
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    rewards = open_source(source).score_sync(items, deadline=deadline) if items else []
    on_failure = os.environ.get(ON_FAILURE, "raise")
    values = torch.tensor([number(reward, on_failure) for reward in rewards], dtype=torch.float32)
    failed = torch.tensor([float(reward.value is None) for reward in rewards])
    return {"rewards": values, "scores": values, "extra_logs": {"failed": failed}}
