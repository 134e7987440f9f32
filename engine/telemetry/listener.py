"""An HTTP server of this process: bound to an address, and served until a signal ends it."""

import asyncio
import logging
import os
import signal
import sys
import threading
from contextlib import AbstractAsyncContextManager, suppress

import msgspec
from aiohttp import http, web

from adjudge.engine.errors import UsageError
from adjudge.engine.telemetry.waiting import Waiting

__all__ = ["listen", "serve_until_signal"]


async def listen(runner: web.BaseRunner, key: str, host: str, port: int, backlog: int = 128) -> str:
    """Bind `runner` to an address, port 0 to any free port; the URL, without a path.

    Raises UsageError, which begins with `key`, if the address cannot be bound; `runner` is cleaned up then.
    """
    logging.getLogger("aiohttp.server").addFilter(_without_request)
    await runner.setup()
    try:
        await _Site(runner, host, port, backlog=backlog).start()
    except OSError as error:
        await runner.cleanup()
        raise UsageError(f"{key}: {host} port {port} cannot be bound: {error.strerror}") from error
    return f"http://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}"


class _Site(web.BaseSite):
    """A TCP address whose connections do not wait for ever with half a request."""

    def __init__(self, runner: web.BaseRunner, host: str, port: int, *, backlog: int) -> None:
        super().__init__(runner, backlog=backlog)
        self._host, self._port = host, port
        assert runner.server is not None
        self._waiting = Waiting(runner.server)

    @property
    def name(self) -> str:
        """The address."""
        return f"{self._host} {self._port}"

    async def start(self) -> None:
        """Listen."""
        await super().start()
        self._server = await asyncio.get_running_loop().create_server(
            self._waiting.protocol, self._host, self._port, backlog=self._backlog
        )

    async def stop(self) -> None:
        """Accept nothing more."""
        self._waiting.stop()
        await super().stop()


async def serve_until_signal(
    server: AbstractAsyncContextManager[str], json: bool, with_stdin: bool = False
) -> None:
    """Open `server`, print its URL, and close it at SIGTERM or SIGINT, or when standard input ends if `with_stdin`.

    The URL is printed as it is, or as a JSON document {"url": ...} if `json`.
    """
    stop = asyncio.Event()
    if with_stdin:
        threading.Thread(target=_at_end, args=(asyncio.get_running_loop(), stop), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with server as url:
        sys.stdout.write(f"{msgspec.json.encode({'url': url}).decode() if json else url}\n")
        sys.stdout.flush()
        await stop.wait()


def _at_end(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Set `stop` when standard input has ended: the process that started this one is gone."""
    while os.read(0, 1 << 12):
        pass
    with suppress(RuntimeError):  # the loop has closed meanwhile
        loop.call_soon_threadsafe(stop.set)


def _without_request(record: logging.LogRecord) -> bool:
    """Shorten the record of a malformed request to one line: its error repeats headers, tokens included."""
    if record.exc_info and isinstance(record.exc_info[1], http.HttpProcessingError):
        record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
        record.msg, record.args = "a malformed HTTP request was refused", ()
    return True
