"""The judge behind any OpenAI-compatible server: vLLM, SGLang, llama.cpp and the hosted ones.

A failure of one question becomes a reply with a reason; one that every question would meet is a `JudgeError`:

=====================================  ===============================================================
no connection, 202, 408, 409, 424,     asked again after a wait, the server's own for all; then judge_unavailable
425, 429, 498, 5xx, 4xx that pass by
their words, and 200 with an error,
with no choices or with nothing
sent, and no answer in time            judge_timeout, not asked again: the server is busy enough
4xx whose numbers leave tokens         asked again with those tokens, and analyses that fit into them
4xx, 500 about the context's length    context_overflow; 413 too
a count of tokens beyond the window,   context_overflow: the server dropped a part of the prompt
or too small for the prompt's words
400, 422, 500 about the format         asked again without it, this answer type from then on
4xx about a content filter             judge_refused
401, 402, 403, 404, 405, redirections  JudgeError; a used up quota too
403, 404, 500, 502, 504 after answers  that question's own, if the probe passes: judge_refused, judge_unavailable
400, 422 about model, max_tokens,      JudgeError, unless the server has answered before
temperature or seed
any other 400, 422                     asked once more without the response format; left out if that helps twice
any other 4xx                          judge_unsupported, its text what the server said
200 without a chat completion          asked again, if the server has answered before; then judge_unparseable
a reply that does not fit the answer   asked once more with the field and its fault named; then judge_unparseable
cut off at its token limit             asked again with more tokens; answer_truncated if cut off again
cut off, max_tokens omitted            answer_truncated, not asked again
cut off in a loop                      answer_truncated, not asked again: it would repeat itself again
cut off while thinking unasked         answer_truncated, not asked again, its text what to do
no probabilities where they are asked  judge_unsupported
=====================================  ===============================================================

The probe shows one form of answer in its prompt and demands another, with a word the prompt never mentions, in its
constraint. Only a server that constrains its replies can give that word. One that does not is asked in the other
formats that servers know, from the strictest on; the last are a JSON object of any form, and words alone, and then it
must give the form shown. One that takes no system message gets its words before those of the user. If only free text
is asked for, any words pass.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

import msgspec

from adjudge.judges.chat import (
    asked_again,
    continued,
    corrected,
    read_reply,
    sizes,
    without_mark,
    without_reasoning,
)
from adjudge.judges.completions import Completion, Form, Model, Requests
from adjudge.judges.errors import JudgeError, Trouble
from adjudge.judges.expected import Labels, NoProbabilities, Step, expected_answer, spoken_distribution
from adjudge.judges.judgment import (
    PROBE_SECONDS,
    Asked,
    Format,
    JudgeIdentity,
    JudgeReason,
    Manner,
    Probe,
    Reply,
    Usage,
    Verdict,
)
from adjudge.judges.loops import LOOP
from adjudge.judges.profile import TokensSeen, sampling_of
from adjudge.judges.question import Answer, Question
from adjudge.judges.queue import ContextQueue, Slots
from adjudge.judges.room import is_cut_short, room
from adjudge.judges.schema import UnparseableReply, decode, json_schema, object_in
from adjudge.judges.server import OpenAIConfig, Received, Server
from adjudge.prompts import PromptBook

_log = logging.getLogger(__name__)

_CONTEXT = re.compile(
    r"context.?(length|window|size)|maximum (input|sequence|model) length|(input|prompt) is too long"
    r"|too many tokens|max_tokens must be at least|inputs.{1,3}tokens.{1,40}must be"
    r"|max_(completion_)?tokens. ?is too large|supports at most .{1,20}tokens"
    r"|token limit|token count|maximum prompt length|max_seq_len"
    r"|(input|prompt).{0,60}(longer|fewer|above|exceed|outside)",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"response.?(format|schema)|json.?(schema|mode)|structured.?output|guided.?(json|decoding)|grammar"
    r"|output.(config.)?format|(the|given) schema|additionalProperties|maxLength|xgrammar|json_object",
    re.IGNORECASE,
)
# One draw went wrong, not the schema.
_DRAW = re.compile(
    r"json_validate_failed|failed_generation|json mode (?:could not|couldn.?t) be met"
    r"|(?:could not|couldn.?t|failed to) generate.{0,40}\bjson",
    re.IGNORECASE,
)
_LOADING = re.compile(r"load|start|warm|initiali", re.IGNORECASE)
_LOADING_S = 1.5
_FILTERED = re.compile(
    r"content.?(filter|policy|management policy)|inspection|moderation|flagged", re.IGNORECASE
)
# What says less surely why, and is believed once the request was refused without its format too.
_SIZE = (
    r"(?:\b(?:tokens?|length|long|size|large|big|bytes|characters|context|window|payload|words)\b"
    r"|\d ?[KMG]B\b)"
)
_BOUND = (
    r"\b(?:exceed\w*|maximum|limit\w*|longer|larger|greater|(?:more|less|fewer|lower) than|at most|too|above|over"
    r"|beyond|outside|range|reduce|shorten|shorter|allow(?:s|ed)|not enough)\b"
)
_TOO_MUCH = re.compile(
    rf"{_SIZE}.{{0,100}}?{_BOUND}|{_BOUND}.{{0,100}}?{_SIZE}|[超过][长大]|(?:长度|上下文|字数).{{0,20}}超[过出]"
    r"|超[过出].{0,20}(?:长度|上下文|字数)",
    re.IGNORECASE,
)
_UNSAFE = re.compile(
    r"\bsafety\b|guardrail|\bblocked\b|harmful|\bunsafe\b|sensitive|prohibited|content.{0,20}\brisk|\bhigh.?risk|敏感|不安全|违规",
    re.IGNORECASE,
)
_ROLES = re.compile(r"(\broles?\b)|\bsystem\b|developer.?instruction", re.IGNORECASE)
_UNKNOWN_MODEL = re.compile(r"model_not_found|invalid model|model.{0,80}(not found|not exist)", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not (permitted|allowed)|extra|deprecated|instead|only the default"
    r"|must be|between",
    re.IGNORECASE,
)
_PATH = "check that the URL is the part before /chat/completions, mostly ending in /v1"


class Fatal(NamedTuple):
    """Why no question can be answered, and what to do; KEY is replaced by the key's environment variable."""

    trouble: Trouble
    fix: str

    def line(self, server: Server, model: str, received: Received) -> str:
        """One line: the server, its problem and what to do."""
        said = " ".join(received.said.split())[:300]
        known = _NO_KEY if received.status == 401 and server.has_key else self
        fix = known.fix.replace("KEY", server.key_name)
        return f"{server.where}, model {model}: status {received.status} ({said}); {fix}"


