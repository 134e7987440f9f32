"""Work in an event loop that SIGINT and SIGTERM end soon, whatever it waits for."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

from adjudge.engine.commands.exits import INTERRUPTED, SAME_S
from adjudge.fetchers.flight import shared

T = TypeVar("T")
ENDS_S = 8.0
_log = logging.getLogger(__name__)


def interruptible(work: Coroutine[Any, Any, T], ends_s: float = ENDS_S) -> T:
    """The result of `work`, in its own event loop.

    A signal cancels `work`, which then has `ends_s` seconds to write what it has; a second signal, or the end of that
    time, ends the process with 130. Raises KeyboardInterrupt after a signal.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)
    ending = _Ending(ends_s)
    # SIGINT is ignored in what a script puts into the background; a run minds it there too.
    before = {number: signal.signal(number, ending.signalled) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return asyncio.run(ending.watched(work))
    except asyncio.CancelledError:
        if ending.since is None:
            raise
        raise KeyboardInterrupt(
            "answers so far are stored, and the same command continues from there"
        ) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        ending.over()


async def to_its_end(work: Coroutine[Any, Any, T], said: str) -> T:
    """The result of `work`, which a cancellation does not stop: it is logged with `said`."""
    task = asyncio.ensure_future(work)
    while True:
        try:
            return await shared(task)
        except asyncio.CancelledError:
            cancelled = asyncio.current_task()
            if task.cancelled() or cancelled is None:
                raise
            cancelled.uncancel()
            _log.warning("%s", said)


class _Ending:
    """The end of some work: `since` when it has been asked for, None while it has not."""

    def __init__(self, seconds: float) -> None:
        self.since: float | None = None
        self._seconds = seconds
        self._asked, self._over = threading.Event(), threading.Event()
        # Started here: the lock that starting takes may be held where a signal comes in.
        threading.Thread(target=self._time, name="ending", daemon=True).start()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    async def watched(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which a signal cancels."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self.since is not None:
            work.close()
            raise asyncio.CancelledError
        return await work

    def signalled(self, number: int, frame: FrameType | None) -> None:
        """Begin to end; end at once if that was asked for a while ago."""
        now = time.monotonic()
        if self.since is not None:
            if now - self.since > SAME_S:
                _exit()
            return
        self.since = now
        self._asked.set()
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    def over(self) -> None:
        """Let the process live: the work has ended."""
        self._over.set()
        self._asked.set()

    def _time(self) -> None:
        self._asked.wait()
        if not self._over.wait(self._seconds):
            _exit()


def _exit() -> None:
    os.write(
        2,
        b"adjudge: interrupted before everything was written; the same command continues from what is stored\n",
    )
    os._exit(INTERRUPTED)
