"""Worker processes: how the parent sees them, the messages between, and what runs inside.

A frame is a big-endian 32-bit length and that much msgpack. Nothing that arrives is ever unpickled or run, in either
direction. A worker's first frame is empty: its imports are done, so no page's clock pays for them. Then the worker
answers jobs from stdin until stdin ends.

`Budget` is the time that all requests of a page may take together.
"""

import asyncio
import gc
import os
import resource
import signal
import struct
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from types import TracebackType
from typing import Any, BinaryIO, Generic, Literal, Protocol, TypeVar, cast

import msgspec


class Budget:
    """The seconds that all requests of a page may take together; waiting between them is free.

    `async with` it, a block runs on what is left, one block after the other. Raises TimeoutError when that is gone.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left = seconds

    async def __aenter__(self) -> None:
        self._started = asyncio.get_running_loop().time()
        self._expiry = asyncio.timeout(self._left)
        await self._expiry.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left = max(0.0, self._left - (asyncio.get_running_loop().time() - self._started))
        try:
            await self._expiry.__aexit__(kind, error, trace)
        except TimeoutError:
            raise TimeoutError(f"not received within {self._seconds:g} s") from None


Extractor = Literal["trafilatura", "fast"]

State = Literal["content", "wall", "missing", "teaser", "empty", "failed"]
"""What a page is that was received (`fetchers/signs.py`)."""

LENGTH = struct.Struct(">I")


class Extraction(msgspec.Struct, frozen=True, array_like=True):
    """The main text of a body and what a browser shows beside it, both plain; what the body is (`fetchers/signs.py`)
    by which sign, and the address it leads to, if any.
    """

    title: str
    description: str
    text: str
    state: State = "content"
    sign: str = ""
    onward: str = ""
    beside: str = ""


class Unreadable(ValueError):
    """The body is not a text we can read; the message says why."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """A body to be read, with its Content-Type header, for at most `seconds`."""

    body: bytes
    content_type: str
    seconds: float


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The extraction, or why there is none. `resident` is the worker's memory, in bytes."""

    found: Extraction | None
    problem: str
    resident: int


# Parsers need address space before they need memory; a text that blows up meets the first of the two.
ADDRESS_SPACE = 4 << 30
RETIRE_AT = 1 << 30
START_SECONDS = 60.0
AT_HAND = 8  # jobs: the event loop may be away for as long as they take
# A reader of untrusted text sees no API keys.
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "TMPDIR")
# glibc would give half a megabyte back to the system after each page and fetch it again for the next. These are as
# high as it raises the two by itself once it has seen large blocks.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}


class PoolError(RuntimeError):
    """Worker processes do not start: the installation is at fault, not a page or a report."""


class Weighed(Protocol):
    """An answer that says how many bytes of memory its worker holds."""

    @property
    def resident(self) -> int:
        """Bytes."""
        ...


A = TypeVar("A", bound=Weighed)


class _Owed(Generic[A]):
    """A job, the worker that it is given to, and the answer."""

    def __init__(self, job: bytes) -> None:
        loop = asyncio.get_running_loop()
        self.job = job
        self.given: asyncio.Future[_Worker[A]] = loop.create_future()
        self.answer: asyncio.Future[A] = loop.create_future()
        self.is_over = False

    def settle(self, answer: A | Exception) -> None:
        """Have an answer, or why there is none, for whoever still waits for it."""
        self.is_over = True
        if self.answer.done():
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
            self.answer.exception()  # a job that was given up does not look at it
        else:
            self.answer.set_result(answer)