_FATAL = {
    401: Fatal("unusable", "set the environment variable KEY to a key that it accepts"),
    402: Fatal("unusable", "add credit to its account"),
    403: Fatal("unusable", "the key in the environment variable KEY may not use this model"),
    405: Fatal("unusable", _PATH),
}
_NO_MODEL = Fatal("wrong_model", "set judge: model to a model that it serves")
_NOT_FOUND = Fatal("unusable", f"check the model's name, and {_PATH}")
_NO_API = Fatal("unusable", "check that the URL is that of an OpenAI-compatible API")
_TEMPERATURE = Fatal(
    "unusable", "add the line omit: [temperature] to judge:, or set judge: temperature to one that it takes"
)
_SEED = Fatal("unusable", "add the line omit: [seed] to judge:")
_NO_KEY = Fatal(
    "unusable", "the key in the environment variable KEY is not accepted, or not in the header that it names"
)
_SPENT = Fatal("unreachable", "its quota or limit is used up; raise that, or run again later")
_OF_FORMAT = frozenset({400, 422, 500, 501})
_OTHER_LIMIT = re.compile(r"max_(?:completion|output)_tokens", re.IGNORECASE)
_LIMIT = 32_768  # tokens, for any answer and the thinking before it


def fatal(status: int, said: str) -> Fatal | None:
    """Why a refusal with `status` and the message `said` would meet every question, or None."""
    if status == 404:
        return _NO_MODEL if "model" in said.lower() else _NOT_FOUND
    if status in _FATAL:
        return _FATAL[status]
    return _NO_API if 300 <= status < 400 else None


def refused_parameter(status: int, said: str) -> Fatal | None:
    """The part of every request that a server refuses (its model, `max_tokens`, temperature or seed), or None.

    A message may repeat a part of the prompt: believe it only of a server that has not answered yet.
    """
    if status not in (400, 422) or _CONTEXT.search(said):
        return None
    if _UNKNOWN_MODEL.search(said):
        return _NO_MODEL
    if not _UNSUPPORTED.search(said):
        return None
    lowered = said.lower()
    if "max_tokens" in lowered:
        found = _OTHER_LIMIT.search(lowered)
        name = found[0] if found else "max_completion_tokens"
        fix = f"add two lines to judge: `omit: [max_tokens]` and `request: {{{name}: {_LIMIT}}}`"
        return Fatal("refuses_max_tokens", fix)
    if "temperature" in lowered:
        return _TEMPERATURE
    return _SEED if re.search(r"\bseed\b", lowered) else None


def is_about_format(status: int, said: str) -> bool:
    """Whether the server refuses to constrain its reply."""
    return status in _OF_FORMAT and bool(_FORMAT.search(said)) and not _CONTEXT.search(said)


def is_maybe_format(received: Received) -> bool:
    """Whether a refusal is of the schema, by its words or because it names nothing else."""
    status, said = received.status, received.said
    if is_about_format(status, said):
        return True
    if status not in (400, 422) or refused_parameter(status, said) is not None:
        return False
    return not _CONTEXT.search(said) and not _FILTERED.search(said)


