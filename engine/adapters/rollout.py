"""A rollout as an item to score: what the policy wrote, and what its row in the trainer's data set brings with it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjudge.engine.rewards.reward import RewardItem
from adjudge.engine.serving.dialects import labelled

__all__ = ["CARRIED", "Turns", "labelled", "rollout"]

# What a row can bring under these names. Not the fields `answer` and `trace` of an item: in a data set, an answer is
# mostly the right one, not the rollout's.
CARRIED = ("task_id", "language", "gold", "rubrics", "citations", "pages")

Turns = str | Sequence[Mapping[str, Any]]


def rollout(
    said: Turns, *, prompt: Turns | None, row: Mapping[str, Any], truncated: bool = False
) -> RewardItem:
    """The item of what a policy said for `prompt`, a text or the messages of a conversation, with its row."""
    item: dict[str, Any] = {"text": said} if isinstance(said, str) else {"messages": list(said)}
    if prompt is not None:
        item["prompt"] = prompt if isinstance(prompt, str) else list(prompt)
    carried = {name: row[name] for name in CARRIED if row.get(name) is not None}
    return msgspec.convert({**item, **carried, "truncated": truncated}, RewardItem)
