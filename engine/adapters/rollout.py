"""A rollout as an item to score: what the policy wrote, and what its row in the trainer's data set brings with it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from adjudge.engine.rewards.reward import RewardItem
from adjudge.engine.serving.conversation import Message, task_name, text_of, unclosed

__all__ = ["CARRIED", "Turns", "labelled", "rollout"]

# What a row can bring under these names. Not the fields `answer` and `trace` of an item: in a data set, an answer is
# mostly the right one, not the rollout's.
CARRIED = ("task_id", "language", "gold", "rubrics", "citations", "pages")

Turns = str | Sequence[Mapping[str, Any]]


def rollout(
    said: Turns, *, prompt: Turns | None, row: Mapping[str, Any], truncated: bool = False
) -> RewardItem:
    """The item of what a policy said for `prompt`, a text or the messages of a conversation, with its row."""
    return RewardItem(
        text=unclosed(_text(said, "assistant")),
        prompt=None if prompt is None else _text(prompt, "user"),
        task_id=task_name(row.get("task_id")),
    )


def _text(turns: Turns, role: Literal["user", "assistant"]) -> str:
    return turns if isinstance(turns, str) else text_of(msgspec.convert(list(turns), list[Message]), role)


def labelled(label: object) -> dict[str, Any]:
    """What the one value that a trainer keeps beside a prompt says, as part of a row.

    An object (or its JSON text) with names of CARRIED is a row, another object is gold by protocol, a list is rubrics;
    anything else is the id of a task.
    """
    found = _decoded(label) if isinstance(label, str) and label.lstrip()[:1] in ("{", "[") else label
    if isinstance(found, Mapping):
        return dict(found) if any(name in CARRIED for name in found) else {"gold": found}
    if isinstance(found, Sequence) and not isinstance(found, str):
        return {"rubrics": found}
    named = isinstance(found, (str, int)) and not isinstance(found, bool) and found != ""
    return {"task_id": found} if named else {}


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text
