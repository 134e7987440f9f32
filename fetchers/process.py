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
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import BinaryIO, Generic, Literal, Protocol, TypeVar, cast

import msgspec


class Budget:
    """The seconds that all requests of a page may take together; waiting between them is free."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left = seconds

    @asynccontextmanager
    async def spend(self) -> AsyncIterator[None]:
        """Run the block on what is left. Raises TimeoutError when that is gone."""
        clock = asyncio.get_running_loop().time
        started = clock()
        expiry = asyncio.timeout(self._left)
        try:
            async with expiry:
                yield
        except TimeoutError:
            if not expiry.expired():
                raise
            raise TimeoutError(f"not received within {self._seconds:g} s") from None
        finally:
            self._left = max(0.0, self._left - (clock() - started))


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


class WorkerPool(Generic[A]):
    """At most `workers` processes, started when first needed, each answering one job at a time.

    A worker that exceeds its time on a job is killed; one that died or grew beyond 1 GiB is replaced.
    """

    def __init__(self, workers: int, answer: type[A], module: str, *arguments: str) -> None:
        self._start = (module, *arguments)
        self._decoder = msgspec.msgpack.Decoder(answer)
        self._slots = asyncio.Semaphore(workers)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()

    async def answer(self, job: bytes, budget: Budget) -> A | None:
        """A worker's answer, or None if it died. The budget is spent while a worker has the job.

        Raises TimeoutError, PoolError.
        """
        async with self._slots:
            worker = self._idle.pop() if self._idle else await self._started()
            healthy = False
            try:
                async with budget.spend():
                    found = self._decoder.decode(await worker.ask(job))
                healthy = found.resident < RETIRE_AT
            except TimeoutError:
                raise
            except (EOFError, OSError, msgspec.MsgspecError):
                return None
            finally:
                if healthy:
                    self._idle.append(worker)
                else:
                    self._all.discard(worker)
                    await worker.kill()
        return found

    async def close(self) -> None:
        """End every worker."""
        workers, self._all = self._all, set()
        self._idle.clear()
        await asyncio.gather(*(worker.kill() for worker in workers))

    async def _started(self) -> "_Worker":
        worker = await _Worker.start(*self._start)
        self._all.add(worker)
        return worker


class _Worker(asyncio.SubprocessProtocol):
    """A process and the answer it owes, if any. It has no stream and no task: a page is too short to pay for them."""

    _transport: asyncio.SubprocessTransport
    _stdin: asyncio.WriteTransport

    def __init__(self) -> None:
        self._received = bytearray()
        self._answer: asyncio.Future[bytearray] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()

    @classmethod
    async def start(cls, module: str, *arguments: str) -> "_Worker":
        """`python -m module arguments`, once its imports are done. Raises PoolError."""
        transport, worker = await asyncio.get_running_loop().subprocess_exec(
            cls,
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
                await worker._answer
        except (EOFError, OSError) as error:  # TimeoutError is an OSError
            await worker.kill()
            raise PoolError(
                "worker processes for pages and reports do not start; run `adjudge doctor`"
            ) from error
        except asyncio.CancelledError:
            await worker.kill()
            raise
        return worker

    async def ask(self, payload: bytes) -> memoryview:
        """The answer to one job. Raises EOFError and OSError for a process that died."""
        if self._stdin.is_closing():
            raise EOFError
        self._answer = asyncio.get_running_loop().create_future()
        self._stdin.write(LENGTH.pack(len(payload)) + payload)
        return memoryview(await self._answer)[LENGTH.size :]

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Collect a frame."""
        self._received += data
        body = len(self._received) - LENGTH.size
        if body >= 0 and body >= LENGTH.unpack_from(self._received)[0]:
            received, self._received = self._received, bytearray()
            if not self._answer.done():
                self._answer.set_result(received)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Fail the answer that is owed."""
        if not self._answer.done():
            self._answer.set_exception(EOFError())
            self._answer.exception()  # a start that was given up does not look at it

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
