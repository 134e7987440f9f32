"""AReaL: a rollout workflow whose rewards come from adjudge.

    workflow="adjudge.engine.adapters.areal.ReportWorkflow"
    workflow_kwargs=dict(gconfig=..., tokenizer=..., source="http://127.0.0.1:8300")

AReaL calls a plain reward function in a pool of processes and gives 0 to one that has not answered after 15 seconds,
which include waiting for a free process: a busy judge would produce zeros. So this workflow awaits its rewards, and a
failed one raises: AReaL rejects that rollout.
"""

from typing import Any

from areal import workflow_context  # type: ignore[import-not-found]
from areal.utils import stats_tracker  # type: ignore[import-not-found]
from areal.workflow.rlvr import RLVRWorkflow  # type: ignore[import-not-found]

from adjudge.engine.adapters.source import Source, number, open_source, rollout, seconds, step_among

__all__ = ["ReportWorkflow"]


class ReportWorkflow(RLVRWorkflow):  # type: ignore[misc]
    """AReaL's single-turn workflow; its arguments but `reward_fn`, and where rewards come from and in how many seconds.

    The task of a row is in its `task_id`, else found by the last user message; its other columns say what it is
    judged by. Metrics go to AReaL's statistics.
    """

    def __init__(
        self,
        gconfig: Any,
        tokenizer: Any,
        *,
        source: Source = None,
        deadline: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__("", gconfig, tokenizer, **options)  # a name, for which no pool is started
        self.reward_fn = None
        self._source = source
        self._deadline = deadline

    async def _compute_rewards(self, resp: Any, prompt_str: str, task_data: dict[str, Any]) -> float:
        """The reward of one response. Raises RewardError for a failed one."""
        text = self.tokenizer.decode(resp.output_tokens)
        item = rollout(
            text,
            prompt=self.data_extract_prompt_fn(task_data),
            row=task_data,
            truncated=resp.stop_reason == "length",
        )
        item["mask"] = [(0, len(text))]  # in one turn, every token is the policy's
        (reward,) = await open_source(self._source).score(
            [item], deadline=seconds(self._deadline), step=step_among(*resp.output_versions)
        )
        known = {name: value for name, value in reward.scores.items() if value is not None}
        stats_tracker.get(workflow_context.stat_scope()).scalar(**known, failed=float(reward.value is None))
        return number(reward, "raise")
