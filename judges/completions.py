"""Chat completions as OpenAI-compatible servers speak them: builds request bodies, reads replies and errors.

Nothing is sent or received here. A server's text is untrusted: it is decoded by type, within limits.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from adjudge.judges.chat import Message, Part, content_parts, messages
from adjudge.judges.expected import Labels, Step, labels_of, limited
from adjudge.judges.judgment import MOST_TOKENS, Manner, Profile, Redaction, Usage
from adjudge.judges.loops import LOOP, loop_begins
from adjudge.judges.profile import asked_schema
from adjudge.judges.published import PublishedQuestion
from adjudge.judges.question import Answer, Question
from adjudge.judges.schema import Schema, likely_tokens, max_tokens, most_tokens, shortened
from adjudge.prompts import PromptBook

A = TypeVar("A", bound=Answer)
T = TypeVar("T")

COMPLAINT_CHARS = 2_000
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


class BrokenReply(ValueError):
    """A reply with status 200 is not a chat completion; the message says where."""


class Form(msgspec.Struct):
    """Shared by all questions with one answer schema: what prompts show of it, its tokens, and what is demanded.

    `wanted` is the schema that an answer is constrained to, encoded once, under the `name` of its type.
    `budgets` are `max_tokens` of a request, and of the one that follows if its reply is cut off; `least` is what the
    shortest answer needs.
    `constrained` turns False for good when the server refuses to constrain this schema: in words, or if it refused it
    without a word and answered without it, more than once (`doubts`).
    `labels` are those whose probabilities are asked for, None if the answer is taken as written.
    """

    schema: Schema
    name: str
    wanted: msgspec.Raw
    budgets: tuple[int, int]
    least: int
    constrained: bool = True
    doubts: int = 0
    labels: Labels | None = None


class _UserMessage(msgspec.Struct):
    content: str | list[Part]
    role: str = "user"


_ENCODER = msgspec.json.Encoder()
_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
_LIKELIEST = 20
_PROBABILITIES = {"logprobs": True, "top_logprobs": _LIKELIEST}
_MOST_STEPS = 500  # an answer of one label is short, and a reply may be of any length
_EIGHTHS = (8, 6, 4, 2, 1)


class Requests:
    """Writes the requests of one judge. `thinking_tokens` come on top of what an answer may take.

    After a cut an answer gets what no valid one exceeds, and thinking gets double. Every request has what is `added`,
    and nothing that is `omitted`. They are written in the `manner` that the server takes, as the `profile` demands.
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
        streamed: bool = False,
        profile: Profile = "exact",
    ) -> None:
        self._book = book
        self._secret = secret
        self._model = model
        self._temperature = temperature
        self._thinking_tokens = thinking_tokens
        self._added = dict(added)
        self._omitted = frozenset(omitted)
        self._streamed = _STREAMED if streamed else {}
        self._profile = profile
        self._forms: dict[tuple[type[Answer], int, tuple[float, ...]], Form] = {}
        self.manner = Manner("words" if "response_format" in self._omitted else "json_schema")

    @property
    def limits_tokens(self) -> bool:
        """Whether a request says how many tokens its reply may have."""
        return "max_tokens" not in self._omitted

    @property
    def constrains(self) -> bool:
        """Whether a request constrains its reply, by a schema or otherwise."""
        return self.manner.format != "words"

    def form(self, question: Question[A]) -> Form:
        """The form of `question`, shared by all that have its answer type, count and options."""
        key = (question.answer, question.count, question.options)
        form = self._forms.get(key)
        if form is None:
            schema = asked_schema(question, not self._thinking_tokens, self._profile)
            form = self._formed(question, schema)
            form.labels = labels_of(schema) if self._profile == "fast" else None
            self._forms[key] = form
        return form

    def _formed(self, question: Question[A], schema: Schema) -> Form:
        thinking = self._thinking_tokens
        budgets = (max_tokens(schema) + thinking, most_tokens(schema) + 2 * thinking)
        least = likely_tokens(shortened(schema, 0))
        return _form(question, schema, schema, budgets, least)

    def fitted(self, question: Question[A], form: Form, room: int) -> Form | None:
        """`form` with analyses so short that its answers likely fit into `room` tokens; None if none does."""
        if room < form.least:
            return None
        for eighths in _EIGHTHS:
            schema = shortened(form.schema, eighths)
            if likely_tokens(schema) <= room:
                break
        fitted = form if schema == form.schema else self._formed(question, schema)
        first, more = fitted.budgets
        budgets = (min(first, room), min(more, room))
        return msgspec.structs.replace(
            fitted, budgets=budgets, least=form.least, constrained=form.constrained, doubts=0
        )

    def tried(self, question: Question[A], wanted: Schema) -> Form:
        """The form of `question`, but constrained to `wanted`, of which its prompt does not speak."""
        form = self.form(question)
        tried = _form(question, form.schema, wanted, form.budgets, form.least)
        tried.labels = form.labels
        return tried

    def among(self, form: Form, places: Sequence[int]) -> Form:
        """`form`, but constrained to its labels at `places`."""
        wanted = msgspec.Raw(msgspec.json.encode(limited(form.schema, places)))
        return msgspec.structs.replace(form, wanted=wanted)

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

    def body(
        self,
        question: Question[A],
        form: Form,
        seed: int,
        budget: int,
        constrained: bool,
        more: Sequence[Message] = (),
    ) -> bytes:
        """The JSON body that asks `question` within `budget` tokens, with or without its schema as a constraint.

        `more` are messages that follow those of the question.
        """
        system, user = messages(question, self._book, form.schema, self._secret)
        text = user["content"] if self.manner.system else f"{system['content']}\n\n{user['content']}"
        content = content_parts(question.context, text) if question.context.media else text
        first = (system,) if self.manner.system else ()
        body = {
            "model": self._model,
            "messages": (*first, _UserMessage(content), *more),
            "max_tokens": budget,
            "temperature": self._temperature,
            "seed": seed,
        }
        if constrained:
            body |= self._constraint(form)
        if form.labels is not None:
            body |= _PROBABILITIES
        return self._encoded(body)

    def _constraint(self, form: Form) -> dict[str, Any]:
        """The part of a request that constrains its reply."""
        match self.manner.format:
            case "json_schema":
                described = {"name": form.name, "schema": form.wanted, "strict": True}
                return {"response_format": {"type": "json_schema", "json_schema": described}}
            case "structured_outputs":
                return {"structured_outputs": {"json": form.wanted}, "guided_json": form.wanted}
            case "json_object_schema":
                return {"response_format": {"type": "json_object", "schema": form.wanted}}
            case "json_object":
                return {"response_format": {"type": "json_object"}}
        return {}

    def prompt(self, question: Question[A], form: Form) -> str:
        """The text of the messages that ask `question`."""
        return "\n".join(one["content"] for one in messages(question, self._book, form.schema, self._secret))

    def _encoded(self, body: dict[str, Any]) -> bytes:
        kept = {name: value for name, value in body.items() if name not in self._omitted}
        return _ENCODER.encode(kept | self._streamed | self._added)


