"""verifiers: a reward to plug into a taskset, or to await in a task's own `@vf.reward`.

    [env.taskset.task.rewards.adjudge]
    fn = "adjudge.engine.adapters.verifiers:reward"

with ADJUDGE_REWARDS set. In a `Rubric` of releases before 0.4, `Rubric(funcs=[group_reward])` scores whole groups,
whose rollouts can then be compared with each other. verifiers looks up judge ids inside its own package, so a judge
cannot be plugged in from here. A failed reward raises: the trace then has the error, and None as its reward.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjudge.engine.adapters.source import (
    Source,
    number,
    numbers,
    open_source,
    rollout,
    seconds,
    unswallowed,
)
from adjudge.engine.rewards.reward import NAMES

__all__ = ["group_reward", "reward"]


async def reward(task: Any, trace: Any, *, source: Source = None, deadline: float | None = None) -> float:
    """The reward of the last reply in `trace` for the data `task`; its metrics and parts are recorded on the trace.

    The task is the known one with its `id`, which verifiers before 0.4 do not have, else the one with its prompt; what
    else it is judged by is in the data's fields of that name (`rubrics`, `gold`), or in its `info`.
    Raises RewardError for a failed one.
    """
    fields = {name: getattr(task, name, None) for name in NAMES}
    row = {"task_id": getattr(task, "id", None), **(getattr(task, "info", None) or {})}
    row |= {name: value for name, value in fields.items() if value is not None}
    item = rollout(_said(trace), prompt=task.prompt_text, row=row, truncated=trace.is_truncated)
    (found,) = await open_source(source).score([item], deadline=seconds(deadline))
    trace.info["adjudge"] = {"reason": found.reason, "parts": msgspec.to_builtins(found.parts)}
    trace.record_metrics({name: value for name, value in found.scores.items() if value is not None})
    return number(found)


async def group_reward(
    states: Sequence[Any], *, source: Source = None, deadline: float | None = None
) -> list[float]:
    """The rewards of the rollouts of one prompt, in one call; what each is judged by is in its `info`.

    verifiers makes 0 of an Exception here: a failed reward is a TrainingStop, unless ADJUDGE_ON_FAILURE is
    `group_mean`, which leaves advantages as they are, or a number.
    """
    with unswallowed():
        items = [
            rollout(
                state["completion"],
                prompt=state["prompt"],
                row=state.get("info") or {},
                truncated=bool(state.get("is_truncated")),
            )
            for state in states
        ]
        return numbers(items, await open_source(source).score(items, deadline=seconds(deadline)))


def _said(trace: Any) -> str | Sequence[Mapping[str, Any]]:
    """The messages of the last branch, without replies that no model call wrote; the last reply where that is another.

    A harness may hand over a reply of its own (`root_reply`).
    """
    branches = trace.branches
    nodes = branches[-1].nodes if branches else []
    found = [
        node.message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)
        for node in nodes
        if node.sampled or node.message.role != "assistant"
    ]
    last = next((one.get("content") or "" for one in reversed(found) if one["role"] == "assistant"), "")
    return found if last.strip() == trace.last_reply else trace.last_reply
