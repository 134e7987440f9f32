"""Texts as trainers hold them: a string, or the messages of a conversation."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from adjudge.engine.serving.dialects import Message, text_of

__all__ = ["Turns", "task_name", "text_in"]

Turns = str | Sequence[Mapping[str, Any]]


def text_in(turns: Turns, role: Literal["user", "assistant"]) -> str:
    """The text itself; of messages, the last of a user's, or all of an assistant's."""
    return turns if isinstance(turns, str) else text_of(msgspec.convert(list(turns), list[Message]), role)


def task_name(value: object) -> str | None:
    """A data set's value as the id of a task: a text or a whole number; None for anything else."""
    named = isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
    return str(value) if named else None