class WorkerPool(Generic[A]):
    """At most `workers` processes, started when first needed, each answering one job at a time.

    A worker that has answered gets the next job before the event loop does anything else, and one that is alone has the
    next few at hand before: it is not idle because the loop is busy. One that exceeds its time on a job is killed, one
    that died or grew beyond 1 GiB is replaced; what it had at hand goes to another.
    """

    def __init__(self, workers: int, answer: type[A], module: str, *arguments: str) -> None:
        self._start = (module, *arguments)
        self._decoder = msgspec.msgpack.Decoder(answer)
        self._most = workers
        self._at_hand = AT_HAND if workers == 1 else 1  # with several, a job would wait behind a slow one
        self._waiting: deque[_Owed[A]] = deque()
        self._idle: deque[_Owed[A]] = deque()  # what waits until nothing else does
        self._all: set[_Worker[A]] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # that start and end workers
        self._starting = 0

    async def answer(self, job: bytes, budget: Budget, when_idle: bool = False) -> A | None:
        """A worker's answer, or None if it died. The budget is spent while a worker has the job.

        A worker takes a job `when_idle` if no other is waiting. Raises TimeoutError, PoolError.
        """
        owed: _Owed[A] = _Owed(job)
        (self._idle if when_idle else self._waiting).append(owed)
        self._hand_out()
        worker = None
        try:
            worker = await owed.given
            async with budget:
                return await owed.answer
        except TimeoutError:
            raise
        except (EOFError, OSError, msgspec.MsgspecError):
            return None
        finally:
            if worker is None and owed.given.done() and not owed.given.cancelled():
                worker = None if owed.given.exception() else owed.given.result()
            if worker is not None and not owed.is_over:
                self._leave(worker)
                self._hand_out()
                await worker.kill()

    async def close(self) -> None:
        """End every worker."""
        workers, self._all = self._all, set()
        for owed in (*self._all_waiting(), *chain.from_iterable(one.owed for one in workers)):
            if not owed.given.done():
                owed.given.set_exception(EOFError())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(worker.kill() for worker in workers))
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hand_out(self) -> None:
        """Give waiting jobs to workers that have room, and start as many workers as are lacking."""
        while waiting := self._waiting or self._idle:
            worker = min(self._all, key=lambda one: len(one.owed), default=None)
            if waiting[0].given.done():  # it was given up
                waiting.popleft()
            elif worker is None or len(worker.owed) >= self._at_hand:
                break
            else:
                worker.give(waiting.popleft())
        free = self._most - len(self._all) - self._starting
        for _ in range(min(free, len(self._waiting) + len(self._idle) - self._starting)):
            self._starting += 1
            self._do(self._grow())

    def _all_waiting(self) -> list[_Owed[A]]:
        """What waits, which now does no longer."""
        waiting = [*self._waiting, *self._idle]
        self._waiting.clear()
        self._idle.clear()
        return waiting

    def _leave(self, worker: "_Worker[A]") -> None:
        """Let no job go to `worker` any more; what it had at hand, and has not begun, goes to another."""
        self._all.discard(worker)
        self._waiting.extendleft(reversed([one for one in worker.owed if not one.given.done()]))
        worker.owed.clear()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _grow(self) -> None:
        """Start a worker. If that fails, it fails for all that wait."""
        failure: PoolError | None = None
        try:
            worker = await _Worker.start(self._settled, *self._start)
        except PoolError as error:
            failure = error
        finally:
            self._starting -= 1
        if failure is None:
            self._all.add(worker)
        else:
            for owed in self._all_waiting():
                if not owed.given.done():
                    owed.given.set_exception(failure)
        self._hand_out()

    def _settled(self, worker: "_Worker[A]", owed: _Owed[A] | None, answer: memoryview | None) -> None:
        """Take the answer to what a worker owed, None where it died, and give it the next job."""
        resident = RETIRE_AT
        if answer is not None and owed is not None:
            try:
                found = self._decoder.decode(answer)
            except msgspec.MsgspecError as error:
                owed.settle(error)
            else:
                owed.settle(found)
                resident = found.resident
        elif owed is not None:
            owed.settle(EOFError())
        if worker not in self._all:  # it is being ended
            return
        if resident >= RETIRE_AT:
            self._leave(worker)
            self._do(worker.kill())
        self._hand_out()