def reason_of(status: int, said: str) -> JudgeReason:
    """Why one question is unscored that the server refused for good."""
    if status == 413 or _CONTEXT.search(said):
        return "context_overflow"
    if _FILTERED.search(said):
        return "judge_refused"
    if _TOO_MUCH.search(said):
        return "context_overflow"
    return "judge_refused" if _UNSAFE.search(said) else "judge_unsupported"


_THINKING_FIX = "set judge: thinking: true, or switch thinking off at the server"
THOUGHT_UNASKED = f"cut off while thinking, before an answer began; {_THINKING_FIX}"
CUT_OFF_UNLIMITED = "cut off at the server's own limit of tokens; raise it, or add a limit to judge: request"
MUCH_THOUGHT = "cut off while thinking, though given twice the tokens; raise judge: thinking_tokens"
_RETRIES = 2
_CATALOGUE = 16  # models; a longer list is what a provider offers, not what a server has loaded
_PROBE_SEED = 0
_LIST_S = 10.0


_FORMATS: tuple[Format, ...] = get_args(Format)
_SHOWN: frozenset[Format] = frozenset(
    {"json_object", "words"}
)  # what a reply looks like, the prompt says alone


class _Hidden(Answer, frozen=True, kw_only=True):
    ready: Literal["heron", "kestrel"]


