"""Chat completions as OpenAI-compatible servers speak them: builds request bodies, reads replies and errors.

Nothing is sent or received here. A server's text is untrusted: it is decoded by type, within limits.
"""

import re
from collections.abc import Collection, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from adjudge.judges.chat import Part, content_parts, messages
from adjudge.judges.judgment import MOST_TOKENS, Redaction, Usage
from adjudge.judges.published import PublishedQuestion
from adjudge.judges.question import Answer, Question
from adjudge.judges.schema import Schema, max_tokens, most_tokens, schema_of
from adjudge.prompts import PromptBook

A = TypeVar("A", bound=Answer)
T = TypeVar("T")

COMPLAINT_CHARS = 2_000
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


class BrokenReply(ValueError):
    """A reply with status 200 is not a chat completion; the message says where."""


class Form(msgspec.Struct):
    """Shared by all questions with one answer schema: the schema, encoded once, and its tokens.

    `budgets` are `max_tokens` of a request, and of the one that follows if its reply is cut off.
    `constrained` turns False for good when the server refuses to constrain this schema.
    """

    schema: Schema
    response_format: msgspec.Raw
    budgets: tuple[int, int]
    constrained: bool = True


class _UserMessage(msgspec.Struct):
    content: str | list[Part]
    role: str = "user"


_ENCODER = msgspec.json.Encoder()


class Requests:
    """Writes the requests of one judge. `thinking_tokens` come on top of what an answer may take.

    After a cut an answer gets what no valid one exceeds, and thinking gets double. Every request has what is `added`,
    and nothing that is `omitted`.
    """

    def __init__(
        self,
        book: PromptBook,
        secret: bytes,
        *,
        model: str,
        temperature: float,
        thinking_tokens: int,
        added: Mapping[str, Any] = MappingProxyType({}),
        omitted: Collection[str] = (),
    ) -> None:
        self._book = book
        self._secret = secret
        self._model = model
        self._temperature = temperature
        self._thinking_tokens = thinking_tokens
        self._added = dict(added)
        self._omitted = frozenset(omitted)
        self._forms: dict[tuple[type[Answer], int, tuple[float, ...]], Form] = {}

    @property
    def limits_tokens(self) -> bool:
        """Whether a request says how many tokens its reply may have."""
        return "max_tokens" not in self._omitted

    @property
    def constrains(self) -> bool:
        """Whether a request constrains its reply to a schema."""
        return "response_format" not in self._omitted

    def form(self, question: Question[A]) -> Form:
        """The form of `question`, shared by all that have its answer type, count and options."""
        key = (question.answer, question.count, question.options)
        form = self._forms.get(key)
        if form is None:
            schema = schema_of(question, analysis=not self._thinking_tokens)
            thinking = self._thinking_tokens
            budgets = (max_tokens(schema) + thinking, most_tokens(schema) + 2 * thinking)
            response_format = _response_format(question.answer.__name__, schema)
            form = Form(schema, response_format, budgets, self.constrains)
            self._forms[key] = form
        return form

    def tried(self, question: Question[A], wanted: Schema) -> Form:
        """The form of `question`, but constrained to `wanted`, of which its prompt does not speak."""
        form = self.form(question)
        constraint = _response_format(question.answer.__name__, wanted)
        return Form(form.schema, constraint, form.budgets, self.constrains)

    def published(self, question: Question[A]) -> bytes | None:
        """The JSON body that asks a published question: the model, its messages and parameters, and what is added.

        None for any other question.
        """
        if not isinstance(question, PublishedQuestion):
            return None
        body = {"model": self._model, "messages": question.sent(), **question.wording.parameters}
        return self._encoded(body)

    def free(self, question: Question[A]) -> bytes:
        """The JSON body that asks `question` as a published one is asked: for any words, without parameters of ours."""
        _, user = messages(question, self._book, self.form(question).schema, self._secret)
        return self._encoded({"model": self._model, "messages": [user]})

    def body(self, question: Question[A], form: Form, seed: int, budget: int, constrained: bool) -> bytes:
        """The JSON body that asks `question` within `budget` tokens, with or without its schema as a constraint."""
        system, user = messages(question, self._book, form.schema, self._secret)
        content: str | list[Part] = user["content"]
        if question.context.media:
            content = content_parts(question.context, user["content"])
        body = {
            "model": self._model,
            "messages": (system, _UserMessage(content)),
            "max_tokens": budget,
            "temperature": self._temperature,
            "seed": seed,
        }
        if constrained:
            body["response_format"] = form.response_format
        return self._encoded(body)

    def _encoded(self, body: dict[str, Any]) -> bytes:
        kept = {name: value for name, value in body.items() if name not in self._omitted}
        return _ENCODER.encode(kept | self._added)


