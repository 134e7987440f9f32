"""rLLM: a reward function for its workflows and its evaluators.

    SimpleWorkflow(..., reward_function=adjudge.engine.adapters.rllm.reward)

with ADJUDGE_REWARDS set. rLLM has no missing rewards: a failed one raises, and its workflow engine tries the episode
again, unless ADJUDGE_ON_FAILURE is a number.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from rllm.rewards.reward_types import RewardOutput  # type: ignore[import-not-found]

from adjudge.engine.adapters.source import number, open_source, rollout, seconds
from adjudge.engine.rewards.reward import labelled

__all__ = ["reward"]


def reward(task_info: Mapping[str, Any], action: Any) -> Any:
    """The reward of `action`, a text or rLLM's Action, for a row of its data set, as a RewardOutput.

    What it is judged by is in the row by name, or its `ground_truth`; the task is also found by `question` or `prompt`.
    Raises RewardError for a failed one.
    """
    said = str(getattr(action, "action", action))
    row = {**labelled(task_info.get("ground_truth")), **task_info}
    prompt = task_info.get("question") or task_info.get("prompt")
    (found,) = open_source(None).score_sync([rollout(said, prompt=prompt, row=row)], deadline=seconds(None))
    told = {"reason": found.reason, "scores": found.scores, "parts": msgspec.to_builtins(found.parts)}
    return RewardOutput(reward=number(found), metadata={"adjudge": told})