class Trial:
    """Tries `server` once with the requests of its judge."""

    def __init__(self, config: OpenAIConfig, server: Server, requests: Requests) -> None:
        self._config = config
        self._server = server
        self._requests = requests
        self._question = Probe.make()
        self._window = config.max_context
        self._seconds = 0.0
        self._loading = ""
        self._most: int | None = None
        self._window_by: Literal["", "max_context", "its list of models"] = ""
        self._written = 0  # tokens of its reply
        self.served = ""
        self.system_fingerprint = ""
        self.counted = 0  # tokens of its prompt, by the server

    async def verdict(self, timeout_s: float) -> Verdict:
        """The verdict; a server that has not answered within `timeout_s` is unreachable."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._verdict()
        except TimeoutError:
            if self._loading:
                said = " ".join(self._loading.split())[:300]
                return self._bad("unreachable", f"still says {said} after {timeout_s:g} s; try again later")
            return self._bad("unreachable", f"no answer within {timeout_s:g} s; start it, or try again later")

    async def _verdict(self) -> Verdict:
        form = self._requests.tried(self._question, json_schema(_Hidden, 0, False))
        if (name := self._server.lacks) is not None:
            return self._bad("unusable", f"the environment variable {name} is not set; set it to its key")
        received = await self._first_good(form)
        self._seconds = received.seconds
        if not received.is_good:
            return self._refused(received)
        if received.found is None:
            fix = (
                "answered with something other than a chat completion; check judge: url, mostly ending in /v1"
            )
            return self._bad("unusable", fix)
        return self._judged(received.found, form, await self._listed())

    async def _first_good(self, form: Form) -> Received:
        """What comes of the probe in the strictest manner that the server keeps to, which all requests then have.

        If it keeps to none: in the last that it answers, else in the first.
        """
        first = await self._ask(form)
        begun = self._requests.manner
        if begun.system and _is_about_roles(first):
            again = await self._ask_as(Manner(begun.format, system=False), form)
            if again.is_good or not _is_about_roles(again):
                first, begun = again, self._requests.manner
        others, last = self._others(first), first
        is_told = first.is_good or is_about_format(first.status, first.said)
        if others and not is_told and not (await self._ask_as(Manner("words", begun.system), form)).is_good:
            others = ()  # it refuses something else
        for chosen in others:
            if chosen == "words" and first.is_good:  # as which the first was answered
                self._requests.manner = Manner(chosen, begun.system)
                return first
            found = await self._ask_as(Manner(chosen, begun.system), form)
            if self._keeps(found):
                return found
            if found.is_good:
                last = found
        self._requests.manner = begun
        return last

    def _others(self, first: Received) -> Sequence[Format]:
        """The formats to try after what came first, the strictest first."""
        if self._config.free_text or not self._requests.constrains or self._keeps(first):
            return ()
        if not first.is_good:
            is_failure = first.status in (500, 501) and not _CONTEXT.search(first.said)
            if not (is_failure or is_maybe_format(first)):
                return ()
            return _FORMATS[_FORMATS.index(self._requests.manner.format) + 1 :]
        found = first.found
        if found is None or found.refusal or found.finish_reason in _UNSAID:
            return ()
        shown = self._fits(found, "words")
        return ("structured_outputs", "json_object_schema", *(("words",) if shown else ()))

    async def _ask_as(self, manner: Manner, form: Form) -> Received:
        """What comes of the probe in another manner, which is kept."""
        self._requests.manner = manner
        return await self._ask(form)

    def _keeps(self, received: Received) -> bool:
        """Whether a reply has the form that was demanded."""
        found = received.found
        if not received.is_good or found is None or found.refusal or found.finish_reason in _UNSAID:
            return False
        return self._fits(found, self._requests.manner.format)

    def _fits(self, found: Completion, form: Format) -> bool:
        """Whether a reply is the answer that `form` must bring: the one shown, or the hidden one."""
        spoken = without_reasoning(said_by(found, self._config.thinking)).strip()
        try:
            if form in _SHOWN:
                decode(self._question, spoken)
            else:
                msgspec.convert(object_in(spoken), _Hidden)
        except (UnparseableReply, msgspec.ValidationError):
            return False
        return True

    async def _listed(self) -> list[Model]:
        """The server's list of models, if it comes soon."""
        try:
            async with asyncio.timeout(_LIST_S):
                return await self._server.models()
        except TimeoutError:
            return []

    async def _ask(self, form: Form) -> Received:
        """What comes of the probe, once the server has loaded its model."""
        while (received := await self._asked(form)).status == 503 and _LOADING.search(received.said):
            self._loading = received.said
            await asyncio.sleep(_LOADING_S)
        return received

    async def _asked(self, form: Form) -> Received:
        retries = min(self._config.retries, _RETRIES)
        if self._config.free_text:
            return await self._server.send(self._requests.free(self._question), retries)
        budget = form.budgets[0]
        body = self._requests.body(self._question, form, _PROBE_SEED, budget, True)
        received = await self._server.send(body, retries, is_final=is_maybe_format)
        here, anywhere = room_in(received, budget, body)
        left = here or anywhere
        if not self._requests.limits_tokens or left is None or left < form.least:
            return received
        body = self._requests.body(self._question, form, _PROBE_SEED, left, True)
        again = await self._server.send(body, retries)
        if again.is_good:
            self._most = anywhere or self._most
        return again

    def _refused(self, received: Received) -> Verdict:
        status, said = received.status, " ".join(received.said.split())[:300]
        if received.is_spent:
            line = _SPENT.line(self._server, self._config.model, received)
            return Verdict(where=self._server.where, trouble=_SPENT.trouble, line=line)
        if received.failure is not None or received.is_transient:
            what = f"status {status} ({said})" if status else said
            return self._bad("unreachable", f"{what}; {_remedy(received)}")
        known = fatal(status, said) or refused_parameter(status, said)
        if known is not None:
            line = known.line(self._server, self._config.model, received)
            return Verdict(where=self._server.where, trouble=known.trouble, line=line)
        if reason_of(status, said) == "context_overflow":
            return self._bad("window_too_small", f"{said}; {_ROOM}")
        return self._bad("unusable", f"refuses the smallest question: status {status} ({said}); {_REQUEST}")

    def _judged(self, found: Completion, form: Form, listed: list[Model]) -> Verdict:
        """The verdict on a chat completion."""
        config = self._config
        self.counted = found.usage.prompt_tokens
        self._written = found.usage.completion_tokens
        self.served, self.system_fingerprint = found.model, found.fingerprint
        own = [model for model in listed if _is_same(model.name, config.model)]
        self._window = window_of(listed, config)
        if self._window is not None:
            self._window_by = "max_context" if self._window == config.max_context else "its list of models"
        renamed = found.model != config.model and _is_same(found.model, config.model)
        if listed and not own and not renamed and len(listed) <= _CATALOGUE:
            names = ", ".join(model.name for model in listed)[:300]
            return self._bad("wrong_model", f"serves {names}; set judge: model to what it serves")
        if self._window is not None and found.usage.prompt_tokens + form.least > self._window:
            return self._bad("window_too_small", f"its window is {self._window} tokens; {_ROOM}")
        if found.refusal or found.finish_reason in ("content_filter", "refusal"):
            return self._bad("unusable", "declines the smallest question; use another model")
        text = said_by(found, config.thinking)
        spoken = without_reasoning(text).strip()
        if self._config.free_text:
            return (
                self._good() if spoken else self._bad("unusable", "gives an empty reply; use another model")
            )
        thought = bool(found.reasoning and text != found.reasoning) or spoken != text.strip()
        if thought and not config.thinking:
            return self._bad("thinks_unasked", _THINKING)
        if found.finish_reason in ("length", LOOP):
            return self._cut_off(spoken)
        if not self._fits(found, self._requests.manner.format):
            return self._bad("ignores_schema", _SCHEMA)
        if config.profile == "fast" and (self._requests.manner.format in _SHOWN or not found.steps):
            return self._bad("unusable", _NO_PROBABILITIES)
        return self._good()

    def _cut_off(self, spoken: str) -> Verdict:
        if spoken and not spoken.startswith("{"):
            return self._bad("ignores_schema", _SCHEMA)
        if not self._requests.limits_tokens:
            return self._bad("cut_off", CUT_OFF_UNLIMITED)
        if spoken:
            return self._bad("cut_off", "cuts its replies off; check the server's own limit of tokens")
        if self._config.thinking:
            return self._bad("cut_off", MUCH_THOUGHT.replace(", though given twice the tokens", ""))
        return self._bad("thinks_unasked", _THINKING)

    def _good(self) -> Verdict:
        return Verdict(
            where=self._server.where,
            window=self._window,
            seconds=self._seconds,
            manner=None if self._config.free_text else self._requests.manner,
            served=self._server.redacted(self.served),
            system_fingerprint=self._server.redacted(self.system_fingerprint),
            window_by=self._window_by,
            most_tokens=self._most,
            tokens_per_s=self._written / self._seconds if self._written and self._seconds else None,
        )

    def _bad(self, trouble: Trouble, said: str) -> Verdict:
        where, model = self._server.where, self._config.model
        return Verdict(
            where=where,
            trouble=trouble,
            line=f"{where}, model {model}: {said}",
            window=self._window,
            seconds=self._seconds,
        )


