"""verifiers: a reward to plug into a taskset, or to await in a task's own `@vf.reward`.

    [env.taskset.task.rewards.adjudge]
    fn = "adjudge.engine.adapters.verifiers:reward"

with ADJUDGE_REWARDS set. verifiers looks the ids of judges up inside its own package, so a judge cannot be plugged from
here. A failed reward raises: the trace then has the error, and None as its reward.
"""

from typing import Any

from adjudge.engine.adapters.source import Source, number, open_source, seconds
from adjudge.engine.rewards.reward import RewardItem
from adjudge.engine.serving.conversation import task_name

__all__ = ["reward"]


async def reward(task: Any, trace: Any, *, source: Source = None, deadline: float | None = None) -> float:
    """The reward of the last reply in `trace` for the data `task`; its metrics are recorded on the trace.

    The task is the known one with its `id`, which verifiers before 0.4 do not have, else the one with its prompt.
    Raises RewardError for a failed one.
    """
    item = RewardItem(
        text=trace.last_reply, task_id=task_name(getattr(task, "id", None)), prompt=task.prompt_text
    )
    (found,) = await open_source(source).score([item], deadline=seconds(deadline))
    trace.record_metrics({name: value for name, value in found.scores.items() if value is not None})
    return number(found)
