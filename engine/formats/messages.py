"""The messages of a conversation, in the shapes that APIs and data sets give them: who speaks, and what is said.

OpenAI (Chat Completions and the items of a response), Anthropic, Gemini (`parts`), Bedrock's Converse (pieces named by
their only field), LangChain (`type: ai`), ShareGPT (`from`, `value`) and Harmony (`channel`, `recipient`).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from adjudge.judges.marks import ASSISTANT

__all__ = [
    "FINISHING",
    "TOOLS",
    "Conversation",
    "GivenPage",
    "Message",
    "Pages",
    "asked_in",
    "last_reply",
    "pages_in",
]

TOOLS = frozenset({"tool", "function", "functions", "observation", "ipython", "environment", "tool_response"})
FINISHING = (
    *("finish", "final_answer", "final_report", "finalize", "submit", "submit_answer", "submit_report"),
    *("done", "complete", "complete_task", "task_complete", "attempt_completion", "terminate"),
)
"""Names of tools by which an agent says that its report is done."""
_USERS = frozenset({"user", "human"})
_CALLS = frozenset({"tool_call", "function_call"})
_INSTRUCTORS = frozenset({"system", "developer", "platform", "root", "context", "documents"})
_SPEAKERS = frozenset({"assistant", "user", "tool", *_CALLS, *_INSTRUCTORS})
_ITEMS = frozenset({"reasoning", "compaction", "item_reference"})
_ITEM_ENDS = ("_call", "_output")
_TEXTS = frozenset({"text", "output_text", "input_text"})
MAX_PAGES = 10_000


class GivenPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that the rollout has read, as the trainer hands it over."""

    url: str
    title: str = ""
    text: str


Pages = Annotated[tuple[GivenPage, ...], msgspec.Meta(max_length=MAX_PAGES)]


class Called(msgspec.Struct, frozen=True):
    """A call of a tool, or what came of it, as far as it matters here."""

    name: str | None = None


