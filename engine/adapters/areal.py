"""AReaL: a `reward_fn` for its rollout workflows.

AReaL gives a reward function 15 seconds and three retries, then assigns the reward 0. So the deadline here is 12 s, and
a failed reward raises, which AReaL does not turn into a number. Increase both limits for slower judges.
"""

from collections.abc import Sequence

from adjudge.engine.adapters.source import Source, number, open_source
from adjudge.engine.rewards.reward import RewardItem
from adjudge.engine.serving.conversation import task_name

__all__ = ["reward_fn"]

DEADLINE_S = 12.0


def reward_fn(
    prompt: str,
    completions: str,
    prompt_ids: Sequence[int],
    completion_ids: Sequence[int],
    *,
    source: Source = None,
    deadline: float = DEADLINE_S,
    on_failure: str | float = "raise",
    task_id: object = None,
    **columns: object,
) -> float:
    """The reward of one completion. Its task is `task_id`, a column of the data set, or else found by the prompt."""
    item = RewardItem(text=completions, prompt=prompt, task_id=task_name(task_id))
    (reward,) = open_source(source).score_sync([item], deadline=deadline)
    return number(reward, on_failure)
