"""verifiers: a judge for a taskset, or to be called from a task's `@vf.reward`.

    [[taskset.task.judges]]
    id = "adjudge.engine.adapters.verifiers"
    source = "http://127.0.0.1:8300"

A failed reward raises, as verifiers' own judges do, so that the sample can be tried again.
"""

from typing import Any

import verifiers.v1 as vf  # type: ignore[import-not-found]

from adjudge.engine.adapters.source import number, open_source
from adjudge.engine.rewards.reward import RewardItem
from adjudge.engine.serving.conversation import task_name

__all__ = ["AdjudgeConfig", "AdjudgeJudge"]


class AdjudgeConfig(vf.JudgeConfig):  # type: ignore[misc]
    """Where rewards come from. A task is found by its `id`, else by its prompt."""

    id: str = "adjudge.engine.adapters.verifiers"
    source: str | None = None
    deadline: float | None = None


class AdjudgeJudge(vf.Judge[float, AdjudgeConfig]):  # type: ignore[misc]
    """Scores a trace's last reply."""

    async def score(self, task: Any, trace: Any) -> float:
        """The reward of `trace` for `task`. Raises RewardError for a failed one."""
        item = RewardItem(text=trace.last_reply, task_id=task_name(task.id), prompt=task.prompt_text)
        (reward,) = await open_source(self.config.source).score([item], deadline=self.config.deadline)
        return number(reward)
