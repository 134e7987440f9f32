"""Reads long texts beside the event loop, in worker processes with a time limit, as pages are read.

Reading a report is linear, but the longest ones take a second, too long to block a shared loop. Short texts are read in
place: one of 4,000 characters takes a millisecond.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from math import ceil
from typing import Any, TypeVar, TypeVarTuple, get_type_hints
from weakref import WeakKeyDictionary

import msgspec

from adjudge.fetchers.process import ADDRESS_SPACE, Budget, WorkerPool
from adjudge.scoring.contract.case import Unread

IN_PLACE_BYTES = 4_000
"""Arguments of no more bytes than these are read in place.

At the two seconds that the worst 500,000 characters take, that holds the loop for 16 milliseconds at most.
"""
SECONDS = 30.0
"""For one text; the longest report takes two on an idle core."""

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A function of this distribution by its module and name, with its positional arguments."""

    module: str
    name: str
    arguments: msgspec.Raw
    seconds: float


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The function's result. `resident` is the worker's memory, in bytes."""

    value: msgspec.Raw
    resident: int


class _Workers:
    """The worker processes of one event loop, and how many have opened them."""

    def __init__(self, cores: float) -> None:
        beside = max(1, ceil(cores) - 1)
        self.pool = WorkerPool(beside, Answer, "adjudge.scoring.text.worker", str(ADDRESS_SPACE))
        self.users = 0


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, _Workers] = WeakKeyDictionary()


@asynccontextmanager
async def open_workers(cores: float | None = None) -> AsyncIterator[None]:
    """Let `aside` use worker processes in this event loop; they start when first needed and end with the last user.

    One of the `cores` of this process is the event loop's, and each other one has a worker. Without `cores`, they are
    all that the system lets this process use.
    """
    loop = asyncio.get_running_loop()
    workers = _OF_LOOP.get(loop)
    if workers is None:
        workers = _OF_LOOP[loop] = _Workers(cores or _usable_cores())
    workers.users += 1
    try:
        yield
    finally:
        workers.users -= 1
        if not workers.users:
            del _OF_LOOP[loop]
            await workers.pool.close()


async def aside(function: Callable[[*Ts], R], *args: *Ts) -> R:
    """`function(*args)`, beside the event loop if `args` are long and workers are open.

    `function` is defined at the top of a module, with hints that msgpack can follow. Raises Unread, PoolError.
    """
    return await _beside(function, args, idle=False)


async def when_idle(function: Callable[[*Ts], R], *args: *Ts) -> R:
    """As `aside`, once nothing that a judge waits for is left to read."""
    return await _beside(function, args, idle=True)


async def _beside(function: Callable[[*Ts], R], args: tuple[*Ts], *, idle: bool) -> R:
    workers = _OF_LOOP.get(asyncio.get_running_loop())
    try:
        arguments = msgspec.msgpack.encode(args)
    except UnicodeEncodeError:  # a lone surrogate: see `storable`
        return function(*args)
    if workers is None or len(arguments) <= IN_PLACE_BYTES:
        return function(*args)
    named: Any = function
    call = Call(named.__module__, named.__qualname__, msgspec.Raw(arguments), SECONDS)
    job = msgspec.msgpack.encode(call)
    budget = Budget(SECONDS)
    try:
        # The first death may have had another cause than the text.
        ask = partial(workers.pool.answer, job, budget, idle)
        answer = await ask() or await ask()
    except TimeoutError:
        raise Unread("deadline", f"the text was not read within {SECONDS:g} s") from None
    if answer is None:
        raise Unread("worker_died", "the process that read the text died twice")
    found: R = _decoder(function).decode(answer.value)
    return found


@cache
def _decoder(function: Callable[..., object]) -> msgspec.msgpack.Decoder[Any]:
    """Of what `function` returns: its type hints take as long to find as a short answer to decode."""
    return msgspec.msgpack.Decoder(get_type_hints(function)["return"])


def storable(text: str) -> str:
    """`text` with a question mark for each lone surrogate, which no store, server or process takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