def _form(question: Question[A], shown: Schema, wanted: Schema, budgets: tuple[int, int], least: int) -> Form:
    name = _NAME.sub("_", question.answer.__name__)[:64]
    return Form(shown, name, msgspec.Raw(msgspec.json.encode(wanted)), budgets, least)


_NOTHING = msgspec.Raw(b"null")


class _Message(msgspec.Struct):
    content: msgspec.Raw = _NOTHING
    refusal: msgspec.Raw = _NOTHING
    reasoning: msgspec.Raw = _NOTHING
    reasoning_content: msgspec.Raw = _NOTHING


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: msgspec.Raw = _NOTHING
    logprobs: msgspec.Raw = _NOTHING


class _PromptDetails(msgspec.Struct):
    cached_tokens: msgspec.Raw = _NOTHING


class _Usage(msgspec.Struct):
    prompt_tokens: msgspec.Raw = _NOTHING
    completion_tokens: msgspec.Raw = _NOTHING
    prompt_tokens_details: msgspec.Raw = _NOTHING


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    model: msgspec.Raw = _NOTHING
    system_fingerprint: msgspec.Raw = _NOTHING
    usage: msgspec.Raw = _NOTHING


class _Part(msgspec.Struct):
    type: str = "text"
    text: str = ""


class Completion(msgspec.Struct, frozen=True):
    """The first choice of a chat completion. `reasoning` is what the server parsed apart as thought.

    `model` and `fingerprint` are what answered, by the server's own word; empty if it does not say. `steps` are its
    tokens with their probabilities, if it gives them.
    """

    text: str | None
    finish_reason: str
    refusal: str | None
    usage: Usage
    reasoning: str = ""
    model: str = ""
    fingerprint: str = ""
    steps: tuple[Step, ...] = ()


