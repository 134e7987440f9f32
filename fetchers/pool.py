"""Worker processes that read bodies, off the event loop and within a hard time limit each."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

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


class Unextracted(Exception):
    """No text came out of a body; `reason` is the page's."""

    def __init__(self, reason: PageReason, detail: str) -> None:
        super().__init__(detail)
        self.reason: PageReason = reason
        self.detail = detail


class PoolError(RuntimeError):
    """Worker processes do not start: the installation is broken, not a page."""


class ExtractorPool:
    """At most `workers` processes, started when first needed, each reading one body at a time.

    A worker that exceeds `seconds` on one page is killed; one that died or grew beyond 1 GiB is replaced. A page
    that kills two workers is given up.
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


class _Worker:
    def __init__(self, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._decoder = msgspec.msgpack.Decoder(Reply)

    @classmethod
    async def start(cls, extractor: Extractor, address_space: int) -> "_Worker":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "adjudge.fetchers.worker", extractor, str(address_space)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            limit=1 << 20,
        )
        worker = cls(process)
        try:
            async with asyncio.timeout(START_SECONDS):
                await worker._receive()
        except (EOFError, OSError) as error:  # TimeoutError is an OSError
            await worker.kill()
            raise PoolError("page extraction workers do not start; run `adjudge doctor`") from error
        except asyncio.CancelledError:
            await worker.kill()
            raise
        return worker

    async def ask(self, job: Job) -> Reply:
        payload = msgspec.msgpack.encode(job)
        self._stdin.writelines((LENGTH.pack(len(payload)), payload))
        await self._stdin.drain()
        return self._decoder.decode(await self._receive())

    async def _receive(self) -> bytes:
        header = await self._stdout.readexactly(LENGTH.size)
        return await self._stdout.readexactly(LENGTH.unpack(header)[0])

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        self._stdin.close()
        await self._process.wait()