# After an answer, and if the probe passes: a firewall, a filter, a provider that is away, or a prompt that breaks it.
_OF_ONE = frozenset({403, 404, 500, 502, 504})


def _refused_alone(received: Received) -> Reply[Any]:
    """The reply to a question that alone is refused, by a server that answers others."""
    reason: JudgeReason = "judge_refused" if received.status == 403 else "judge_unavailable"
    return Reply(reason=reason, text=received.said, seconds=received.seconds, is_alone=True)


_UNSAID = frozenset(
    {"length", LOOP, "content_filter", "refusal"}
)  # how a reply ends that says nothing of formats


def _is_about_roles(received: Received) -> bool:
    """Whether a server refuses the roles of the messages."""
    words = _ROLES.search(received.said)
    return words is not None and (
        received.status in (400, 422) or (received.status == 500 and words[1] is not None)
    )


def _is_too_long(received: Received) -> bool:
    """Whether a server breaks at the length of the prompt, and says so."""
    return received.status == 500 and _CONTEXT.search(received.said) is not None


def _would_fail_again(received: Received) -> bool:
    """Whether a failure names what would fail again: the format or the length."""
    return is_about_format(received.status, received.said) or _is_too_long(received)


def room_in(received: Received, asked: int, body: bytes) -> tuple[int | None, int | None]:
    """What a refusal of `body`, which asks for `asked` tokens, leaves for an answer: to this prompt, and to any."""
    if received.status not in (400, 413, 422):
        return None, None
    return room(received.said, asked, len(body), received.status)


def said_by(found: Completion, thinks: bool) -> str:
    """The words of a reply. A server may take all words of a model that does not think for its thoughts."""
    if found.text or thinks or found.finish_reason in ("length", LOOP):
        return found.text or ""
    return found.reasoning if found.reasoning.lstrip().startswith("{") else ""


def _remedy(received: Received) -> str:
    """What to do about a server that cannot be reached, or is not ready."""
    if "certificate" in received.said.lower():
        return "set the environment variable SSL_CERT_FILE to a file with the certificate to trust"
    if "[ssl:" in received.said.lower():
        return "it does not speak TLS there; begin judge: url with http://, or correct its port"
    return "try again when it is ready" if received.status else "start it, or correct judge: url"


_REQUEST = "add missing parameters to judge: request, and name refused ones in judge: omit"
_ROOM = "serve the model with a longer context, or lower judge: thinking_tokens"
_THINKING = f"thinks before it answers; {_THINKING_FIX}"
_NO_PROBABILITIES = (
    "gives no probabilities of tokens (logprobs) beside a reply that keeps to a schema, which profile: fast needs; "
    "set judge: profile: exact"
)
_SCHEMA = "ignores the JSON schema of the request (response_format); use a server that keeps to it"


def window_of(listed: list[Model], config: OpenAIConfig) -> int | None:
    """The most tokens of prompt and answer, by the server's list of models and `max_context`; None if neither says."""
    exact = [model.window for model in listed if model.name == config.model]
    own = exact or [model.window for model in listed if _base(model.name) == _base(config.model)]
    return min((one for one in (config.max_context, *own[:1]) if one), default=None)


_VERSION = re.compile(
    r"[-@:._](?:\d{4}-\d{2}-\d{2}|\d{3,8}|v\d+(?:\.\d+)*|latest|\d+bit|i?q\d\w*|b?fp?(?:8|16|32)|int[48]|awq|gptq"
    r"|gguf|mlx)(?![a-z0-9])"
)


def _base(name: str) -> str:
    """A model's name without the folder before it."""
    return name.lower().rstrip("/").rpartition("/")[2]


def _is_same(name: str, model: str) -> bool:
    """Whether two names may mean one model: with or without a folder before, or a version or the like behind."""
    short, long = sorted((_base(name), _base(model)), key=len)
    if not short or not long.startswith(short):
        return False
    place = len(short)
    while found := _VERSION.match(long, place):
        place = found.end()
    return place == len(long)


A = TypeVar("A", bound=Answer)


class _Heard(NamedTuple, Generic[A]):
    """The reply to a request, the form that it was asked in, and its tokens if their probabilities were asked for."""

    form: Form
    reply: Reply[A]
    steps: tuple[Step, ...] = ()


