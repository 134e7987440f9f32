"""What goes into a reward and what comes out: a value, or None with the reason."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from adjudge.engine.config.reward import OnFailure
from adjudge.judges import Status, Usage
from adjudge.scoring.contract.reasons import Reason

__all__ = ["Item", "Reward", "RewardError", "RewardItem", "as_items", "settled"]


class RewardError(RuntimeError):
    """A reward that could not be computed, where the caller asked for an exception; or a call that no server takes."""


class RewardItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rollout: its text, and its task by id or by exact prompt. `sample` numbers the rollouts of a task."""

    text: str
    task_id: str | None = None
    prompt: str | None = None
    sample: int = 0


class Reward(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout's reward: `value`, or None if anything it needs is missing for a cause that is not its own.

    `reason` says why there is no value, or what the rollout is itself to blame for. `scores` holds the metrics (as
    `protocol.metric` where two protocols share a name) and the flags. `n_asked` questions were asked, `n_answered` of
    them answered; `usage` is the judge's, counted for every rollout that shared an answer.
    """

    value: float | None
    status: Status
    reason: Reason | None = None
    scores: dict[str, float | None] = {}
    n_asked: int = 0
    n_answered: int = 0
    usage: Usage = Usage()


Item = RewardItem | Mapping[str, Any]


def as_items(items: Iterable[Item]) -> list[RewardItem]:
    """`items` as structs. Raises RewardError for one that is no rollout, or that names no task."""
    taken = []
    for place, item in enumerate(items):
        try:
            found = item if isinstance(item, RewardItem) else msgspec.convert(item, RewardItem)
        except msgspec.ValidationError as error:
            raise RewardError(f"item {place}: {error}") from error
        if found.task_id is None and found.prompt is None:
            raise RewardError(f"item {place}: names its task neither by task_id nor by prompt")
        taken.append(found)
    return taken


def settled(reward: Reward, on_failure: OnFailure) -> float | None:
    """The value of `reward`; for a failed one None or the constant. Raises RewardError if `on_failure` says so."""
    if reward.value is not None or on_failure == "none":
        return reward.value
    if on_failure == "raise":
        raise RewardError(f"no reward: {reward.reason}")
    return on_failure.constant
