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
any other 4xx                          judge_unsupported, its text what the server said
200 without a chat completion          judge_unparseable
cut off at its token limit             asked again as it was; answer_truncated if cut off again
=====================================  ===============================================================
"""

import asyncio
import io
import logging
import os
import random
import re
import time
from functools import cached_property
from typing import TypeVar

import aiohttp
import msgspec
from yarl import URL

from adjudge.judges.completions import BrokenReply, Form, Requests, complaint, completion, retry_after
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import Asked, JudgeIdentity, JudgeReason, Reply
from adjudge.judges.question import Answer, Question
from adjudge.judges.reply import read_reply
from adjudge.judges.slots import Slots
from adjudge.prompts import PromptBook

__all__ = ["OpenAIConfig", "OpenAIJudge"]

A = TypeVar("A", bound=Answer)

MAX_BODY_BYTES = 8_000_000
MAX_WAIT_S = 60.0
MAX_BACKOFF_S = 30.0
THINKING_TOKENS = 16_384
_LARGE_BODY = 1 << 20  # above it aiohttp wants a file, which it sends in pieces
_TRANSIENT = frozenset({408, 425, 429})
_CONTEXT = re.compile(
    r"context.?(length|window|size)|maximum (input|sequence|model) length|(input|prompt) is too long"
    r"|too many tokens|max_tokens must be at least|inputs.{1,3}tokens.{1,40}must be",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"response.?format|json.?schema|structured.?output|guided.?(json|decoding)|grammar", re.IGNORECASE
)
_FILTERED = re.compile(r"content.?(filter|policy|management policy)", re.IGNORECASE)
_FIXES = {
    401: "set the environment variable KEY to a key that it accepts",
    402: "add credit to its account",
    403: "the key in the environment variable KEY may not use this model",
    404: "check the model's name, and that the URL is the part before /chat/completions, mostly ending in /v1",
    405: "check that the URL is the part before /chat/completions, mostly ending in /v1",
}
_log = logging.getLogger(__name__)


class OpenAIConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One server and one model on it.

    - `url` is the API's base, like `http://127.0.0.1:8000/v1`.
    - `api_key_env` names the environment variable that holds the key; without it, no authorisation is sent.
    - `revision` and `quantization` tell apart models of the same name.
    - `max_in_flight` requests are open at once.
    - `connect_timeout_s` bounds connecting, `timeout_s` a request from sending to the last byte. Waiting for
      a slot counts in neither.
    - `retries` follow a failed attempt, after random waits of up to `backoff_s`, doubled each time.
    - `thinking` is for models that think before they answer: they get tokens for it, and no `analysis` field.
    - `max_context` is the most tokens that prompt and answer may need, if less than the server's own limit.
    - `media` are the kinds (image, audio, video) that the model takes.
    """

    url: str
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    revision: str = ""
    quantization: str = ""
    max_in_flight: int = 256
    connect_timeout_s: float = 10.0
    timeout_s: float = 600.0
    retries: int = 5
    backoff_s: float = 0.5
    temperature: float = 0.0
    thinking: bool = False
    max_context: int | None = None
    media: tuple[str, ...] = ()


class _Received(msgspec.Struct, frozen=True):
    """The result of one request: a status and a body (None: too large), or no status and a `failure`."""

    seconds: float
    status: int = 0
    body: bytes | None = b""
    retry_after: str | None = None
    failure: JudgeReason | None = None

    @property
    def is_transient(self) -> bool:
        return self.failure == "judge_unavailable" or self.status in _TRANSIENT or self.status >= 500

    @property
    def said(self) -> str:
        return complaint(self.body or b"")

    @property
    def is_about_format(self) -> bool:
        if self.status not in (400, 422):
            return False
        said = self.said
        return bool(_FORMAT.search(said)) and not _CONTEXT.search(said)