class _Likely(msgspec.Struct):
    token: str
    logprob: float


class _Place(_Likely):
    top_logprobs: list[_Likely] = []


class _Places(msgspec.Struct):
    content: list[_Place] | None = None


_DECODER = msgspec.json.Decoder(_Completion)
_USAGE = msgspec.json.Decoder(_Usage)
_DETAILS = msgspec.json.Decoder(_PromptDetails)
_COUNT = msgspec.json.Decoder(int)
_TEXT = msgspec.json.Decoder(str)
_PARTS = msgspec.json.Decoder(list[_Part])
_PLACES = msgspec.json.Decoder(_Places)
_BOM = b"\xef\xbb\xbf"
_SPOKEN = frozenset({"text", "output_text"})


def completion(body: bytes | None) -> Completion:
    """The chat completion in `body` (None: too large to be read), whole or in events. Raises BrokenReply if it is none.

    What is not needed for the answer never breaks it: a strange number of tokens is bounded, or 0.
    """
    if body is None:
        raise BrokenReply("too large")
    body = body.removeprefix(_BOM)
    try:
        reply = _decoded(joined_events(body) if is_events(body) else body)
    except BrokenReply:
        raise
    except msgspec.MsgspecError as error:
        raise BrokenReply(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise BrokenReply(f"not JSON text: {type(error).__name__}") from error
    choice = reply.choices[0]
    message = choice.message
    thoughts = (_lenient(raw, _TEXT) or "" for raw in (message.reasoning, message.reasoning_content))
    return Completion(
        _spoken(message.content),
        (_lenient(choice.finish_reason, _TEXT) or "")[:40],
        _lenient(message.refusal, _TEXT),
        _usage(reply.usage),
        next((thought for thought in thoughts if thought.strip()), ""),
        (_lenient(reply.model, _TEXT) or "")[:200],
        (_lenient(reply.system_fingerprint, _TEXT) or "")[:200],
        _steps(choice.logprobs),
    )


def _steps(raw: msgspec.Raw) -> tuple[Step, ...]:
    found = _lenient(raw, _PLACES) or _Places()
    return tuple(
        Step(place.token, {one.token: one.logprob for one in (*place.top_logprobs[:_LIKELIEST], place)})
        for place in (found.content or ())[:_MOST_STEPS]
    )


def _decoded(body: bytes) -> _Completion:
    """The completion in `body`, which may hold the NaN and Infinity of Python's JSON."""
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        plain = json.loads(body, parse_constant=lambda _: None)
        return _DECODER.decode(json.dumps(plain))


def _spoken(content: msgspec.Raw) -> str | None:
    """The text of a message's content: a string, or the parts of text in a list."""
    if content == _NOTHING:
        return None
    if (text := _lenient(content, _TEXT)) is not None:
        return text
    parts = _lenient(content, _PARTS)
    if parts is None:
        raise BrokenReply("the content of the message is not text")
    return "".join(part.text for part in parts if part.type in _SPOKEN)


class _Delta(msgspec.Struct):
    content: msgspec.Raw = _NOTHING
    refusal: msgspec.Raw = _NOTHING
    reasoning: msgspec.Raw = _NOTHING
    reasoning_content: msgspec.Raw = _NOTHING


class _ChoiceEvent(msgspec.Struct):
    index: msgspec.Raw = _NOTHING
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: msgspec.Raw = _NOTHING


class _Event(msgspec.Struct):
    choices: list[_ChoiceEvent] = []
    error: msgspec.Raw = _NOTHING
    model: msgspec.Raw = _NOTHING
    system_fingerprint: msgspec.Raw = _NOTHING
    usage: msgspec.Raw = _NOTHING


_EVENT = msgspec.json.Decoder(_Event)


def is_events(body: bytes) -> bool:
    """Whether `body` is a stream of server-sent events."""
    return body.lstrip()[:6].startswith((b"data:", b"event:", b": "))


class Overheard:
    """Reads the events of a streamed completion while they arrive, and tells once it only repeats itself.

    What is stopped there has LOOP as its finish reason, and as many tokens as there were events with text.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._read = 0
        self._events = 0
        self._tail = ""

    def stopped(self, body: bytearray) -> bytes | None:
        """The events until now with an end of ours, if what is said is a loop; else None."""
        if len(body) - self._seen < _OVERHEARD_BYTES:
            return None
        end = body.rfind(b"\n", self._seen) + 1
        self._seen = len(body)
        if not end:
            return None
        pieces = [piece for line in body[self._read : end].splitlines() if (piece := _heard(bytes(line)))]
        self._read = end
        self._events += len(pieces)
        self._tail = (self._tail + "".join(pieces))[-_TAIL_CHARS:]
        begins = loop_begins(self._tail, exact=True)
        if begins is None or len(self._tail) - begins < _STOPPED_CHARS:
            return None
        last = {
            "choices": [{"index": 0, "delta": {}, "finish_reason": LOOP}],
            "usage": {"completion_tokens": self._events},
        }
        return bytes(body[:end]) + b"data: " + msgspec.json.encode(last) + b"\n\n"


_OVERHEARD_BYTES = 16_384
_TAIL_CHARS = 8_000
_STOPPED_CHARS = 2_000  # of a loop: some tables have long lines of dashes


def _heard(line: bytes) -> str:
    """What an event says or thinks; nothing for any other line."""
    if not line.startswith(b"data:"):
        return ""
    event = _lenient(msgspec.Raw(line.removeprefix(b"data:").strip()), _EVENT)
    if event is None or not event.choices:
        return ""
    first = event.choices[0]
    if _lenient(first.index, _COUNT):
        return ""
    delta = first.delta
    said = (delta.content, delta.reasoning, delta.reasoning_content)
    return next((text for raw in said if (text := _lenient(raw, _TEXT))), "")


def joined_events(body: bytes) -> bytes:
    """The events of one streamed completion as the JSON of a whole one. Raises BrokenReply, and ValueError.

    A stream that ends without a finish reason was cut off on its way.
    """
    said: dict[str, list[str]] = {name: [] for name in _Delta.__struct_fields__}
    last: dict[str, msgspec.Raw] = {}
    finish = _NOTHING
    for line in body.splitlines():
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or data in (b"", b"[DONE]"):
            continue
        event = _EVENT.decode(data)
        if event.error != _NOTHING:
            return b'{"error":' + bytes(event.error) + b"}"
        for choice in event.choices:
            if _lenient(choice.index, _COUNT):
                continue
            for name, pieces in said.items():
                pieces.append(_lenient(getattr(choice.delta, name), _TEXT) or "")
            if choice.finish_reason != _NOTHING:
                finish = choice.finish_reason
        for name in ("model", "system_fingerprint", "usage"):
            if getattr(event, name) != _NOTHING:
                last[name] = getattr(event, name)
    if finish == _NOTHING:
        raise BrokenReply("a stream of events without an end")
    message = {name: "".join(pieces) for name, pieces in said.items() if any(pieces)}
    return msgspec.json.encode({"choices": [{"message": message, "finish_reason": finish}], **last})


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
    n_ctx: msgspec.Raw = _NOTHING
    loaded_context_length: msgspec.Raw = _NOTHING
    max_context_length: msgspec.Raw = _NOTHING
    meta: msgspec.Raw = _NOTHING
    top_provider: msgspec.Raw = _NOTHING


class _Windows(msgspec.Struct):
    """What servers call the most tokens of prompt and answer, inside an entry of their list."""

    n_ctx: msgspec.Raw = _NOTHING
    max_model_len: msgspec.Raw = _NOTHING
    context_length: msgspec.Raw = _NOTHING


_WINDOWS = msgspec.json.Decoder(_Windows)


class _Models(msgspec.Struct):
    data: list[_Listed]


_MODELS = msgspec.json.Decoder(_Models)


def models(body: bytes | None) -> list[Model]:
    """A server's list of models; empty for anything else."""
    found = None if body is None else _lenient(msgspec.Raw(body), _MODELS)
    return [] if found is None else [Model(one.id, _window(one)) for one in found.data]


def _window(listed: _Listed) -> int | None:
    inner = [_lenient(raw, _WINDOWS) or _Windows() for raw in (listed.meta, listed.top_provider)]
    own = (listed.max_model_len, listed.n_ctx, listed.loaded_context_length)
    served = [raw for one in inner for raw in (one.n_ctx, one.max_model_len, one.context_length)]
    models_own = (listed.context_length, listed.context_window, listed.max_context_length)
    said = (_count(raw) for raw in (*own, *served, *models_own))
    return next((count for count in said if count), None)


_BLOCKS = re.compile(rb"^vllm:cache_config_info\{(.{1,8000})\}", re.MULTILINE)
_BLOCK_FIELD = re.compile(rb'\b(block_size|num_gpu_blocks)="(\d{1,9})"')


def cache_tokens(body: bytes | None) -> int | None:
    """The tokens that a server's prefix cache holds, by vLLM's metrics; None where they do not say."""
    found = 0
    for line in _BLOCKS.finditer(body or b""):
        fields = {name: int(value) for name, value in _BLOCK_FIELD.findall(line[1])}
        found += fields.get(b"block_size", 0) * fields.get(b"num_gpu_blocks", 0)
    return found or None


class _Error(msgspec.Struct):
    message: str = ""
    type: msgspec.Raw = _NOTHING
    param: msgspec.Raw = _NOTHING
    code: msgspec.Raw = _NOTHING
    metadata: msgspec.Raw = _NOTHING


class _Complaint(_Error):
    """The forms of a complaint: the message is inside `error`, or `error` itself, or beside it, or in several."""

    error: msgspec.Raw = _NOTHING
    errors: msgspec.Raw = _NOTHING
    detail: msgspec.Raw = _NOTHING


class _Passed(msgspec.Struct):
    """What a gateway passes on of the server behind it: the body of its reply, and headers."""

    raw: str = ""
    headers: dict[str, str] = {}


_PASSED = msgspec.json.Decoder(_Passed)
_COMPLAINT = msgspec.json.Decoder(_Complaint)
_COMPLAINTS: msgspec.json.Decoder[list[_Complaint]] = msgspec.json.Decoder(list[_Complaint])
_ERROR = msgspec.json.Decoder(_Error)
_ERRORS = msgspec.json.Decoder(list[_Error])
_BAD_GATEWAY = 502


def _complaint_in(raw: msgspec.Raw) -> _Complaint | None:
    """A complaint, or the first of a list of them."""
    found = _lenient(raw, _COMPLAINT)
    several: list[_Complaint] | None = None if found else _lenient(raw, _COMPLAINTS)
    return found or (several[0] if several else None)


def _complained(body: bytes) -> tuple[str, _Error]:
    """The message of a complaint, empty if there is none, and the error that holds it."""
    raw = msgspec.Raw(body.removeprefix(_BOM))
    found = _complaint_in(raw) or _Complaint()
    error = _lenient(found.error, _ERROR) or next(iter(_lenient(found.errors, _ERRORS) or ()), found)
    texts = (_lenient(text, _TEXT) or "" for text in (found.error, found.detail))
    return error.message or next((text for text in texts if text), ""), error


def complaint(body: bytes, redacted: Redaction) -> str:
    """The error message of a failed reply, redacted, at most 2,000 characters.

    Only the server's own message where it can be found: the rest of such a body may repeat the request.
    """
    message, error = _complained(body)
    if not message:
        return redacted.head(body.decode("utf-8", "replace"), COMPLAINT_CHARS)
    kind = _word(error.type)
    codes = ("" if kind.endswith("error") else kind, _word(error.code), _word(error.param))
    behind = (_lenient(error.metadata, _PASSED) or _Passed()).raw
    passed = _complained(behind.encode("utf-8", "replace"))[0] or behind
    said = (message, *codes, " ".join(passed.split()))
    return redacted.head(" ".join(one for one in said if one), COMPLAINT_CHARS)


def _word(raw: msgspec.Raw) -> str:
    """A text or a number as it is shown; empty for anything else."""
    number = _lenient(raw, _COUNT)
    return (_lenient(raw, _TEXT) or "") if number is None else str(number)


def failure_inside(body: bytes) -> int | None:
    """The status that a reply of status 200 without an answer stands for; None for anything but such a reply.

    Nothing at all, no choices, and an error in place of choices are what gateways send when the server behind them has
    failed: the status that the error names, or else 502.
    """
    bare = body.removeprefix(_BOM).strip()
    if not bare:
        return _BAD_GATEWAY
    if is_events(bare):
        try:
            bare = joined_events(bare)
        except (BrokenReply, ValueError, RecursionError):
            return _BAD_GATEWAY
    raw = msgspec.Raw(bare)
    found = _complaint_in(raw)
    if found is not None and found.error != _NOTHING:
        code = _word((_lenient(found.error, _ERROR) or found).code)
        return int(code) if re.fullmatch("[45][0-9][0-9]", code) else _BAD_GATEWAY
    empty = _lenient(raw, _EMPTY)
    return _BAD_GATEWAY if empty is not None and not empty.choices else None


class _Empty(msgspec.Struct):
    choices: Annotated[list[msgspec.Raw], Meta(max_length=0)] | None


_EMPTY = msgspec.json.Decoder(_Empty)


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


HINTS = (
    "retry-after-ms",
    "retry-after",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-ratelimit-reset",
    "ratelimit-reset",
    "ratelimit",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-remaining",
    "ratelimit-remaining",
)
"""The headers in which servers say how long to wait, and whether they must be waited for."""

_SPAN = re.compile(
    r"(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?"
)
_AGAIN_IN = re.compile(
    r"(?:again|retry|wait)[^.\d]{0,40}?(\d{1,9}(?:\.\d{1,9})?) ?(ms|milliseconds?|s|sec|seconds?|m|min|minutes?)\b",
    re.IGNORECASE,
)
_RETRY_DELAY = re.compile(
    r'"retry[_-]?(?:Delay|after)(?:_seconds)?"\s*:\s*"?(\d{1,9}(?:\.\d{1,9})?)s?\b', re.IGNORECASE
)
_QUOTA = re.compile(
    r"quota|billing|\bdaily\b|per.?day\b|(?:out of|insufficient|no) (?:credits?|funds|balance)|credit balance"
    r"|hard limit",
    re.IGNORECASE,
)
_SOON = re.compile(r"per.?(?:minute|second|hour)|[rt]p[ms]\b|rate.?limit(?:ed)? reached", re.IGNORECASE)
_HINT_CHARS = 20_000
_EPOCH_S = 1e9  # seconds; what is more is a time, not a span
_EPOCH_MS = 1e11  # what is more is a time in milliseconds
_REMAINS = re.compile(r"\br=0\b[^,]{0,80}?\bt=(\d{1,9})\b")  # the field RateLimit, as its draft has it


def asked_wait(headers: Mapping[str, str], body: bytes, now: float) -> float | None:
    """Seconds that a server asks to wait, in its headers or the JSON or words of its body; None if it does not.

    `now` is in seconds since the epoch. A reset of requests or tokens counts where nothing says it more directly.
    """
    inside = _lenient(_complained(body)[1].metadata, _PASSED) or _Passed()
    headers = {**{name.lower(): value for name, value in inside.headers.items()}, **headers}
    if (milliseconds := headers.get("retry-after-ms", "").strip()) and _SECONDS.fullmatch(milliseconds):
        return min(float(milliseconds) / 1000, 1e9)
    if (seconds := retry_after(headers.get("retry-after"), now)) is not None:
        return seconds
    text = body[:_HINT_CHARS].decode("utf-8", "replace")
    if (found := _RETRY_DELAY.search(text)) is not None:
        return float(found[1])
    if (found := _AGAIN_IN.search(text)) is not None:
        unit = found[2].lower()
        return float(found[1]) * (
            0.001 if unit.startswith(("ms", "mil")) else 60 if unit.startswith("m") else 1
        )
    resets = (
        _reset(headers.get(name, ""), now) for name in HINTS if "reset" in name and _is_empty(headers, name)
    )
    field = _REMAINS.search(headers.get("ratelimit", "")[:_HINT_CHARS])
    spans = (*resets, float(field[1]) if field else None)
    return max((span for span in spans if span is not None), default=None)


def _is_empty(headers: Mapping[str, str], name: str) -> bool:
    """Whether nothing remains of what the header `name` tells the reset of, or that is not said."""
    return headers.get(name.replace("reset", "remaining"), "0").strip() == "0"


def _reset(said: str, now: float) -> float | None:
    """A span like 6m0s, 1.5s or 20 (seconds), or a time in seconds since the epoch; None for anything else."""
    said = said.strip()
    if _SECONDS.fullmatch(said):
        seconds = min(float(said), 1e14)
        seconds = seconds / 1000 if seconds > _EPOCH_MS else seconds
        return max(0.0, seconds - now) if seconds > _EPOCH_S else seconds
    found = _SPAN.fullmatch(said)
    if not said or found is None:
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def is_spent(said: str) -> bool:
    """Whether a refusal says that a quota is used up, and not only that of a minute."""
    return bool(_QUOTA.search(said)) and not _SOON.search(said)
