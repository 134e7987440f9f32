"""A chat-completions server that answers from the request alone: quick, deterministic, and failing on demand.

In a test: `async with MockOpenAI(...) as mock:` and then `mock.url`. As a separate process, for benchmarks:
`python -m tests.mock_openai --port 8000 --latency 0.2`. `GET /stats` gives calls and the peak of concurrency,
`DELETE /stats` resets them.

The answer is a JSON value of the request's schema, chosen by a hash of its messages: equal questions get equal answers,
in any order. `fault` or the path, `http://HOST:PORT/FAULT/v1` (see `FAULTS`), chooses how it fails.
"""

import argparse
import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

Fault = Callable[["MockOpenAI", "Call"], Awaitable[web.StreamResponse | None]]


class _JsonSchema(msgspec.Struct, frozen=True):
    schema: msgspec.Raw = msgspec.Raw(b'{"type":"null"}')


class _ResponseFormat(msgspec.Struct):
    json_schema: _JsonSchema = _JsonSchema()


class _Request(msgspec.Struct):
    messages: msgspec.Raw
    model: str = ""
    max_tokens: int = 0
    response_format: _ResponseFormat | None = None


_REQUEST = msgspec.json.Decoder(_Request)
_schemas: dict[bytes, Any] = {}


class Call:
    """One request: its parts, the hash of its messages, and how often that hash was seen before."""

    def __init__(self, http: web.BaseRequest, body: bytes, seen: Counter[bytes]) -> None:
        request = _REQUEST.decode(body)
        self.http = http
        self.body = body
        self.constrained = request.response_format is not None
        self.schema = bytes(request.response_format.json_schema.schema) if request.response_format else b""
        self.messages = bytes(request.messages)
        self.model = request.model
        self.max_tokens = request.max_tokens
        self.hash = hashlib.blake2b(self.messages, digest_size=32).digest()
        self.is_probe = b'"heron"' in self.schema or b"test of the connection" in self.messages
        self.before = seen[self.hash]
        seen[self.hash] += 1

    def answer(self) -> str:
        """A JSON text of the schema; `{}` without one."""
        if not self.schema:
            return "{}"
        schema = _schemas.get(self.schema)
        if schema is None:
            schema = _schemas[self.schema] = msgspec.json.decode(self.schema)
        return msgspec.json.encode(valid(schema, self.hash)).decode()


def valid(schema: dict[str, Any], seed: bytes, place: int = 0) -> Any:
    """A value of `schema`, chosen by `seed`."""
    chosen = seed[place % len(seed)]
    if "enum" in schema:
        return schema["enum"][chosen % len(schema["enum"])]
    if "anyOf" in schema:
        return valid(schema["anyOf"][chosen % len(schema["anyOf"])], seed, place + 1)
    match schema["type"]:
        case "object":
            return {
                name: valid(kind, seed, place + number)
                for number, (name, kind) in enumerate(schema["properties"].items())
            }
        case "array":
            low, high = schema.get("minItems", 0), schema["maxItems"]
            return [valid(schema["items"], seed, place + i) for i in range(low + chosen % (high - low + 1))]
        case "string":
            return f"because {seed.hex()}"[: schema["maxLength"]]
        case "boolean":
            return chosen % 2 == 0
    return None


def completion(
    text: str | None, finish_reason: str = "stop", tokens: int = 100, model: str = "mock", **message: Any
) -> web.Response:
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {
            "prompt_tokens": tokens,
            "completion_tokens": 20,
            "total_tokens": tokens + 20,
            "prompt_tokens_details": {"cached_tokens": tokens // 2},
        },
    }
    return raw(msgspec.json.encode(body))


def sure(call: "Call") -> web.Response:
    """The answer, a letter a token, and no other letter at all likely."""
    told = msgspec.json.decode(completion(call.answer(), model=call.model).body)
    letters = ({"token": letter, "logprob": 0.0} for letter in call.answer())
    told["choices"][0]["logprobs"] = {"content": [{**one, "top_logprobs": [one]} for one in letters]}
    return raw(msgspec.json.encode(told))


def raw(
    body: bytes, status: int = 200, content_type: str = "application/json", **headers: str
) -> web.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(body=body, status=status, content_type=content_type, headers=named)


def refused(status: int, message: str, **headers: str) -> web.Response:
    return raw(msgspec.json.encode({"error": {"message": message, "code": status}}), status, **headers)


