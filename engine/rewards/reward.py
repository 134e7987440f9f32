"""The values: a rollout to score, and its reward, which is a number, or None with the reason."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from adjudge.engine.config.reward import OnFailure
from adjudge.judges import Status, Usage
from adjudge.scoring.contract.reasons import Reason

__all__ = ["Item", "Reward", "RewardError", "RewardItem", "as_items", "settled"]


class RewardError(RuntimeError):
    """A failed reward, where the caller wants an exception; an item that is not a rollout; or a refused request."""


class RewardItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rollout: its text, and its task by id or by exact prompt. `sample` numbers the rollouts of one task."""

    text: str
    task_id: str | None = None
    prompt: str | None = None
    sample: int = 0


class Reward(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout's reward: `value`, or None if anything it needs is missing for a cause other than the rollout.

    `reason` says why there is no value, or which fault of the rollout the value counts. `scores` holds the metrics (as
    `protocol.metric` where two protocols share a name) and the flags. `n_asked` questions were asked, `n_answered` of
    them answered; `usage` is what they took of the judge, counted in full for every rollout that shares an answer.
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
    """`items` as structs. Raises RewardError for an item that is not a rollout, or that does not name its task."""
    taken = []
    for place, item in enumerate(items):
        try:
            found = item if isinstance(item, RewardItem) else msgspec.convert(item, RewardItem)
        except msgspec.ValidationError as error:
            raise RewardError(f"item {place}: {error}") from error
        try:
            "".join((found.text, found.prompt or "", found.task_id or "")).encode()
        except UnicodeEncodeError:  # a lone surrogate: it cannot be sent or stored, and others travel with it
            found = _storable(found)
        if found.task_id is None and found.prompt is None:
            raise RewardError(f"item {place}: has neither task_id nor prompt; add one to name its task")
        taken.append(found)
    return taken


def _storable(item: RewardItem) -> RewardItem:
    """`item` with a question mark in place of every character that UTF-8 cannot encode."""
    given = {name: getattr(item, name) for name in ("text", "task_id", "prompt")}
    encoded = {name: text.encode("utf-8", "replace").decode() for name, text in given.items() if text}
    return msgspec.structs.replace(item, **encoded)


def settled(reward: Reward, on_failure: OnFailure) -> float | None:
    """The value of `reward`; for a failed one None, the constant, or RewardError, as `on_failure` says."""
    if reward.value is not None or on_failure == "none":
        return reward.value
    if on_failure == "raise":
        raise RewardError(f"no reward: {reward.reason}")
    return on_failure.constant