class _Unsaid(Exception):
    """A request for labels brought no reply that holds one; the reply says why."""

    def __init__(self, reply: Reply[Any]) -> None:
        super().__init__()
        self.reply = reply


class OpenAIJudge:
    """Asks one server, over one HTTP client, at most `max_in_flight` questions at a time.

    Raises JudgeError for a configuration or a server that cannot work for any question.
    """

    def __init__(self, config: OpenAIConfig, book: PromptBook, secret: bytes) -> None:
        thinking_tokens = config.thinking_tokens if config.thinking else 0
        told = {"revision": config.revision, "quantization": config.quantization}
        self.identity = JudgeIdentity(
            name=config.model,
            fingerprint=config.model + "".join(f" {key}={value}" for key, value in told.items() if value),
            sampling=f"temperature={config.temperature:g} thinking={thinking_tokens}{_changed(config)}"
            + sampling_of(config.profile),
            analysis=not config.thinking,
            profile=config.profile,
        )
        self._config = config
        self._secret = secret
        self._server = Server(config)
        self._slots = Slots(config.max_in_flight)
        self._queue = ContextQueue(config.max_in_flight) if config.profile == "fast" else None
        self._book = book
        self._requests = Requests(
            book,
            secret,
            model=config.model,
            temperature=config.temperature,
            thinking_tokens=thinking_tokens,
            added=config.request,
            omitted=config.omit,
            streamed=config.stream,
            profile=config.profile,
        )
        self._seen = TokensSeen() if config.profile == "fast" else None
        self._has_answered = False
        self._constrains = self._requests.constrains  # as far as is known
        self._window = config.max_context
        self._most: int | None = None  # tokens of an answer, as the server has said
        self._served: set[str] = {config.model}  # the models that were said to answer, at most a few
        self._system: str | None = ""  # what the server calls it; None once it has changed
        self._counts: set[int] = set()  # two of its counts of prompts, at most

    async def close(self) -> None:
        """Close the client's connections."""
        await self._server.close()

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """The verdict on the server (adjudge.judges.judgment)."""
        trial = Trial(self._config, self._server, self._requests)
        verdict = await trial.verdict(timeout_s)
        if verdict.is_good:
            self._has_answered = True
            self._window = verdict.window
            self._most = verdict.most_tokens or self._most
            self._note(trial.counted)
            self._note_system(trial.system_fingerprint)
            self._served.add(trial.served)
            self._say_how(verdict.manner)
            if self._queue is not None and (tokens := await self._server.cache_tokens()) is not None:
                self._queue.capacity = tokens
        return (verdict,)

    def _say_how(self, manner: Manner | None) -> None:
        """Warn, once, of a server that keeps to no schema."""
        if manner is not None and manner.format in _SHOWN and self._constrains:
            self._constrains = False
            _log.warning(
                "%s: does not constrain its replies to a schema; it is asked by %s, and some may be unreadable",
                self._server.where,
                manner.format,
            )

    async def window(self, timeout_s: float) -> int | None:
        """The most tokens of prompt and answer, as the server's list of models says within `timeout_s`; None if not."""
        try:
            async with asyncio.timeout(timeout_s):
                return window_of(await self._server.models(), self._config)
        except TimeoutError:
            return None

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """Answer one question. Raises JudgeError only."""
        if any(media.kind not in self._config.media for media in question.context.media):
            return Reply(reason="media_unsupported")
        if self._queue is not None:
            async with self._queue.turn(question.context.digest, asked.priority, *self._estimate(question)):
                return await self._answer(question, asked.seed)
        await self._slots.acquire(asked.priority)
        try:
            return await self._answer(question, asked.seed)
        finally:
            self._slots.release()

    def _estimate(self, question: Question[A]) -> tuple[int, int]:
        """Roughly how many tokens of the cache the context takes, and how many the rest of prompt and answer."""
        context, rest = sizes(question, self._book)
        answer = _ANSWER_TOKENS if self._seen is None else self._seen.mean(question, _ANSWER_TOKENS)
        return round(context / _BYTES_PER_TOKEN), round(rest / _BYTES_PER_TOKEN + answer)

    async def _answer(self, question: Question[A], seed: int) -> Reply[A]:
        """One answer; if it was cut off, the answer to the same request with more tokens."""
        if (published := self._requests.published(question)) is not None:
            return self._reply(question, await self._server.send(published))
        form = self._requests.form(question)
        if self._most is not None and self._most < form.budgets[1]:
            form = self._requests.fitted(question, form, self._most) or form
        if form.labels is not None:
            return await self._expected(question, form, form.labels, seed)
        if self._seen is None:
            return await self._sampled(question, form, seed)
        budget = self._seen.budget(question, form.budgets[0])
        form = msgspec.structs.replace(form, budgets=(budget, form.budgets[1]))
        reply = await self._sampled(question, form, seed)
        self._seen.take(question, reply)
        return reply

    async def _expected(self, question: Question[A], form: Form, labels: Labels, seed: int) -> Reply[A]:
        """The expected answer, by the probabilities of its `labels`."""
        replies: list[Reply[A]] = []

        async def spoken(places: tuple[int, ...]) -> tuple[Step, ...]:
            asked = form if len(places) == len(labels.values) else self._requests.among(form, places)
            heard = await self._ask(question, asked, seed, form.budgets[0])
            replies.append(heard.reply)
            if heard.reply.answer is None:
                raise _Unsaid(heard.reply)
            return heard.steps

        try:
            answer, text = expected_answer(question, labels, await spoken_distribution(labels, spoken))
            reply = msgspec.structs.replace(replies[0], answer=answer, text=text)
        except NoProbabilities as error:
            reply = msgspec.structs.replace(
                replies[-1], answer=None, reason="judge_unsupported", text=str(error)
            )
        except _Unsaid as unsaid:
            reply = unsaid.reply
        usage = Usage.total(one.usage for one in replies)
        return msgspec.structs.replace(reply, usage=usage, seconds=sum(one.seconds for one in replies))

    async def _sampled(self, question: Question[A], form: Form, seed: int) -> Reply[A]:
        form, reply, _ = await self._ask(question, form, seed, form.budgets[0])
        if reply.fault:
            return await self._corrected(question, form, seed, reply)
        if reply.reason != "answer_truncated" or reply.finish_reason == LOOP:
            return reply
        if not self._requests.limits_tokens:
            return msgspec.structs.replace(reply, text=reply.text or CUT_OFF_UNLIMITED)
        if not reply.text and not self._config.thinking:
            return msgspec.structs.replace(reply, text=THOUGHT_UNASKED)
        budget, more = form.budgets
        if more <= budget:
            return reply
        longer = (await self._ask(question, form, seed, more)).reply
        again = continued(reply, longer, form.budgets)
        if again.reason == "answer_truncated" and not again.text:
            return msgspec.structs.replace(again, text=MUCH_THOUGHT)
        return again

    async def _ask(self, question: Question[A], form: Form, seed: int, budget: int) -> _Heard[A]:
        """What a request for `budget` tokens brings, or for those that its refusal leaves."""
        constrained = form.constrained and self._requests.constrains  # others may change it meanwhile
        body = self._requests.body(question, form, seed, budget, constrained)
        received = await self._server.send(body, is_final=_would_fail_again if constrained else _is_too_long)
        if received.status in (400, 422) and _DRAW.search(received.said):
            received = await self._server.send(body)
        here, anywhere = room_in(received, budget, body) if self._requests.limits_tokens else (None, None)
        if (left := here or anywhere) is not None:
            is_more = budget > form.budgets[0]
            fitted = (
                None if is_more and left <= form.budgets[0] else self._requests.fitted(question, form, left)
            )
            if fitted is None:
                overflow = Reply[A](reason="context_overflow", text=received.said, seconds=received.seconds)
                return _Heard(form, overflow)
            form, budget = fitted, fitted.budgets[is_more]
            _log.debug("%s leaves %d tokens for an answer", self._server.where, left)
            body = self._requests.body(question, form, seed, budget, constrained)
            received = await self._server.send(body)
            if received.is_good:
                self._most = anywhere or self._most
        if constrained and is_maybe_format(received):
            refused = received
            received = await self._unconstrained(question, form, seed, budget, refused)
            constrained = received is refused
        if _is_too_long(received) and self._has_answered:
            overflow = Reply(reason="context_overflow", text=received.said, seconds=received.seconds)
            return _Heard(form, overflow)
        if received.status in _OF_ONE and self._has_answered and (await self.probe())[0].is_good:
            # One worker of several may be sick, and the question may have met it each time.
            if received.is_transient:
                received = await self._server.send(body, retries=0)
            if not received.is_good:
                return _Heard(form, _refused_alone(received))
        is_bound = constrained and self._requests.manner.format not in _SHOWN
        reply = self._reply(question, received, form, len(body))
        steps = received.found.steps if received.found is not None else ()
        return _Heard(form, msgspec.structs.replace(reply, constrained=is_bound), steps)

    async def _corrected(self, question: Question[A], form: Form, seed: int, first: Reply[A]) -> Reply[A]:
        """The reply to a question whose `first` reply cannot be read, once that is named."""
        more = asked_again(first, question.language)
        body = self._requests.body(question, form, seed, form.budgets[0], form.constrained, more)
        received = await self._server.send(body)
        if not received.is_good:
            return first
        again = self._reply(question, received, form, len(body))
        return corrected(first, msgspec.structs.replace(again, constrained=first.constrained))

    async def _unconstrained(
        self, question: Question[A], form: Form, seed: int, budget: int, received: Received
    ) -> Received:
        """What comes of a request without its schema, which may have been refused; or else what was `received`."""
        is_named = is_about_format(received.status, received.said)
        again = await self._server.send(self._requests.body(question, form, seed, budget, constrained=False))
        form.doubts += again.is_good
        if again.is_good and form.constrained and (is_named or form.doubts > 1):
            form.constrained = False
            _log.warning("%s does not constrain %s", self._server.where, question.answer.__name__)
            _log.debug("%s said: %s", self._server.where, received.said)  # it may repeat the prompt
        return again if is_named or again.is_good else received

    def _reply(
        self, question: Question[A], received: Received, form: Form | None = None, size: int = 0
    ) -> Reply[A]:
        """The reply to `question`, asked in `form` by a request of `size` bytes; without both, in its own words."""
        if received.is_good:
            return self._read(question, received, form, size)
        said, seconds = received.said, received.seconds
        if received.failure is not None:
            return Reply(reason=received.failure, text=said, seconds=seconds)
        if received.is_transient:
            alone = received.is_alone
            return Reply(reason="judge_unavailable", text=said, seconds=seconds, is_alone=alone)
        known = _SPENT if received.is_spent else fatal(received.status, said)
        if known is None and not self._has_answered:
            known = refused_parameter(received.status, said)
        if known is not None:
            line = known.line(self._server, self._config.model, received)
            raise JudgeError(line, known.trouble)
        return Reply(reason=reason_of(received.status, said), text=said, seconds=seconds)

    def _read(self, question: Question[A], received: Received, form: Form | None, size: int) -> Reply[A]:
        found = received.found
        if found is None:
            return Reply(reason="judge_unparseable", text=received.said, seconds=received.seconds)
        if not self._has_answered:
            self._served.add(found.model)  # what a gateway calls it
        self._has_answered = True
        self._note(found.usage.prompt_tokens)
        self._name(found.model)
        self._note_system(found.fingerprint)
        if (dropped := self._dropped(question, found, form, size)) is not None:
            return Reply(reason="context_overflow", text=dropped, usage=found.usage, seconds=received.seconds)
        text = without_mark(question, said_by(found, self._config.thinking), self._secret)
        ending, seconds = found.finish_reason, received.seconds
        reply = read_reply(question, text, ending, found.usage, seconds, found.refusal, found.reasoning)
        return msgspec.structs.replace(reply, served=found.model, system_fingerprint=found.fingerprint)

    def _name(self, served: str) -> None:
        """Warn, once for each, of answers by a model that is neither the one asked for nor the one that was tried.

        Raises JudgeError where that is an error.
        """
        if (
            not served
            or len(self._served) > _MOST_SERVED
            or any(_is_same(served, one) for one in self._served)
        ):
            return
        other = self._server.redacted(served)
        if self._config.strict_identity:
            raise JudgeError(
                f"{self._server.where}: an answer comes from {other}, not from {self._config.model} "
                "(strict_identity); serve that model alone, or name the other one in judge: model",
                "wrong_model",
            )
        self._served.add(served)
        _log.warning(
            "%s: answers come from %s too, not only from %s; scores of different judges do not compare",
            self._server.where,
            other,
            self._config.model,
        )

    def _note_system(self, system: str) -> None:
        """Warn, once, of a server that calls its system otherwise than before."""
        if not system or self._system is None:
            return
        if self._system and system != self._system:
            before, after = map(self._server.redacted, (self._system, system))
            _log.warning(
                "%s: its system changed from %s to %s; the same question may be answered otherwise now",
                self._server.where,
                before,
                after,
            )
            self._system = None
        else:
            self._system = system

    def _note(self, counted: int) -> None:
        """Remember a count of a prompt's tokens: a server that says the same of all prompts does not count."""
        if len(self._counts) < _SEVERAL:
            self._counts.add(counted)

    def _dropped(self, question: Question[A], found: Completion, form: Form | None, size: int) -> str | None:
        """Why the server cannot have read the whole prompt and answered within its window; None if it can."""
        counted, window = found.usage.prompt_tokens, self._window
        if window is not None and counted + max(found.usage.completion_tokens, 1) > window:
            return f"a prompt of {counted:,} tokens leaves no room for an answer in a window of {window:,} tokens"
        if form is None or question.context.media or len(self._counts) < _SEVERAL:
            return None
        if not is_cut_short(self._requests.prompt(question, form), size, counted):
            return None
        return (
            f"the server counts {counted:,} tokens in a prompt that has more words: it drops what exceeds its window; "
            f"{_ROOM}"
        )


_BYTES_PER_TOKEN = 4.0
_ANSWER_TOKENS = 200.0  # before answers were seen
_SEVERAL = 2
_MOST_SERVED = 8


def _changed(config: OpenAIConfig) -> str:
    """The configuration's changes to every request, as part of the key; empty without any."""
    added = msgspec.json.encode(config.request, order="sorted").decode() if config.request else ""
    omitted = ",".join(sorted(config.omit))
    return f"{f' request={added}' if added else ''}{f' omit={omitted}' if omitted else ''}"
