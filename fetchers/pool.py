"""Worker processes that read bodies, off the event loop and within a hard time limit each."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from typing import cast

import msgspec

from adjudge.fetchers.frames import LENGTH, Extraction, Extractor, Job, Reply
from adjudge.fetchers.page import PageReason

__all__ = ["ADDRESS_SPACE", "RETIRE_AT", "START_SECONDS", "ExtractorPool", "PoolError", "Unextracted"]

# Parsers need address space before they need memory; a body that blows up meets the first of the two.
ADDRESS_SPACE = 4 << 30
RETIRE_AT = 1 << 30
START_SECONDS = 60.0
# A parser of untrusted bytes sees no API keys.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "TMPDIR")
# glibc would give half a megabyte back to the system after each page and fetch it again for the next. These are as
# high as it raises the two by itself once it has seen large blocks.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}


class Unextracted(Exception):
    """No text came out of a body; `reason` is the page's."""

    def __init__(self, reason: PageReason, detail: str) -> None:
        super().__init__(detail)
        self.reason: PageReason = reason
        self.detail = detail


class PoolError(RuntimeError):
    """Worker processes do not start: the installation is at fault, not a page."""


class ExtractorPool:
    """At most `workers` processes, started when first needed, each reading one body at a time.

    A worker that exceeds `seconds` on one page is killed; one that died or grew beyond 1 GiB is replaced. A page
    that kills two workers is abandoned.
    """

    def __init__(
        self, workers: int, *, extractor: Extractor, seconds: float, address_space: int = ADDRESS_SPACE
    ) -> None:
        self._extractor: Extractor = extractor
        self._seconds = seconds
        self._address_space = address_space
        self._slots = asyncio.Semaphore(workers)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()

    async def extract(self, body: bytes, content_type: str) -> Extraction:
        """What `body` says. The limit counts from when a worker takes it. Raises Unextracted, PoolError."""
        job = Job(body, content_type, self._seconds)
        reply = await self._answer(job) or await self._answer(job)
        if reply is None:  # the first death may have had another cause than the page
            raise Unextracted("page_unsupported", "it kills the parser")
        if reply.found is None:
            raise Unextracted("page_unsupported", reply.problem)
        return reply.found

    async def _answer(self, job: Job) -> Reply | None:
        """A worker's reply, or None if it died."""
        async with self._slots:
            worker = self._idle.pop() if self._idle else await self._start()
            healthy = False
            try:
                async with asyncio.timeout(self._seconds):
                    reply = await worker.ask(job)
                healthy = reply.resident < RETIRE_AT
            except TimeoutError:
                raise Unextracted("page_timeout", f"not parsed within {self._seconds:g} s") from None
            except (EOFError, OSError, msgspec.MsgspecError):
                return None
            finally:
                if healthy:
                    self._idle.append(worker)
                else:
                    self._all.discard(worker)
                    await worker.kill()
        return reply

    async def close(self) -> None:
        """End every worker."""
        workers, self._all = self._all, set()
        self._idle.clear()
        await asyncio.gather(*(worker.kill() for worker in workers))

    async def _start(self) -> "_Worker":
        worker = await _Worker.start(self._extractor, self._address_space)
        self._all.add(worker)
        return worker


class _Worker(asyncio.SubprocessProtocol):
    """A process and the answer it owes, if any. It has no stream and no task: a page is too short to pay for them."""

    _transport: asyncio.SubprocessTransport
    _stdin: asyncio.WriteTransport

    def __init__(self) -> None:
        self._received = bytearray()
        self._decoder = msgspec.msgpack.Decoder(Reply)
        self._answer: asyncio.Future[bytearray] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()

    @classmethod
    async def start(cls, extractor: Extractor, address_space: int) -> "_Worker":
        transport, worker = await asyncio.get_running_loop().subprocess_exec(
            cls,
            *(sys.executable, "-P", "-m", "adjudge.fetchers.worker", extractor, str(address_space)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | _MALLOC,
        )
        worker._transport = transport
        worker._stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
        try:
            async with asyncio.timeout(START_SECONDS):
                await worker._answer
        except (EOFError, OSError) as error:  # TimeoutError is an OSError
            await worker.kill()
            raise PoolError("page extraction workers do not start; run `adjudge doctor`") from error
        except asyncio.CancelledError:
            await worker.kill()
            raise
        return worker

    async def ask(self, job: Job) -> Reply:
        if self._stdin.is_closing():
            raise EOFError
        self._answer = asyncio.get_running_loop().create_future()
        payload = msgspec.msgpack.encode(job)
        self._stdin.write(LENGTH.pack(len(payload)) + payload)
        return self._decoder.decode(memoryview(await self._answer)[LENGTH.size :])

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._received += data
        body = len(self._received) - LENGTH.size
        if body >= 0 and body >= LENGTH.unpack_from(self._received)[0]:
            received, self._received = self._received, bytearray()
            if not self._answer.done():
                self._answer.set_result(received)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(EOFError())
            self._answer.exception()  # a start that was given up does not look at it

    def process_exited(self) -> None:
        self._ended.set()

    async def kill(self) -> None:
        if self._transport.get_returncode() is None:
            self._transport.kill()
        await self._ended.wait()
        self._transport.close()
