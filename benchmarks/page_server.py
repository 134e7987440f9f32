"""An HTTP server of `benchmarks.pages` in its own process, as cheap as Python allows."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.beside import said_by, serve
from benchmarks.pages import documents


class _Connection(asyncio.Protocol):
    def __init__(self, responses: dict[bytes, bytes]) -> None:
        self._responses = responses
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._buffer = (self._buffer + data).split(b"\r\n\r\n")
        for request in requests:
            target = request.split(b" ", 2)[1].partition(b"?")[0]
            self._transport.write(self._responses[target])


def _responses(count: int) -> dict[bytes, bytes]:
    return {
        document.path.encode(): b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(document.body), document.body)
        for document in documents(count)
    }


@contextmanager
def page_server(count: int) -> Iterator[str]:
    """HOST:PORT of a server of `count` documents, for as long as the block runs."""
    with said_by("benchmarks.page_server", str(count)) as port:
        yield f"127.0.0.1:{int(port)}"


if __name__ == "__main__":
    asyncio.run(serve(partial(_Connection, _responses(int(sys.argv[1])))))
