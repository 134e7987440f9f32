"""Prompts and completions as trainers pass them: a string, or the messages of a conversation."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from adjudge.engine.serving.conversation import Message, text_of

__all__ = ["Turns", "text_in"]

Turns = str | Sequence[Mapping[str, Any]]


def text_in(turns: Turns, role: Literal["user", "assistant"]) -> str:
    """The text itself; of messages, the last of the user's, or all of the assistant's."""
    return turns if isinstance(turns, str) else text_of(msgspec.convert(list(turns), list[Message]), role)
