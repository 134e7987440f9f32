"""The judge behind any OpenAI-compatible server: vLLM, SGLang, llama.cpp and the hosted ones.

A failure of one question becomes a reply with a reason; one that every question would meet is a `JudgeError`:

=====================================  ===============================================================
no connection, 408, 425, 429, 5xx      asked again after a wait; then judge_unavailable
sent, and no answer in time            judge_timeout, not asked again: the server is busy enough
the caller's deadline                  deadline, wherever the question is by then
4xx about the context's length, 413    context_overflow
400, 422 about the response format     asked again without it, this answer type from then on
4xx about a content filter             judge_refused
401, 402, 403, 404, 405, redirections  JudgeError
400, 422 about model, max_tokens,      JudgeError, unless the server has answered before
temperature or seed
any other 4xx                          judge_unsupported, its text what the server said
200 without a chat completion          judge_unparseable
cut off at its token limit             asked again with more tokens; answer_truncated if cut off again
cut off, max_tokens omitted            answer_truncated, not asked again
cut off while thinking unasked         answer_truncated, not asked again, its text what to do
=====================================  ===============================================================
"""

import asyncio
import logging
from typing import TypeVar

import msgspec

from adjudge.judges.completions import BrokenReply, Form, Requests, completion
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import Asked, JudgeIdentity, Reply
from adjudge.judges.openai_probe import CUT_OFF_UNLIMITED, MUCH_THOUGHT, THOUGHT_UNASKED, Trial, window_of
from adjudge.judges.probe import PROBE_SECONDS, Verdict
from adjudge.judges.question import Answer, Question
from adjudge.judges.refusals import fatal, is_about_format, reason_of, refused_parameter
from adjudge.judges.reply import continued, read_reply
from adjudge.judges.server import MAX_BODY_BYTES, OpenAIConfig, Received, Server
from adjudge.judges.slots import Slots
from adjudge.prompts import PromptBook

__all__ = ["MAX_BODY_BYTES", "OpenAIConfig", "OpenAIJudge"]

A = TypeVar("A", bound=Answer)

_log = logging.getLogger(__name__)


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
            sampling=f"temperature={config.temperature:g} thinking={thinking_tokens}{_changed(config)}",
            analysis=not config.thinking,
        )
        self._config = config
        self._server = Server(config)
        self._slots = Slots(config.max_in_flight)
        self._requests = Requests(
            book,
            secret,
            model=config.model,
            temperature=config.temperature,
            thinking_tokens=thinking_tokens,
            added=config.request,
            omitted=config.omit,
        )
        self._has_answered = False

    async def close(self) -> None:
        """Close the client's connections."""
        await self._server.close()

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """The verdict on the server (adjudge.judges.probe)."""
        trial = Trial(self._config, self._server, self._requests)
        return (await trial.verdict(timeout_s),)

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
        if asked.deadline is not None and asyncio.get_running_loop().time() >= asked.deadline:
            return Reply(reason="deadline")
        try:
            async with asyncio.timeout_at(asked.deadline):
                await self._slots.acquire(asked.priority)
                try:
                    return await self._answer(question, asked.seed)
                finally:
                    self._slots.release()
        except TimeoutError:
            return Reply(reason="deadline")

    async def _answer(self, question: Question[A], seed: int) -> Reply[A]:
        """One answer; if it was cut off, the answer to the same request with more tokens."""
        if (published := self._requests.published(question)) is not None:
            return self._reply(question, 0, await self._server.send(published))
        form = self._requests.form(question)
        budget, more = form.budgets
        reply = await self._ask(question, form, seed, budget)
        if reply.reason != "answer_truncated":
            return reply
        if not self._requests.limits_tokens:
            return msgspec.structs.replace(reply, text=reply.text or CUT_OFF_UNLIMITED)
        if not reply.text and not self._config.thinking:
            return msgspec.structs.replace(reply, text=THOUGHT_UNASKED)
        again = continued(reply, await self._ask(question, form, seed, more), form.budgets)
        if again.reason == "answer_truncated" and not again.text:
            return msgspec.structs.replace(again, text=MUCH_THOUGHT)
        return again

    async def _ask(self, question: Question[A], form: Form, seed: int, budget: int) -> Reply[A]:
        constrained = form.constrained
        received = await self._server.send(self._requests.body(question, form, seed, budget, constrained))
        if constrained and is_about_format(received.status, received.said):
            refused = received.said
            body = self._requests.body(question, form, seed, budget, constrained=False)
            received = await self._server.send(body)
            if received.is_good and form.constrained:
                form.constrained = False
                _log.warning("%s does not constrain %s", self._server.where, question.answer.__name__)
                _log.debug("%s said: %s", self._server.where, refused)  # it may repeat the prompt
        return self._reply(question, form.budgets[0], received)

    def _reply(self, question: Question[A], budget: int, received: Received) -> Reply[A]:
        if received.is_good:
            return self._read(question, budget, received)
        said, seconds = received.said, received.seconds
        if received.failure is not None:
            return Reply(reason=received.failure, text=said, seconds=seconds)
        if received.is_transient:
            return Reply(reason="judge_unavailable", text=said, seconds=seconds)
        known = fatal(received.status, said)
        if known is None and not self._has_answered:
            known = refused_parameter(received.status, said)
        if known is not None:
            line = known.line(self._server, self._config.model, received)
            raise JudgeError(line, known.trouble)
        return Reply(reason=reason_of(received.status, said), text=said, seconds=seconds)

    def _read(self, question: Question[A], budget: int, received: Received) -> Reply[A]:
        try:
            found = completion(received.body)
        except BrokenReply as error:
            return Reply(reason="judge_unparseable", text=str(error), seconds=received.seconds)
        self._has_answered = True
        limit = self._config.max_context
        if limit is not None and found.usage.prompt_tokens + budget > limit:
            return Reply(reason="context_overflow", usage=found.usage, seconds=received.seconds)
        return read_reply(
            question, found.text, found.finish_reason, found.usage, received.seconds, found.refusal
        )


def _changed(config: OpenAIConfig) -> str:
    """What the configuration changes in every request, for the key: nothing where it changes nothing."""
    added = msgspec.json.encode(config.request, order="sorted").decode() if config.request else ""
    omitted = ",".join(sorted(config.omit))
    return f"{f' request={added}' if added else ''}{f' omit={omitted}' if omitted else ''}"
