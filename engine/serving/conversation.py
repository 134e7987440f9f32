"""A rollout as trainers hold it: a conversation, read as texts, and a data set's value, read as the id of a task."""

import re
from typing import Literal

import msgspec

__all__ = ["Conversation", "Message", "Piece", "response_in", "task_name", "text_of", "unclosed"]

# The tokens that close a turn, spelled backwards: a search from the front is quadratic in the white space.
_CLOSING = re.compile(r"\s*(?:(?:>\|[a-z_]{1,40}\|<|>s/<|>soe<|>nrut_fo_dne<)\s*)+")


class Piece(msgspec.Struct, frozen=True):
    """A piece of a message's content."""

    type: str = ""
    text: str = ""


class Message(msgspec.Struct, frozen=True):
    """A message of a conversation, or an output item of a response; other kinds of content are left out."""

    role: str = ""
    content: str | list[Piece] | None = None
    type: str = "message"

    @property
    def text(self) -> str:
        """The text of the content, its pieces joined."""
        if isinstance(self.content, list):
            pieces = (piece for piece in self.content if piece.type in ("text", "output_text", "input_text"))
            return "".join(piece.text for piece in pieces)
        return self.content or ""


Conversation = str | list[Message]


def text_of(conversation: Conversation, role: Literal["user", "assistant"]) -> str:
    """A text unchanged; of messages, the last of the user's, or all of the assistant's with an empty line between."""
    if isinstance(conversation, str):
        return conversation
    texts = [message.text for message in conversation if message.role == role]
    return (texts[-1] if texts else "") if role == "user" else "\n\n".join(texts)


def task_name(value: object) -> str | None:
    """A data set's value as the id of a task: a nonempty text or a whole number; None for anything else."""
    named = isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
    return str(value) if named else None


def response_in(query: str, prompt: str) -> str:
    """What follows `prompt` in `query`, without the tokens that close a turn."""
    start = query.find(prompt)
    return unclosed(query[start + len(prompt) :] if start >= 0 else query)


def unclosed(text: str) -> str:
    """`text` without the tokens that close a turn."""
    closing = _CLOSING.match(text[::-1])
    return text if closing is None else text[: len(text) - closing.end()]