class OpenAIJudge:
    """Asks one server, over one HTTP client, at most `max_in_flight` questions at a time.

    Raises JudgeError for a configuration or a server that cannot work for any question.
    """

    def __init__(self, config: OpenAIConfig, book: PromptBook, secret: bytes) -> None:
        thinking_tokens = THINKING_TOKENS if config.thinking else 0
        told = {"revision": config.revision, "quantization": config.quantization}
        self.identity = JudgeIdentity(
            name=config.model,
            fingerprint=config.model + "".join(f" {key}={value}" for key, value in told.items() if value),
            sampling=f"temperature={config.temperature:g} thinking={thinking_tokens}",
            analysis=not config.thinking,
        )
        self._config = config
        self._url = _endpoint(config.url)
        self._key = _api_key(config.api_key_env)
        self._slots = Slots(config.max_in_flight)
        self._requests = Requests(
            book, secret, model=config.model, temperature=config.temperature, thinking_tokens=thinking_tokens
        )

    @cached_property
    def _client(self) -> aiohttp.ClientSession:
        """The client, made inside the event loop that asks first."""
        config = self._config
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "adjudge"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=config.max_in_flight, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(total=config.timeout_s, sock_connect=config.connect_timeout_s),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Close the client's connections."""
        if "_client" in self.__dict__:
            await self._client.close()

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
        """One answer; if it was cut off, the answer to the identical request sent again."""
        reply = await self._ask(question, seed)
        if reply.reason != "answer_truncated":
            return reply
        again = await self._ask(question, seed)
        return msgspec.structs.replace(again, usage=reply.usage + again.usage)

    async def _ask(self, question: Question[A], seed: int) -> Reply[A]:
        form = self._requests.form(question)
        constrained = form.constrained
        received = await self._send(self._requests.body(question, form, seed, constrained))
        if constrained and received.is_about_format:
            refused = received.said
            received = await self._send(self._requests.body(question, form, seed, constrained=False))
            if received.status == 200 and form.constrained:
                form.constrained = False
                _log.warning("%s does not constrain %s", self._url, question.answer.__name__)
                _log.debug("%s said: %s", self._url, refused)  # it may repeat the prompt
        return self._reply(question, form, received)

    async def _send(self, body: bytes) -> _Received:
        """The server's final reply; transient failures are retried after a wait."""
        for attempt in range(self._config.retries):
            received = await self._post(body)
            if not received.is_transient:
                return received
            await asyncio.sleep(self._wait(received.retry_after, attempt))
        return await self._post(body)

    def _wait(self, header: str | None, attempt: int) -> float:
        """Seconds before the next attempt: full jitter, on top of what the server asks for."""
        spread = random.uniform(0.0, min(MAX_BACKOFF_S, self._config.backoff_s * 2**attempt))
        asked_for = retry_after(header, time.time())
        return spread if asked_for is None else min(MAX_WAIT_S, asked_for) + spread

    async def _post(self, body: bytes) -> _Received:
        data = body if len(body) < _LARGE_BODY else io.BytesIO(body)
        started = time.perf_counter()
        try:
            async with self._client.post(self._url, data=data, allow_redirects=False) as response:
                content = await _bounded(response)
                seconds = time.perf_counter() - started
                if response.status == 200:
                    return _Received(seconds, 200, content)
                return _Received(
                    seconds, response.status, self._redacted(content), response.headers.get("Retry-After")
                )
        except (aiohttp.ClientError, OSError) as error:
            sent = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError)
            return _Received(
                time.perf_counter() - started,
                body=f"{type(error).__name__}: {error}".encode("utf-8", "replace"),
                failure="judge_timeout" if sent else "judge_unavailable",
            )

    def _redacted(self, content: bytes | None) -> bytes | None:
        """`content` without the API key, which some servers repeat when they refuse it."""
        return content.replace(self._key.encode(), b"***") if content and self._key else content

    def _reply(self, question: Question[A], form: Form, received: _Received) -> Reply[A]:
        if 200 <= received.status < 300:
            return self._read(question, form, received)
        if received.status in _FIXES or 300 <= received.status < 400:
            raise self._fatal(received)
        return Reply(reason=_reason(received), text=received.said, seconds=received.seconds)

    def _read(self, question: Question[A], form: Form, received: _Received) -> Reply[A]:
        try:
            found = completion(received.body)
        except BrokenReply as error:
            return Reply(reason="judge_unparseable", text=str(error), seconds=received.seconds)
        limit = self._config.max_context
        if limit is not None and found.usage.prompt_tokens + form.max_tokens > limit:
            return Reply(reason="context_overflow", usage=found.usage, seconds=received.seconds)
        return read_reply(
            question, found.text, found.finish_reason, found.usage, received.seconds, found.refusal
        )

    def _fatal(self, received: _Received) -> JudgeError:
        known = _FIXES.get(received.status, "check that the URL is that of an OpenAI-compatible API")
        fix = known.replace("KEY", self._config.api_key_env)
        said = " ".join(received.said.split())[:300]
        return JudgeError(
            f"{self._url}, model {self._config.model}: status {received.status} ({said}); {fix}"
        )


def _reason(received: _Received) -> JudgeReason:
    """Why a question that failed without stopping the run is unscored."""
    if received.failure is not None:
        return received.failure
    if received.is_transient:
        return "judge_unavailable"
    said = received.said
    if received.status == 413 or _CONTEXT.search(said):
        return "context_overflow"
    return "judge_refused" if _FILTERED.search(said) else "judge_unsupported"


async def _bounded(response: aiohttp.ClientResponse) -> bytes | None:
    """The body, or None as soon as it is too large."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _endpoint(base: str) -> URL:
    try:
        url = URL(base)
    except ValueError as error:
        raise JudgeError(f"judge url {base!r}: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise JudgeError(f"judge url {base!r}: must look like http://127.0.0.1:8000/v1")
    if url.user or url.password:
        raise JudgeError(
            f"judge url on {url.host}: remove the credentials and put the key into the environment"
        )
    return (url / "chat" / "completions").with_query(url.query)


def _api_key(variable: str) -> str:
    """The key in the environment; empty if there is none."""
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise JudgeError(f"environment variable {variable}: contains characters that are invalid in a key")
    return key
