"""TRL: reward functions for GRPOTrainer and its kin.

    reward_funcs=functools.partial(async_reward, source="http://127.0.0.1:8300")

Bind the source with `functools.partial`: TRL recognises a partial of a coroutine function, and pickles it. A failed
reward is None, for which TRL computes no gradient. Metrics go to TRL's logs, the reasons of failed rewards to its
table.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from adjudge.engine.adapters.source import (
    Source,
    Turns,
    open_source,
    parts_text,
    rollout,
    seconds,
    step_among,
)
from adjudge.engine.config.reward import OnFailure
from adjudge.engine.rewards.reward import NAMES, Item, Reward, all_settled

__all__ = ["async_reward", "reward"]

_log_of = logging.getLogger(__name__)

LogMetric = Callable[[str, float], None]
LogExtra = Callable[[str, list[str]], None]


async def async_reward(
    prompts: Sequence[Turns],
    completions: Sequence[Turns],
    completion_ids: Sequence[Sequence[int]] | None = None,
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: OnFailure = "none",
    end_ids: Collection[int] = (),
    trainer_state: Any = None,
    log_metric: LogMetric | None = None,
    log_extra: LogExtra | None = None,
    **columns: Any,
) -> list[float | None]:
    """One reward per completion.

    Its task is in the column `task_id`, or else found by the prompt; what else it is judged by is in columns too. With
    `end_ids`, the tokens that end a completion, one that ends with none of them is truncated.
    """
    items = _items(prompts, completions, completion_ids, end_ids, columns)
    rewards = await open_source(source).score(items, deadline=seconds(deadline), step=_step(trainer_state))
    _log(rewards, log_metric, log_extra)
    return _settled(items, rewards, on_failure)


def reward(
    prompts: Sequence[Turns],
    completions: Sequence[Turns],
    completion_ids: Sequence[Sequence[int]] | None = None,
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: OnFailure = "none",
    end_ids: Collection[int] = (),
    trainer_state: Any = None,
    log_metric: LogMetric | None = None,
    log_extra: LogExtra | None = None,
    **columns: Any,
) -> list[float | None]:
    """`async_reward`, for a trainer that calls plain functions."""
    items = _items(prompts, completions, completion_ids, end_ids, columns)
    rewards = open_source(source).score_sync(items, deadline=seconds(deadline), step=_step(trainer_state))
    _log(rewards, log_metric, log_extra)
    return _settled(items, rewards, on_failure)


def _items(
    prompts: Sequence[Turns],
    completions: Sequence[Turns],
    completion_ids: Sequence[Sequence[int]] | None,
    end_ids: Collection[int],
    columns: Mapping[str, Any],
) -> list[Item]:
    carried = {name: columns[name] for name in NAMES if columns.get(name) is not None}
    return [
        rollout(
            completion,
            prompt=prompt,
            row={name: column[place] for name, column in carried.items()},
            truncated=completion_ids is not None and _is_cut(completion_ids[place], end_ids),
        )
        for place, (prompt, completion) in enumerate(zip(prompts, completions, strict=True))
    ]


def _settled(items: Sequence[Item], rewards: Sequence[Reward], on_failure: OnFailure) -> list[float | None]:
    values = all_settled(items, rewards, on_failure)
    if None in values:
        _say_unless_neutral()
    return values


def _step(state: Any) -> int | None:
    return step_among(getattr(state, "global_step", None))


NEUTRAL = (1, 6)
"""The first version of TRL in which a row without a reward has no advantage."""


@cache
def _say_unless_neutral() -> None:
    """Warn once where TRL, by its version, gives a row without a reward an advantage."""
    try:
        found = tuple(int(part) for part in version("trl").split(".")[:2])
    except (PackageNotFoundError, ValueError):  # a trainer of TRL's kind, or a version of one's own
        return
    if found < NEUTRAL:
        _log_of.warning(
            "rewards: TRL %s takes a failed reward (None) for 0 in advantages; upgrade to 1.6, or bind "
            "on_failure='group_mean'",
            ".".join(map(str, found)),
        )


def _is_cut(ids: Sequence[int], end_ids: Collection[int]) -> bool:
    return bool(end_ids) and (not len(ids) or int(ids[-1]) not in end_ids)


def _log(rewards: Sequence[Reward], log_metric: LogMetric | None, log_extra: LogExtra | None) -> None:
    """Log the share of failed rewards, each metric of every rollout that has it; as columns, reasons and parts."""
    if log_metric is not None:
        for found in rewards:
            log_metric("adjudge/failed", float(found.value is None))
            for name, value in found.scores.items():
                if value is not None:
                    log_metric(f"adjudge/{name}", value)
        for reason in {found.reason for found in rewards if found.value is None}:
            share = sum(found.value is None and found.reason == reason for found in rewards) / len(rewards)
            log_metric(f"adjudge/failed_{reason}", share)
    if log_extra is not None:
        log_extra("adjudge_reason", [found.reason or "" for found in rewards])
        log_extra("adjudge_parts", [parts_text(found) for found in rewards])
