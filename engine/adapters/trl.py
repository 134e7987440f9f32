"""TRL: reward functions for GRPOTrainer and its kin.

    reward_funcs=functools.partial(async_reward, source="http://127.0.0.1:8300")

Bind the source with `functools.partial`: TRL recognises a partial of a coroutine function, and pickles it. A failed
reward is None, for which TRL computes no gradient. Metrics go to TRL's logs, why a reward failed to its table.
"""

from collections.abc import Callable, Sequence

from adjudge.engine.adapters.source import Source, open_source, seconds
from adjudge.engine.adapters.turns import Turns, text_in
from adjudge.engine.config.reward import OnFailure
from adjudge.engine.rewards.reward import Reward, RewardItem, settled
from adjudge.engine.serving.conversation import task_name

__all__ = ["async_reward", "reward"]

LogMetric = Callable[[str, float], None]
LogExtra = Callable[[str, list[str]], None]


async def async_reward(
    prompts: Sequence[Turns],
    completions: Sequence[Turns],
    completion_ids: object = None,
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: OnFailure = "none",
    task_id: Sequence[object] | None = None,
    log_metric: LogMetric | None = None,
    log_extra: LogExtra | None = None,
    **columns: object,
) -> list[float | None]:
    """One reward per completion. Its task is in `task_id`, a column of the data set, or else found by the prompt."""
    items = _items(prompts, completions, task_id)
    rewards = await open_source(source).score(items, deadline=seconds(deadline))
    _log(rewards, log_metric, log_extra)
    return [settled(reward, on_failure) for reward in rewards]


def reward(
    prompts: Sequence[Turns],
    completions: Sequence[Turns],
    completion_ids: object = None,
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: OnFailure = "none",
    task_id: Sequence[object] | None = None,
    log_metric: LogMetric | None = None,
    log_extra: LogExtra | None = None,
    **columns: object,
) -> list[float | None]:
    """`async_reward`, for a trainer that calls plain functions."""
    items = _items(prompts, completions, task_id)
    rewards = open_source(source).score_sync(items, deadline=seconds(deadline))
    _log(rewards, log_metric, log_extra)
    return [settled(found, on_failure) for found in rewards]


def _items(
    prompts: Sequence[Turns], completions: Sequence[Turns], task_ids: Sequence[object] | None
) -> list[RewardItem]:
    return [
        RewardItem(
            text=text_in(completion, "assistant"), prompt=text_in(prompt, "user"), task_id=task_name(named)
        )
        for prompt, completion, named in zip(
            prompts, completions, task_ids or [None] * len(prompts), strict=True
        )
    ]


def _log(rewards: Sequence[Reward], log_metric: LogMetric | None, log_extra: LogExtra | None) -> None:
    """Log the share of failed rewards, each metric of every rollout that has it, and the reasons as a column."""
    if log_metric is not None:
        for found in rewards:
            log_metric("adjudge/failed", float(found.value is None))
            for name, value in found.scores.items():
                if value is not None:
                    log_metric(f"adjudge/{name}", value)
    if log_extra is not None:
        log_extra("adjudge_reason", [found.reason or "" for found in rewards])
