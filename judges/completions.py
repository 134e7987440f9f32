"""Chat completions as OpenAI-compatible servers speak them: bodies out, replies and complaints in.

Nothing is sent or received here. What a server says is untrusted: it is decoded by type, within limits.
"""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from adjudge.judges.judgment import Usage
from adjudge.judges.question import Answer, Question
from adjudge.judges.render import Message, Part, content_parts, messages
from adjudge.judges.schema import Schema, max_tokens, schema_of
from adjudge.prompts import PromptBook

__all__ = ["BrokenReply", "Completion", "Form", "Requests", "complaint", "completion", "retry_after"]

A = TypeVar("A", bound=Answer)

COMPLAINT_CHARS = 2_000
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_MAX_TOKENS_COUNTED = 2**30 - 1  # two of them added are still 32 bits


class BrokenReply(ValueError):
    """A reply with status 200 is not a chat completion; the message says where."""


class Form(msgspec.Struct):
    """What all questions with one answer schema share: the schema, encoded once, and its tokens.

    `constrained` turns False for good when the server refuses to constrain this schema.
    """

    schema: Schema
    response_format: msgspec.Raw
    max_tokens: int
    constrained: bool = True


class _UserMessage(msgspec.Struct):
    content: str | list[Part]
    role: str = "user"


class _Request(msgspec.Struct):
    model: str
    messages: tuple[Message, _UserMessage]
    max_tokens: int
    temperature: float
    seed: int
    response_format: msgspec.Raw | UnsetType


_ENCODER = msgspec.json.Encoder()


class Requests:
    """Writes the requests of one judge. `thinking_tokens` come on top of what an answer may take."""

    def __init__(
        self, book: PromptBook, secret: bytes, *, model: str, temperature: float, thinking_tokens: int
    ) -> None:
        self._book = book
        self._secret = secret
        self._model = model
        self._temperature = temperature
        self._thinking_tokens = thinking_tokens
        self._forms: dict[tuple[type[Answer], int, tuple[float, ...]], Form] = {}

    def form(self, question: Question[A]) -> Form:
        """The form of `question`, shared by all that have its answer type, count and options."""
        key = (question.answer, question.count, question.options)
        form = self._forms.get(key)
        if form is None:
            schema = schema_of(question, analysis=not self._thinking_tokens)
            described = {
                "name": _NAME.sub("_", question.answer.__name__)[:64],
                "schema": schema,
                "strict": True,
            }
            encoded = msgspec.json.encode({"type": "json_schema", "json_schema": described})
            form = Form(schema, msgspec.Raw(encoded), max_tokens(schema) + self._thinking_tokens)
            self._forms[key] = form
        return form

    def body(self, question: Question[A], form: Form, seed: int, constrained: bool) -> bytes:
        """The JSON body that asks `question`, with or without its schema as a constraint."""
        system, user = messages(question, self._book, form.schema, self._secret)
        content: str | list[Part] = user["content"]
        if question.context.media:
            content = content_parts(question.context, user["content"])
        return _ENCODER.encode(
            _Request(
                self._model,
                (system, _UserMessage(content)),
                form.max_tokens,
                self._temperature,
                seed,
                form.response_format if constrained else UNSET,
            )
        )


Count = Annotated[int, Meta(ge=0, le=_MAX_TOKENS_COUNTED)]


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: Count | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Count = 0
    completion_tokens: Count | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    usage: _Usage | None = None


class Completion(msgspec.Struct, frozen=True):
    """The first choice of a chat completion; what the server parsed apart as reasoning is left out."""

    text: str | None
    finish_reason: str
    refusal: str | None
    usage: Usage


_DECODER = msgspec.json.Decoder(_Completion)


def completion(body: bytes | None) -> Completion:
    """The chat completion in `body` (None: too large to be read). Raises BrokenReply for anything else."""
    if body is None:
        raise BrokenReply("too large")
    try:
        reply = _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise BrokenReply(str(error)) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise BrokenReply(f"not JSON text: {type(error).__name__}") from error
    choice = reply.choices[0]
    usage = reply.usage or _Usage()
    details = usage.prompt_tokens_details or _PromptDetails()
    return Completion(
        choice.message.content,
        (choice.finish_reason or "")[:40],
        choice.message.refusal,
        Usage(usage.prompt_tokens, details.cached_tokens or 0, usage.completion_tokens or 0),
    )


class _Error(msgspec.Struct):
    message: str = ""
    type: str | None = None
    param: str | None = None
    code: str | int | None = None


class _Complaint(_Error):
    error: _Error | None = None


_COMPLAINT = msgspec.json.Decoder(_Complaint)


def complaint(body: bytes) -> str:
    """The error message of a failed reply, at most 2,000 characters.

    Only the server's own message where it can be found: the rest of such a body may repeat the request.
    """
    try:
        found = _COMPLAINT.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _Complaint()
    error = found.error or found
    if not error.message:
        return body[:COMPLAINT_CHARS].decode("utf-8", "replace")
    named = [str(part) for part in (error.code, error.param) if part is not None]
    return " ".join([error.message, *named])[:COMPLAINT_CHARS]


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait by a Retry-After header (RFC 9110, 10.2.3), given in seconds or as an HTTP date.

    None if it says neither. `now` is in seconds since the epoch. A date in the past is 0, one without a zone is UTC;
    a number of seconds is at most 1e9.
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), 1e9)
    try:
        until = parsedate_to_datetime(text)
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return max(0.0, until.timestamp() - now)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
