"""One OpenAI-compatible server over HTTP: requests out, replies in, and no secret in anything that is said of it."""

import asyncio
import os
import random
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from yarl import URL

from adjudge.judges.completions import Model, complaint, models, retry_after
from adjudge.judges.connections import ConnectionFailed, Connections
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import JudgeReason
from adjudge.judges.options import KEY_VARIABLE, THINKING_TOKENS, Omitted
from adjudge.judges.text import Redaction, shown_url

__all__ = [
    "MAX_BODY_BYTES",
    "OpenAIConfig",
    "Received",
    "Server",
]

MAX_BODY_BYTES = 8_000_000
MAX_WAIT_S = 60.0
MAX_BACKOFF_S = 30.0
_TRANSIENT = frozenset({408, 425, 429})


class OpenAIConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One server and one model on it.

    - `url` is the API's base, like `http://127.0.0.1:8000/v1`.
    - `api_key_env` names the environment variable that holds the key; without it, no authorisation is sent.
    - `revision` and `quantization` tell apart models of the same name.
    - `max_in_flight` requests are open at once.
    - `connect_timeout_s` bounds connecting, `timeout_s` a request from sending to the last byte. Waiting for
      a slot counts in neither.
    - `retries` follow a failed attempt, after random waits of up to `backoff_s`, doubled each time.
    - `thinking` is for models that think before they answer: they get `thinking_tokens` for it, twice as many if a
      reply is cut off, and no `analysis` field.
    - `max_context` is the most tokens that prompt and answer may need, if less than the server's own limit.
    - `media` are the kinds (image, audio, video) that the model takes.
    - `request` is added to every request, and what `omit` names is left out.
    - With `free_text`, the probe asks for no schema: what is asked in a benchmark's own words has none.
    """

    url: str
    model: str
    api_key_env: str = KEY_VARIABLE
    revision: str = ""
    quantization: str = ""
    max_in_flight: int = 256
    connect_timeout_s: float = 10.0
    timeout_s: float = 600.0
    retries: int = 5
    backoff_s: float = 0.5
    temperature: float = 0.0
    thinking: bool = False
    thinking_tokens: int = THINKING_TOKENS
    max_context: int | None = None
    media: tuple[str, ...] = ()
    request: Mapping[str, Any] = {}
    omit: tuple[Omitted, ...] = ()
    free_text: bool = False


class Received(msgspec.Struct, frozen=True):
    """The result of one request: a status and a body (None: too large), or no status and a `failure`.

    `said` is what the server, or the connection, says of a failure; without secrets.
    """

    seconds: float
    status: int = 0
    body: bytes | None = b""
    said: str = ""
    retry_after: str | None = None
    failure: JudgeReason | None = None

    @property
    def is_good(self) -> bool:
        """Whether the body is a reply."""
        return 200 <= self.status < 300

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.failure == "judge_unavailable" or self.status in _TRANSIENT or self.status >= 500


class Server:
    """The server of `config`. `where` names it in messages, `key_name` the environment variable of its key.

    Raises JudgeError for a URL or a key that cannot be used.
    """

    def __init__(self, config: OpenAIConfig) -> None:
        self.where = shown_url(config.url)
        self.key_name = config.api_key_env
        self.url = _endpoint(config.url, self.where)
        self._key = _api_key(config.api_key_env)
        self._config = config
        self.redacted = Redaction(self._key, (self.url.query_string, *self.url.query.values()))
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "adjudge"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._connections = Connections(
            self.url,
            headers,
            connect_timeout_s=config.connect_timeout_s,
            timeout_s=config.timeout_s,
            max_body_bytes=MAX_BODY_BYTES,
        )

    @property
    def lacks_key(self) -> bool:
        """Whether a variable was named for the key, and is not set."""
        return not self._key and self.key_name != KEY_VARIABLE

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()

    async def send(self, body: bytes, retries: int | None = None) -> Received:
        """The server's final reply; transient failures are retried after a wait (None: as often as configured)."""
        for attempt in range(self._config.retries if retries is None else retries):
            received = await self._request("POST", self.url, body)
            if not received.is_transient:
                return received
            await asyncio.sleep(self._wait(received.retry_after, attempt))
        return await self._request("POST", self.url, body)

    async def models(self) -> list[Model]:
        """The models that the server lists; empty if it does not."""
        received = await self._request("GET", self.url.parent.parent / "models")
        return models(received.body) if received.is_good else []

    def _wait(self, header: str | None, attempt: int) -> float:
        """Seconds before the next attempt: full jitter, on top of what the server asks for."""
        spread = random.uniform(0.0, min(MAX_BACKOFF_S, self._config.backoff_s * 2**attempt))
        asked_for = retry_after(header, time.time())
        return spread if asked_for is None else min(MAX_WAIT_S, asked_for) + spread

    async def _request(self, method: str, url: URL, body: bytes | None = None) -> Received:
        started = time.perf_counter()
        try:
            response = await self._connections.request(method, url.raw_path_qs, body)
        except TimeoutError:
            said = f"no answer within {self._config.timeout_s:g} s"
            return Received(time.perf_counter() - started, said=said, failure="judge_timeout")
        except ConnectionFailed as error:
            said = self.redacted(str(error))
            return Received(time.perf_counter() - started, said=said, failure="judge_unavailable")
        seconds = time.perf_counter() - started
        if 200 <= response.status < 300:
            return Received(seconds, response.status, response.body and self.redacted.body(response.body))
        said = complaint(response.body or b"", self.redacted)
        return Received(seconds, response.status, said=said, retry_after=response.retry_after)


def _endpoint(base: str, shown: str) -> URL:
    try:
        url = URL(base)
        port = url.port  # read here, where an invalid one raises
    except ValueError:
        raise JudgeError(
            f"judge url {shown!r}: invalid; it must look like http://127.0.0.1:8000/v1"
        ) from None
    if url.scheme not in ("http", "https") or not url.host or port is None:
        raise JudgeError(f"judge url {shown!r}: must look like http://127.0.0.1:8000/v1")
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