_Settled = Callable[["_Worker[A]", _Owed[A] | None, memoryview | None], None]


class _Worker(asyncio.SubprocessProtocol, Generic[A]):
    """A process and what it owes, if anything. It has no stream and no task: a page is too short to pay for them."""

    _transport: asyncio.SubprocessTransport
    _stdin: asyncio.WriteTransport

    def __init__(self, settled: _Settled[A]) -> None:
        self._settled = settled
        self._received = bytearray()
        self.owed: deque[_Owed[A]] = deque()  # the first is at work
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()

    @classmethod
    async def start(cls, settled: _Settled[A], module: str, *arguments: str) -> "_Worker[A]":
        """`python -m module arguments`, once its imports are done. Raises PoolError."""
        transport, worker = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(settled),
            *(sys.executable, "-P", "-m", module, *arguments),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ} | _MALLOC,
        )
        worker._transport = transport
        worker._stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
        try:
            async with asyncio.timeout(START_SECONDS):
                await worker._ready
        except (EOFError, OSError) as error:  # TimeoutError is an OSError
            await worker.kill()
            raise PoolError(
                "worker processes for pages and reports do not start; run `adjudge doctor`"
            ) from error
        except asyncio.CancelledError:
            await worker.kill()
            raise
        return worker

    def give(self, owed: _Owed[A]) -> None:
        """Have it answer this job once it has answered the others."""
        self.owed.append(owed)
        self._begin()
        self._stdin.write(LENGTH.pack(len(owed.job)) + owed.job)

    def _begin(self) -> None:
        if self.owed and not self.owed[0].given.done():
            self.owed[0].given.set_result(self)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take every frame that is whole."""
        self._received += data
        while len(self._received) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            frame, self._received = self._received[:end], self._received[end:]
            if not self._ready.done():
                self._ready.set_result(None)
                continue
            owed = self.owed.popleft() if self.owed else None
            self._begin()
            self._settled(self, owed, memoryview(frame)[LENGTH.size :])

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Fail what is at work."""
        if not self._ready.done():
            self._ready.set_exception(EOFError())
            self._ready.exception()  # a start that was given up does not look at it
            return
        owed = self.owed.popleft() if self.owed else None
        self._settled(self, owed, None)

    def process_exited(self) -> None:
        """Let `kill` return."""
        self._ended.set()

    async def kill(self) -> None:
        """End the process, and wait until it has ended."""
        if self._transport.get_returncode() is None:
            self._transport.kill()
        await self._ended.wait()
        self._transport.close()


# Until a garbage collection: a page makes tens of thousands, of which hardly any are in cycles.
_NEW_OBJECTS = 50_000


def answer_jobs(answer: Callable[[bytes], bytes], address_space: int, warm: Callable[[], object]) -> None:
    """Call `warm`, report ready, then `answer` each job until stdin ends. `address_space` is a limit in bytes."""
    # Out of Ctrl-C's reach; a session of its own would be scheduled apart from its parent's. Not every event loop can
    # start a process in a group of its own: uvloop, which Ray takes where it is installed, cannot.
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    warm()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    _send(sink, b"")
    while header := source.read(LENGTH.size):
        _send(sink, answer(source.read(LENGTH.unpack(header)[0])))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End the process after `seconds`. The parent kills a late worker sooner; this is for when it has no parent."""
    signal.setitimer(signal.ITIMER_REAL, seconds + 1.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def resident() -> int:
    """Bytes of memory held now. Linux's ru_maxrss counts what the parent held when it started this process."""
    file = _memory()
    if file is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(os.pread(file, 100, 0).split()[1]) * resource.getpagesize()


@cache
def _memory() -> int | None:
    """The open file that says how much memory this process holds; None if this is not Linux."""
    try:
        return os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return None


def _send(sink: BinaryIO, payload: bytes) -> None:
    sink.write(LENGTH.pack(len(payload)))
    sink.write(payload)
    sink.flush()