class Piece(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A piece of a message's content, which its `type` names, or else its only field."""

    type: str = ""
    text: str | None = None
    thought: bool | None = None
    name: str | None = None
    tool_use: Called | None = None
    function_call: Called | None = None
    executable_code: Called | None = None
    tool_result: Called | None = None
    function_response: Called | None = None
    code_execution_result: Called | None = None
    reasoning_content: Called | None = None

    @property
    def is_text(self) -> bool:
        """Whether it is said to the reader."""
        return not self.thought and (self.type in _TEXTS or (not self.type and self.text is not None))

    @property
    def called(self) -> str | None:
        """The name of the tool that it calls; None for what is no call."""
        call = self.tool_use or self.function_call or self.executable_code
        if call is None and not self.type.endswith(("tool_use", "_call", "-call", "toolCall")):
            return None
        return self.name or (call and call.name) or ""

    @property
    def is_result(self) -> bool:
        """Whether a tool speaks."""
        found = self.tool_result or self.function_response or self.code_execution_result
        return found is not None or self.type.endswith(("_result", "-result", "_output"))

    @property
    def is_blank(self) -> bool:
        """Whether it is a text without a word."""
        return self.is_text and not (self.text or "").strip()

    @property
    def is_step(self) -> bool:
        """Whether a tool is called or speaks."""
        return self.is_result or self.called is not None

    @property
    def is_known(self) -> bool:
        """Whether it says what it is."""
        return bool(self.type) or self.text is not None or self.reasoning_content is not None or self.is_step


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of a conversation, or an output item of a response; other kinds of content are left out.

    `pages` count in a tool's message only: a trainer's environment puts them there, a policy cannot.
    """

    role: str = ""
    content: str | tuple[str | Piece, ...] | None = None
    type: str = "message"
    tool_calls: Any = None
    function_call: Any = None
    pages: Pages = ()
    parts: tuple[Piece, ...] | None = None
    sender: str = msgspec.field(name="from", default="")
    value: str | None = None
    channel: str | None = None
    recipient: str | None = None

    @property
    def speaker(self) -> str:
        """`assistant`, `user`, `tool` or another role; of an item of a response without one, its type."""
        return _speaker(self.role or self.sender or self.type)

    @property
    def said(self) -> tuple[int, ...]:
        """The places of the pieces that are said after its last call or result; before it, if nothing is said after."""
        said: list[int] = []
        is_over = False
        for place, piece in enumerate(self._pieces):
            if piece.is_text and not (is_over and piece.is_blank):
                if is_over:
                    said.clear()
                said.append(place)
                is_over = False
            is_over = is_over or piece.is_step
        return tuple(said)

    @property
    def text(self) -> str:
        """What is said in these pieces."""
        pieces = self._pieces
        return "".join(pieces[place].text or "" for place in self.said)

    @property
    def finishes(self) -> bool:
        """Whether it calls the tool by which an agent says that its report is done."""
        names = {piece.called for piece in self._pieces} | set(map(_name_of, self._calls))
        return any(name and name.lower() in FINISHING for name in names)

    @property
    def goes_on(self) -> bool:
        """Whether it ends with a call or a result, after which more was to come."""
        if self.finishes:
            return False
        ends = [piece for piece in self._pieces if not piece.is_blank]
        return bool(self._calls) or (bool(ends) and ends[-1].is_step)

    @property
    def is_tool(self) -> bool:
        """Whether a tool is called here or speaks, not the policy to its user."""
        if self.speaker == "assistant":
            return self.type.endswith(_ITEM_ENDS) or self.recipient not in (None, "", "all", "user")
        by_name = self.speaker == "tool" or self.speaker in _CALLS or self.type.endswith(_ITEM_ENDS)
        return by_name or any(piece.is_result for piece in self._pieces)

    @property
    def is_thought(self) -> bool:
        """Whether the policy speaks where no user reads it."""
        return self.speaker == "assistant" and self.channel not in (None, "", "final")

    @property
    def is_reply(self) -> bool:
        """Whether the policy speaks to its user."""
        is_message = self.type == "message" or _speaker(self.type) == "assistant"
        return is_message and self.speaker == "assistant" and not self.is_tool and not self.is_thought

    @property
    def lack(self) -> str:
        """What of it is of no known shape, so that nobody can tell what the policy said; empty if nothing is.

        A reply without any content is an empty one.
        """
        is_item = self.type in _ITEMS or self.type.startswith("mcp_") or self.type.endswith(_ITEM_ENDS)
        if not is_item and self.speaker not in _SPEAKERS:
            return f"role {self.role or self.sender or self.type!r} is unknown; use assistant, user, system or tool"
        if self.is_reply and self._pieces and not any(piece.is_known for piece in self._pieces):
            return "no piece of its content has a known type"
        return ""

    @property
    def _pieces(self) -> tuple[Piece, ...]:
        given = self.content or self.parts or self.value or ()
        pieces = (given,) if isinstance(given, str) else given
        return tuple(Piece(text=one) if isinstance(one, str) else one for one in pieces)

    @property
    def _calls(self) -> Sequence[object]:
        calls = self.tool_calls or self.function_call or ()
        return calls if isinstance(calls, (list, tuple)) else (calls,)


Conversation = str | tuple[Message, ...]


def _speaker(named: str) -> str:
    """The one name of those that speak under several, LangChain's classes among them."""
    name = named.lower().removesuffix("chunk")
    name = name.removesuffix("message") or name
    if name in ASSISTANT:
        return "assistant"
    return "user" if name in _USERS else "tool" if name in TOOLS else name


def _name_of(call: object) -> str | None:
    """The name of the tool in a call of OpenAI's or of LangChain's."""
    named = call.get("function", call) if isinstance(call, Mapping) else None
    name = named.get("name") if isinstance(named, Mapping) else None
    return name if isinstance(name, str) else None


def last_reply(messages: Sequence[Message]) -> int | None:
    """The place of the model's last words to its user; None if it has said nothing."""
    return next((place for place in range(len(messages) - 1, -1, -1) if messages[place].is_reply), None)


def asked_in(turns: Conversation) -> str:
    """A text unchanged; of messages, the last of the user's."""
    if isinstance(turns, str):
        return turns
    users = (one for one in reversed(turns) if one.speaker == "user" and not one.is_tool)
    return next((one.text for one in users), "")


def pages_in(messages: Sequence[Message]) -> tuple[GivenPage, ...]:
    """The pages that tools have returned."""
    return tuple(page for message in messages if message.speaker == "tool" for page in message.pages)
