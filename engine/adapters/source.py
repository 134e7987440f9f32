"""Where an adapter's rewards come from: a server, or an engine in this process, opened once per process.

Some trainers accept only a function's name; for them the environment holds the options: ADJUDGE_REWARDS, the source;
ADJUDGE_DEADLINE_S, in seconds; ADJUDGE_ON_FAILURE, `raise`, `group_mean` or a number; ADJUDGE_HOLD_S and
ADJUDGE_STOP_SHARE, what an outage of a server does. A rollout becomes an item to score: the
policy's text, and what its row of the trainer's data set brings along.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import msgspec

from adjudge.engine.config.reward import Constant, OnFailure, OutageConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.rewards.reward import Item, Reward, RewardError, all_settled, brought, settled
from adjudge.engine.rewards.source import RewardSource
from adjudge.engine.serving.client import RewardClient

__all__ = [
    "DEADLINE",
    "ON_FAILURE",
    "REWARDS",
    "Source",
    "TrainingStop",
    "Turns",
    "number",
    "numbers",
    "numbers_of",
    "open_source",
    "parts_text",
    "rollout",
    "seconds",
    "step_among",
    "unswallowed",
]

Turns = str | Sequence[Mapping[str, Any]]


def rollout(
    said: Turns, *, prompt: Turns | None, row: Mapping[str, Any], truncated: bool = False
) -> dict[str, Any]:
    """The item of what a policy said for `prompt`, a text or the messages of a conversation.

    What `row` brings is decided in `engine/rewards/reward.py`. `truncated` says that the trainer cut it off.
    """
    item: dict[str, Any] = {"text": said} if isinstance(said, str) else {"messages": list(said)}
    if prompt is not None:
        item["prompt"] = prompt if isinstance(prompt, str) else list(prompt)
    carried = brought(row)
    for name in ("citations", "pages"):
        if name in carried:
            carried[name] = _listed(carried[name])
    return {**item, **carried, "truncated": truncated}


def step_among(*found: object) -> int | None:
    """The latest step among what a trainer says, as numbers or as texts; None if nothing there is one."""
    steps = [
        int(one)
        for one in found
        if isinstance(one, (int, str)) and str(one).isdecimal() and len(str(one)) < 16
    ]
    return max(steps, default=None)


def _listed(value: Any) -> Any:
    """A list as it is, in an array, or in JSON text; what else it is, `as_items` refuses."""
    if isinstance(value, str):
        try:
            return msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return value
    return value.tolist() if hasattr(value, "tolist") else value


REWARDS = "ADJUDGE_REWARDS"
DEADLINE = "ADJUDGE_DEADLINE_S"
ON_FAILURE = "ADJUDGE_ON_FAILURE"
_OUTAGE = {"hold_s": "ADJUDGE_HOLD_S", "stop_share": "ADJUDGE_STOP_SHARE"}

Source = str | RewardSource | None


class TrainingStop(BaseException):
    """A failed reward, in a trainer that would make 0 of an Exception, or nothing at all: it ends the step instead."""


def open_source(source: Source) -> RewardSource:
    """The source that is named, by `source` or in the environment. Raises UsageError if it cannot be used."""
    if isinstance(source, RewardSource):
        return source
    named = source or os.environ.get(REWARDS, "")
    if not named:
        raise UsageError(
            f"rewards: no source is given; set {REWARDS}, or source=, to the URL of a server or the path of a "
            "configuration"
        )
    return _opened(named)


@cache
def _opened(named: str) -> RewardSource:
    if not named.startswith(("http://", "https://")):
        return RewardModel(named)
    given = {key: os.environ[name] for key, name in _OUTAGE.items() if os.environ.get(name)}
    try:
        return RewardClient(named, outage=msgspec.convert(given, OutageConfig, strict=False))
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{' and '.join(_OUTAGE.values())}: {error}; set a number of seconds and a share"
        ) from error


def seconds(deadline: float | None) -> float | None:
    """`deadline`, else the environment's; None for the one that is configured. Raises UsageError."""
    given = os.environ.get(DEADLINE, "") if deadline is None else ""
    try:
        return float(given) if given else deadline
    except ValueError as error:
        raise UsageError(f"{DEADLINE}: {given!r} must be a number of seconds") from error


def number(reward: Reward, on_failure: str | float | Constant | None = None) -> float:
    """The value of `reward`; for a failed one the number `on_failure`, or RewardError.

    Without `on_failure` the environment says it; "raise" if it does not. One rollout has no group's mean.
    """
    return _present(reward, settled(reward, _on_failure(on_failure)))


def numbers(
    items: Sequence[Item], rewards: Sequence[Reward], on_failure: str | float | Constant | None = None
) -> list[float]:
    """`number` of each of the `rewards` of `items`, or by "group_mean" the mean of the prompt's others."""
    values = all_settled(items, rewards, _on_failure(on_failure))
    return [_present(reward, value) for reward, value in zip(rewards, values, strict=True)]


def _present(reward: Reward, value: float | None) -> float:
    if value is None:
        raise RewardError(f"no reward: {reward.reason}, and this trainer does not support missing rewards")
    return value


def numbers_of(
    reward: Reward, metrics: Sequence[str], on_failure: str | float | None = None
) -> dict[str, float]:
    """The values of `metrics`, all of them: a missing one is the number `on_failure`, or a RewardError."""
    unknown = [name for name in metrics if reward.value is not None and name not in reward.scores]
    if unknown:
        known = ", ".join(reward.scores)
        raise UsageError(f"metrics: {unknown[0]!r} is unknown; choose from {known}")
    return {
        name: number(msgspec.structs.replace(reward, value=reward.scores.get(name)), on_failure)
        for name in metrics
    }


def parts_text(reward: Reward) -> str:
    """The parts of `reward` as JSON: each criterion by its id, its points with the reason, or why it has none."""
    return msgspec.json.encode(reward.parts).decode()


@contextmanager
def unswallowed() -> Iterator[None]:
    """Make every failure inside the block a `TrainingStop`, which no `except Exception` of a trainer catches."""
    try:
        yield
    except Exception as error:
        raise TrainingStop(str(error)) from error


def _on_failure(stated: str | float | Constant | None) -> OnFailure:
    if isinstance(stated, Constant):
        return stated
    given = os.environ.get(ON_FAILURE, "raise") if stated is None else stated
    if given in ("raise", "group_mean"):
        return given  # type: ignore[return-value]
    try:
        return Constant(float(given))
    except ValueError as error:
        raise UsageError(f"on_failure: {given!r} must be raise, group_mean or a number") from error
