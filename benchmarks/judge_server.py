"""A chat-completions server in its own process, as cheap as Python allows, since its client shares the cores.

Every request is answered 200 ms after it came, a probe of the connection at once, with a valid value of its schema.
`GET /stats` gives calls and the most that were open at once, `DELETE /stats` resets them. `tests.mock_openai` is the
server that also fails.
"""

import asyncio
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from benchmarks.beside import said_by, serve
from tests.mock_openai import valid

__all__ = ["LATENCY", "judge_server"]

LATENCY = 0.2
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class _JsonSchema(msgspec.Struct):
    schema: msgspec.Raw


class _ResponseFormat(msgspec.Struct):
    json_schema: _JsonSchema


class _Request(msgspec.Struct):
    response_format: _ResponseFormat | None = None


_REQUEST = msgspec.json.Decoder(_Request)


class _Judge:
    """The answers, and what is counted of them."""

    def __init__(self) -> None:
        self.calls = self.open = self.peak = 0
        self._replies: dict[tuple[bytes, int], bytes] = {}

    def stats(self) -> bytes:
        return _ok(msgspec.json.encode({"calls": self.calls, "peak": self.peak}))

    def reset(self) -> None:
        self.calls = self.peak = 0

    def reply(self, body: bytes) -> bytes:
        """The response to `body`: one of 256, so that equal requests get equal answers."""
        form = _REQUEST.decode(body).response_format
        schema = b"" if form is None else bytes(form.json_schema.schema)
        key = schema, zlib.crc32(body) % 256
        if key not in self._replies:
            self._replies[key] = _ok(_completion(schema, bytes([key[1]]) * 32))
        return self._replies[key]


def _completion(schema: bytes, seed: bytes) -> bytes:
    answer = msgspec.json.encode(valid(msgspec.json.decode(schema), seed)) if schema else b"{}"
    message = {"role": "assistant", "content": answer.decode()}
    return msgspec.json.encode(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": "mock",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
    )


def _ok(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


class _Connection(asyncio.Protocol):
    """One client, which waits for a reply before it sends again."""

    def __init__(self, judge: _Judge) -> None:
        self._judge = judge
        self._received = bytearray()
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < self._needed:
            return
        end = self._received.find(_HEAD_END)
        if end < 0:
            return
        head = bytes(self._received[:end])
        body_from = end + len(_HEAD_END)
        _, _, length = head.lower().partition(_LENGTH)
        self._needed = body_from + int(length.partition(b"\r\n")[0] or 0)
        if len(self._received) < self._needed:
            return
        body = bytes(self._received[body_from : self._needed])
        del self._received[: self._needed]
        self._needed = 0
        self._answer(head.partition(b" HTTP/")[0], body)

    def _answer(self, request: bytes, body: bytes) -> None:
        match request:
            case b"POST /v1/chat/completions":
                self._complete(body)
            case b"GET /stats":
                self._transport.write(self._judge.stats())
            case b"DELETE /stats":
                self._judge.reset()
                self._transport.write(self._judge.stats())
            case _:
                self._transport.write(_NOT_FOUND)

    def _complete(self, body: bytes) -> None:
        reply = self._judge.reply(body)
        if b'"heron"' in body:  # the answer that a probe asks for
            self._transport.write(reply)
            return
        judge = self._judge
        judge.calls += 1
        judge.open += 1
        judge.peak = max(judge.peak, judge.open)
        asyncio.get_running_loop().call_later(LATENCY, self._reply, reply)

    def _reply(self, reply: bytes) -> None:
        self._judge.open -= 1
        self._transport.write(reply)


@contextmanager
def judge_server() -> Iterator[str]:
    """The server's URL, which ends in /v1, for as long as the block runs."""
    with said_by("benchmarks.judge_server") as port:
        yield f"http://127.0.0.1:{int(port)}/v1"


if __name__ == "__main__":
    asyncio.run(serve(partial(_Connection, _Judge())))
