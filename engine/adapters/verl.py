"""verl: a reward function for its managers, one call per sample; the client batches the calls.

    reward.custom_reward_function.path=pkg://adjudge.engine.adapters.verl
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.source=http://127.0.0.1:8300

For the manager `remote`, which takes no coroutine functions, the name is compute_score_sync. verl expects every result
to have the first sample's keys, so all results have the same keys. It does not support missing rewards: a failed one
ends the step, or is the number `on_failure`. Its manager `rate_limited` gives 0 to a sample that raises an Exception or
takes longer than `reward.timeout`. So TrainingStop, which ends the step, is a BaseException, and a cancelled call
counts as a failure (deadline).
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.engine.adapters.source import (
    Source,
    number,
    numbers_of,
    open_source,
    parts_text,
    rollout,
    seconds,
    step_among,
    unswallowed,
)
from adjudge.engine.rewards.reward import Item, Reward, labelled

__all__ = ["compute_score", "compute_score_sync"]

Score = dict[str, float | int | str]


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: str | float | None = None,
    metrics: Sequence[str] = (),
    mask: Sequence[tuple[int, int]] | None = None,
    **kwargs: object,
) -> Score:
    """The reward of one sample, and `metrics` by name: for verl's logs, and for the advantages of GDPO.

    What it is judged by is in `extra_info` (`task_id`, `rubrics` and the like), else in the ground truth; else the task
    with the `prompt` in `extra_info` is. `mask` is what our own manager knows of it. Raises TrainingStop.
    """
    with unswallowed():
        item = _item(solution_str, ground_truth, extra_info, mask)
        try:
            (reward,) = await open_source(source).score(
                [item], deadline=seconds(deadline), step=_step(extra_info)
            )
        except asyncio.CancelledError:  # by reward.timeout of rate_limited, which would go on with 0
            reward = Reward(value=None, status="unscored", reason="deadline")
        return _score(reward, on_failure, metrics)


def compute_score_sync(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: str | float | None = None,
    metrics: Sequence[str] = (),
    **kwargs: object,
) -> Score:
    """`compute_score`, for a manager that calls plain functions."""
    with unswallowed():
        item = _item(solution_str, ground_truth, extra_info)
        (reward,) = open_source(source).score_sync([item], deadline=seconds(deadline), step=_step(extra_info))
        return _score(reward, on_failure, metrics)


def _item(
    text: str,
    ground_truth: object,
    extra: Mapping[str, Any] | None,
    mask: Sequence[tuple[int, int]] | None = None,
) -> Item:
    known = extra or {}
    row = {**labelled(ground_truth), **known}
    item = rollout(
        text,
        prompt=known.get("prompt", known.get("question")),
        row=row,
        truncated=known.get("truncated") is True,
    )
    return item if mask is None else {**item, "mask": mask}


def _step(extra: Mapping[str, Any] | None) -> int | None:
    """The step of the weights that wrote the sample, as verl's agent loop says it."""
    known = extra or {}
    return step_among(known.get("global_steps"), known.get("max_global_steps"))


def _score(reward: Reward, on_failure: str | float | None, metrics: Sequence[str]) -> Score:
    return {
        "score": number(reward, on_failure),
        "failed": int(reward.value is None),
        "reason": reward.reason or "",
        "n_asked": reward.n_asked,
        "n_answered": reward.n_answered,
        "parts": parts_text(reward),
        **numbers_of(reward, metrics, on_failure),
    }
