"""A rollout as an item to score: what the policy wrote, and what its row in the trainer's data set brings with it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjudge.engine.rewards.row import brought

__all__ = ["Turns", "rollout", "step_among"]

Turns = str | Sequence[Mapping[str, Any]]


def rollout(
    said: Turns, *, prompt: Turns | None, row: Mapping[str, Any], truncated: bool = False
) -> dict[str, Any]:
    """The item of what a policy said for `prompt`, a text or the messages of a conversation.

    What `row` brings is decided in `engine/rewards/row.py`. `truncated` says that the trainer cut it off.
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
