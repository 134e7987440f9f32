"""The probe of one OpenAI-compatible server.

Its prompt shows one form of answer, its constraint demands another: a word of which the prompt says nothing. Only a
server that constrains its replies can give it. One that refuses to constrain, and says so, must give the form shown.
Where only free text is asked, any words will do.
"""

import asyncio
from typing import Literal

import msgspec

from adjudge.judges.completions import BrokenReply, Completion, Form, Model, Requests, completion
from adjudge.judges.errors import Trouble
from adjudge.judges.probe import Probe, Verdict
from adjudge.judges.question import Answer
from adjudge.judges.refusals import fatal, is_about_format, reason_of, refused_parameter
from adjudge.judges.reply import without_reasoning
from adjudge.judges.schema import UnparseableReply, decode, json_schema
from adjudge.judges.server import OpenAIConfig, Received, Server

__all__ = ["CUT_OFF_UNLIMITED", "MUCH_THOUGHT", "THOUGHT_UNASKED", "Trial", "window_of"]

_THINKING_FIX = "set judge: thinking: true, or switch thinking off at the server"
THOUGHT_UNASKED = f"cut off while thinking, before an answer began; {_THINKING_FIX}"
CUT_OFF_UNLIMITED = "cut off at the server's own limit of tokens; raise it, or add a limit to judge: request"
MUCH_THOUGHT = "cut off while thinking, though given twice the tokens; raise judge: thinking_tokens"
_RETRIES = 2
_CATALOGUE = 16  # models; a longer list is what a provider offers, not what a server has loaded
_SEED = 0


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

    async def verdict(self, timeout_s: float) -> Verdict:
        """The verdict; a server that has not answered within `timeout_s` is unreachable."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._verdict()
        except TimeoutError:
            return self._bad("unreachable", f"no answer within {timeout_s:g} s; start it, or try again later")

    async def _verdict(self) -> Verdict:
        form = self._requests.tried(self._question, json_schema(_Hidden, 0, False))
        if self._server.lacks_key:
            name = self._server.key_name
            return self._bad("unusable", f"the environment variable {name} is not set; set it to its key")
        constrained = form.constrained and not self._config.free_text
        received = await self._ask(form, constrained)
        if constrained and is_about_format(received.status, received.said):
            received, constrained = await self._ask(form, False), False
        self._seconds = received.seconds
        if not received.is_good:
            return self._refused(received)
        try:
            found = completion(received.body)
        except BrokenReply:
            fix = (
                "answered with something other than a chat completion; check judge: url, mostly ending in /v1"
            )
            return self._bad("unusable", fix)
        return self._judged(found, form, constrained, await self._server.models())

    async def _ask(self, form: Form, constrained: bool) -> Received:
        if self._config.free_text:
            body = self._requests.free(self._question)
        else:
            body = self._requests.body(self._question, form, _SEED, form.budgets[0], constrained)
        return await self._server.send(body, min(self._config.retries, _RETRIES))

    def _refused(self, received: Received) -> Verdict:
        status, said = received.status, " ".join(received.said.split())[:300]
        if received.failure is not None or received.is_transient:
            what = f"status {status} ({said})" if status else said
            return self._bad("unreachable", f"{what}; start it, or correct judge: url")
        known = fatal(status, said) or refused_parameter(status, said)
        if known is not None:
            line = known.line(self._server, self._config.model, received)
            return Verdict(where=self._server.where, trouble=known.trouble, line=line)
        if reason_of(status, said) == "context_overflow":
            return self._bad("window_too_small", f"{said}; {_ROOM}")
        return self._bad("unusable", f"refuses the smallest question: status {status} ({said}); {_REQUEST}")

    def _judged(self, found: Completion, form: Form, constrained: bool, listed: list[Model]) -> Verdict:
        """The verdict on a chat completion."""
        config = self._config
        own = [model for model in listed if _is_same(model.name, config.model)]
        self._window = window_of(listed, config)
        renamed = found.model != config.model and _is_same(found.model, config.model)
        if listed and not own and not renamed and len(listed) <= _CATALOGUE:
            names = ", ".join(model.name for model in listed)[:300]
            return self._bad("wrong_model", f"serves {names}; set judge: model to what it serves")
        if (
            config.max_context is not None
            and found.usage.prompt_tokens + form.budgets[0] > config.max_context
        ):
            return self._bad("window_too_small", f"max_context is {config.max_context} tokens; {_ROOM}")
        if found.refusal or found.finish_reason in ("content_filter", "refusal"):
            return self._bad("unusable", "declines the smallest question; use another model")
        spoken = without_reasoning(found.text or "").strip()
        if self._config.free_text:
            return (
                self._good() if spoken else self._bad("unusable", "gives an empty reply; use another model")
            )
        thought = found.reasoned or spoken != (found.text or "").strip()
        if thought and not config.thinking:
            return self._bad("thinks_unasked", _THINKING)
        if found.finish_reason == "length":
            return self._cut_off(spoken)
        return self._spoken(spoken, constrained)

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

    def _spoken(self, spoken: str, constrained: bool) -> Verdict:
        try:
            if constrained:
                msgspec.json.decode(spoken, type=_Hidden)
            else:
                decode(self._question, spoken)
        except (UnparseableReply, msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
            return self._bad("ignores_schema", _SCHEMA)
        return self._good()

    def _good(self) -> Verdict:
        return Verdict(where=self._server.where, window=self._window, seconds=self._seconds)

    def _bad(self, trouble: Trouble, said: str) -> Verdict:
        where, model = self._server.where, self._config.model
        return Verdict(
            where=where,
            trouble=trouble,
            line=f"{where}, model {model}: {said}",
            window=self._window,
            seconds=self._seconds,
        )


_REQUEST = "add what it lacks to judge: request, or name what it does not take in judge: omit"
_ROOM = "serve the model with a longer context, or lower judge: thinking_tokens"
_THINKING = f"thinks before it answers; {_THINKING_FIX}"
_SCHEMA = "ignores the JSON schema of the request (response_format); use a server that keeps to it"


def window_of(listed: list[Model], config: OpenAIConfig) -> int | None:
    """The most tokens of prompt and answer, by the server's list of models and `max_context`; None if neither says."""
    own = [model.window for model in listed if _is_same(model.name, config.model)]
    return min((one for one in (config.max_context, *own[:1]) if one), default=None)


def _is_same(name: str, model: str) -> bool:
    """Whether two names may mean one model: with or without a folder before, or a version behind."""
    one, other = (text.lower().rstrip("/").rpartition("/")[2] for text in (name, model))
    return bool(one and other) and (one.startswith(other) or other.startswith(one))
