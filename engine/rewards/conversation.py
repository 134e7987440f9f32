"""A rollout as trainers hold it: a text, or the messages of a conversation."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

__all__ = [
    "ASSISTANT",
    "TOOLS",
    "Conversation",
    "GivenPage",
    "Message",
    "Pages",
    "Piece",
    "asked_in",
    "pages_in",
    "response_in",
    "task_name",
]

ASSISTANT = frozenset({"assistant", "model"})
TOOLS = frozenset({"tool", "function", "functions", "observation", "ipython", "environment"})
MAX_PAGES = 10_000


class Piece(msgspec.Struct, frozen=True):
    """A piece of a message's content."""

    type: str = ""
    text: str | None = ""


class GivenPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that the rollout has read, as the trainer hands it over."""

    url: str
    title: str = ""
    text: str


Pages = Annotated[tuple[GivenPage, ...], msgspec.Meta(max_length=MAX_PAGES)]


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of a conversation, or an output item of a response; other kinds of content are left out.

    `pages` count in a tool's message only: a trainer's environment puts them there, a policy cannot.
    """

    role: str = ""
    content: str | tuple[Piece, ...] | None = None
    type: str = "message"
    tool_calls: Any = None
    pages: Pages = ()

    @property
    def text(self) -> str:
        """The text of the content, its pieces joined."""
        if isinstance(self.content, tuple):
            pieces = (piece for piece in self.content if piece.type in ("text", "output_text", "input_text"))
            return "".join(piece.text or "" for piece in pieces)
        return self.content or ""

    @property
    def is_tool(self) -> bool:
        """Whether a tool is called here or speaks, not the policy to its user."""
        return self.role in TOOLS or self.type.endswith(("_call", "_output"))

    @property
    def is_reply(self) -> bool:
        """Whether the policy speaks to its user."""
        return self.role in ASSISTANT and self.type == "message"


Conversation = str | tuple[Message, ...]


def asked_in(turns: Conversation) -> str:
    """A text unchanged; of messages, the last of the user's."""
    if isinstance(turns, str):
        return turns
    return next((message.text for message in reversed(turns) if message.role == "user"), "")


def pages_in(messages: Sequence[Message]) -> tuple[GivenPage, ...]:
    """The pages that tools have returned."""
    return tuple(page for message in messages if message.role in TOOLS for page in message.pages)


def task_name(value: object) -> str | None:
    """A data set's value as the id of a task: a nonempty text or a whole number; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    named = isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
    return str(value) if named else None


def response_in(query: str, prompt: str) -> str:
    """What follows `prompt` in `query`."""
    start = query.find(prompt)
    return query[start + len(prompt) :] if start >= 0 else query