def _response_format(name: str, schema: Schema) -> msgspec.Raw:
    described = {"name": _NAME.sub("_", name)[:64], "schema": schema, "strict": True}
    return msgspec.Raw(msgspec.json.encode({"type": "json_schema", "json_schema": described}))


_NOTHING = msgspec.Raw(b"null")


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning: msgspec.Raw = _NOTHING
    reasoning_content: msgspec.Raw = _NOTHING


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: msgspec.Raw = _NOTHING


class _Usage(msgspec.Struct):
    prompt_tokens: msgspec.Raw = _NOTHING
    completion_tokens: msgspec.Raw = _NOTHING
    prompt_tokens_details: msgspec.Raw = _NOTHING


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    model: msgspec.Raw = _NOTHING
    usage: msgspec.Raw = _NOTHING


class Completion(msgspec.Struct, frozen=True):
    """The first choice of a chat completion. `reasoned`: the server parsed reasoning apart, which is left out.

    `model` is what answered, by the server's own word; empty if it does not say.
    """

    text: str | None
    finish_reason: str
    refusal: str | None
    usage: Usage
    reasoned: bool = False
    model: str = ""


_DECODER = msgspec.json.Decoder(_Completion)
_USAGE = msgspec.json.Decoder(_Usage)
_DETAILS = msgspec.json.Decoder(_PromptDetails)
_COUNT = msgspec.json.Decoder(int)
_TEXT = msgspec.json.Decoder(str)


def completion(body: bytes | None) -> Completion:
    """The chat completion in `body` (None: too large to be read). Raises BrokenReply for anything else.

    What is not needed for the answer never breaks it: a strange number of tokens is bounded, or 0.
    """
    if body is None:
        raise BrokenReply("too large")
    try:
        reply = _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise BrokenReply(str(error)) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise BrokenReply(f"not JSON text: {type(error).__name__}") from error
    choice = reply.choices[0]
    message = choice.message
    return Completion(
        message.content,
        (choice.finish_reason or "")[:40],
        message.refusal,
        _usage(reply.usage),
        any((_lenient(raw, _TEXT) or "").strip() for raw in (message.reasoning, message.reasoning_content)),
        (_lenient(reply.model, _TEXT) or "")[:200],
    )


def _usage(raw: msgspec.Raw) -> Usage:
    usage = _lenient(raw, _USAGE) or _Usage()
    details = _lenient(usage.prompt_tokens_details, _DETAILS) or _PromptDetails()
    return Usage(_count(usage.prompt_tokens), _count(details.cached_tokens), _count(usage.completion_tokens))


def _count(raw: msgspec.Raw) -> int:
    return min(MOST_TOKENS, max(0, _lenient(raw, _COUNT) or 0))


def _lenient(raw: msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T | None:
    """`raw` as what `decoder` reads, or None."""
    if raw == _NOTHING:
        return None
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class Model(msgspec.Struct, frozen=True):
    """One entry of a server's list of models: `window` is the most tokens of prompt and answer, None if not said."""

    name: str
    window: int | None


class _Listed(msgspec.Struct):
    id: str
    max_model_len: msgspec.Raw = _NOTHING
    context_length: msgspec.Raw = _NOTHING
    context_window: msgspec.Raw = _NOTHING


class _Models(msgspec.Struct):
    data: list[_Listed]


_MODELS = msgspec.json.Decoder(_Models)


def models(body: bytes | None) -> list[Model]:
    """A server's list of models; empty for anything else."""
    found = None if body is None else _lenient(msgspec.Raw(body), _MODELS)
    return [] if found is None else [Model(one.id, _window(one)) for one in found.data]


def _window(listed: _Listed) -> int | None:
    said = (_count(raw) for raw in (listed.max_model_len, listed.context_length, listed.context_window))
    return next((count for count in said if count), None)


class _Error(msgspec.Struct):
    message: str = ""
    type: str | None = None
    param: str | None = None
    code: str | int | None = None


class _Complaint(_Error):
    error: _Error | None = None


_COMPLAINT = msgspec.json.Decoder(_Complaint)


def complaint(body: bytes, redacted: Redaction) -> str:
    """The error message of a failed reply, redacted, at most 2,000 characters.

    Only the server's own message where it can be found: the rest of such a body may repeat the request.
    """
    try:
        found = _COMPLAINT.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _Complaint()
    error = found.error or found
    if not error.message:
        return redacted.head(body.decode("utf-8", "replace"), COMPLAINT_CHARS)
    named = [str(part) for part in (error.code, error.param) if part is not None]
    return redacted.head(" ".join([error.message, *named]), COMPLAINT_CHARS)


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