class MockOpenAI:
    """The server. `latency` is in seconds; `together` holds every reply back until that many requests are open.

    `serves` is the one model that it lists, with `window`; without it there is no list, and any model is answered for.
    Probes are answered at once and counted apart, in `probes`. A response from `fault` replaces the server's own.
    Afterwards `calls` is the number of requests, `peak` the largest
    number open at once, and `bodies` and `headers` are those of the last requests.
    """

    def __init__(
        self,
        latency: float = 0.0,
        fault: Fault | None = None,
        together: int = 0,
        serves: str = "",
        window: int = 32_768,
    ) -> None:
        self.serves = serves
        self.window = window
        self.latency = latency
        self.fault = fault
        self.together = together
        self.calls = 0
        self.probes = 0
        self.open = 0
        self.peak = 0
        self.last: Call | None = None
        self.seen: Counter[bytes] = Counter()
        self.url = ""
        self._gathered = asyncio.Event()

    async def __aenter__(self) -> "MockOpenAI":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, backlog=4096)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://{host}:{port}/v1"

    async def stop(self) -> None:
        await self._runner.cleanup()
        await asyncio.sleep(0.01)  # what was being accepted meanwhile
        await self._server.shutdown(0.0)

    def at(self, fault: str) -> str:
        """The URL under which this server fails so."""
        return self.url.replace("/v1", f"/{fault}/v1")

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        if http.path == "/stats":
            if http.method == "DELETE":
                self.calls = self.peak = 0
            return raw(msgspec.json.encode({"calls": self.calls, "peak": self.peak}))
        if http.path.endswith("/v1/models") and self.serves:
            listed = {"id": self.serves, "object": "model", "max_model_len": self.window}
            return raw(msgspec.json.encode({"object": "list", "data": [listed]}))
        if not http.path.endswith("/v1/chat/completions") or http.method != "POST":
            return refused(404, "no such path")
        call = Call(http, await http.content.read(), self.seen)
        self.last = call
        if call.is_probe:
            self.probes += 1
            return await self._reply(call)
        self.calls += 1
        self.open += 1
        self.peak = max(self.peak, self.open)
        try:
            return await self._answer(call)
        finally:
            self.open -= 1

    async def _answer(self, call: Call) -> web.StreamResponse:
        if self.together:
            if self.open >= self.together:
                self._gathered.set()
            await self._gathered.wait()
        if self.latency:
            await asyncio.sleep(self.latency)
        return await self._reply(call)

    async def _reply(self, call: Call) -> web.StreamResponse:
        name = call.http.path.removesuffix("/v1/chat/completions").strip("/")
        fault = FAULTS[name] if name else self.fault
        response = None if fault is None else await fault(self, call)
        return completion(call.answer(), model=self.serves or call.model) if response is None else response


def replying(response: Callable[[], web.Response]) -> Fault:
    """A fault that always gives `response`."""

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse:
        return response()

    return fault


def first(response: Callable[[], web.Response], times: int = 1) -> Fault:
    """A fault that gives `response` to the first `times` of equal requests."""

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        return response() if call.before < times else None

    return fault


async def _drop(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    if call.before == 0:
        assert call.http.transport is not None
        call.http.transport.abort()
    return None


async def _cut(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    """Send half a body to the first of equal requests."""
    if call.before:
        return None
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(call.http)
    await response.write(b'{"choices": [')
    assert call.http.transport is not None
    call.http.transport.close()
    return response


async def _slow(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    await asyncio.sleep(3600)
    return None


async def _unconstrained(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    return refused(400, "response_format is not supported here") if call.constrained else None


async def _prose(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    return completion(f"<think>Say {{this}}?</think>Here you are:\n```json\n{call.answer()}\n```")


async def _provoked(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    """Refuse whatever says PROVOKE."""
    return completion(None, refusal="I would rather not.") if b"PROVOKE" in call.messages else None


async def _missing(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    return refused(404, f"The model `{call.model}` does not exist.")


async def _small(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    """Have a window of 512 tokens, 20 of them for the prompt."""
    if 20 + call.max_tokens > 512:
        said = f"'max_tokens' is too large: {call.max_tokens}. This model's maximum context length is 512 tokens."
        return refused(400, said)
    return None


async def _loose(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    """Answer in the form that the prompt shows, for it does not look at the schema."""
    return completion('{"ready": "yes"}')


NO_MAX_TOKENS = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
NO_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0. Only the default (1) value is supported."
)

FAULTS: dict[str, Fault] = {
    "busy": first(lambda: refused(429, "slow down", Retry_After="1")),
    "flapping": first(lambda: refused(500, "try again")),
    "down": replying(lambda: refused(503, "gone fishing")),
    "truncated": replying(lambda: completion('{"analysis": "and so on', "length")),
    "refusal": replying(lambda: completion(None, refusal="I would rather not.")),
    "filtered": replying(lambda: completion(None, "content_filter")),
    "provoked": _provoked,
    "garbage": replying(lambda: completion("What a fine report!")),
    "drop": _drop,
    "cut": _cut,
    "slow": _slow,
    "unconstrained": _unconstrained,
    "prose": _prose,
    "thinks": replying(lambda: completion(None, "length", reasoning_content="Let me see. " * 20)),
    "thinks-silently": replying(lambda: completion(None, "length")),
    "thinks-aloud": replying(lambda: completion("<think>Let me see. ", "length")),
    "rambles": replying(lambda: completion("What a fine report, I must say, and", "length")),
    "loose": _loose,
    "missing-model": _missing,
    "small-window": _small,
    "no-max-tokens": replying(lambda: refused(400, NO_MAX_TOKENS)),
    "no-temperature": replying(lambda: refused(400, NO_TEMPERATURE)),
}


async def _serve(port: int, latency: float) -> None:
    mock = MockOpenAI(latency)
    await mock.start(port=port)
    print(mock.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.port, arguments.latency))
