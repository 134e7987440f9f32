"""The messages between driver and evaluators, and Ray actors as the driver sees them.

An actor is called with a time limit, and is certain to be dead after a kill.
"""

import asyncio
import os
import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import LimitReached, StoreError, UsageError
from adjudge.engine.evaluation.budget import Spent
from adjudge.engine.evaluation.evaluator import Counts
from adjudge.engine.evaluation.gate import Patience
from adjudge.engine.telemetry.metrics import Family
from adjudge.judges import Judge, JudgeIdentity
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import Verdict
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.scorecard import Scorecard

MakeJudge = Callable[[PromptBook], Judge]
Numbered = tuple[int, Case]

FATAL = (UsageError, JudgeError, LimitReached, StoreError)
_KINDS: dict[str, type[Exception]] = {kind.__name__: kind for kind in FATAL}


class Failure(msgspec.Struct, frozen=True):
    """An engine-fatal error on its way to the user: its type's name and its message."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """`error`, one of FATAL."""
        kind = next(name for name, kind in _KINDS.items() if isinstance(error, kind))
        return cls(kind, str(error))

    def error(self) -> Exception:
        """The error again."""
        return _KINDS[self.kind](self.message)


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The result of opening: judges by name, source of pages, process and node; or the failure."""

    judges: dict[str, JudgeIdentity] = {}
    pages: str = ""
    process: int = 0
    node: str = ""
    failure: Failure | None = None


class Replicated(msgspec.Struct, frozen=True):
    """A judge whose `count` replicas are workers of the cluster."""

    judge: JudgeIdentity
    count: int


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an evaluator. `slots` is the number of requests in flight, over all judges, that it may count on.

    `make_judge` makes other judges than the configured ones, `patience` is for one that no longer answers.
    `replicas` are the judges, by name, that run in the cluster. `fetchers`: how many of the cluster's workers read
    live pages; 0 for none. `log` is the form of its log, and `about` what its events are about.
    """

    config: RunConfig
    slots: int
    flush_seconds: float
    make_judge: MakeJudge | None = None
    patience: Patience | None = None
    replicas: dict[str, Replicated] = {}
    fetchers: int = 0
    log: str = "human"
    about: dict[str, str] = {}


class Pulse(msgspec.Struct, frozen=True):
    """The progress of a worker: `progress` grows with everything done, `outstanding` counts what is left to do."""

    progress: int
    outstanding: int


class Done(msgspec.Struct, frozen=True, array_like=True):
    """A case and its scorecards; everything they rest on is written to the store."""

    case: int
    cards: tuple[Scorecard, ...]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """News from an evaluator.

    `finished` cases are scored but not written: they free their place in the window and cannot become suspects.
    `progress` grows with everything that is answered, read or scored. `held` has, by the name of what has a limit,
    the number of the lease and its share of the requests in flight. `measured` is all its metrics, in some of its
    deliveries. `windows` are the most tokens that its judges take, by name, once that is known. `said` are lines for
    the user; one that `waits` for a judge need not make progress. `probed` is what was found of each judge.
    """

    finished: list[int] = []
    done: list[Done] = []
    counts: Counts = Counts()
    measured: list[Family] = []
    progress: int = 0
    held: dict[str, tuple[int, int]] = {}
    windows: dict[str, int] = {}
    said: list[str] = []
    waits: bool = False
    probed: dict[str, tuple[Verdict, ...]] = {}
    spent: Spent = Spent()
    failure: Failure | None = None

    def encode(self) -> bytes:
        """As MessagePack."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, raw: bytes) -> "Delivery":
        """From MessagePack."""
        return msgspec.msgpack.decode(raw, type=cls)


def pack_cases(cases: list[Numbered]) -> bytes:
    """`cases` as bytes; what they share (a task, a report) is written once."""
    return pickle.dumps(cases, protocol=5)


def unpack_cases(raw: bytes) -> list[Numbered]:
    """The cases in `raw`, which must come from `pack_cases` in the same cluster: it is unpickled."""
    found: list[Numbered] = pickle.loads(raw)
    return found


_KILL_SECONDS = 10.0


class Hung(Exception):
    """An actor that has work and makes no progress, or does not answer."""


class Remote:
    """An actor of class `kind`, started with Ray's `options`; never restarted by Ray itself."""

    def __init__(self, name: str, kind: type, options: dict[str, Any], *arguments: object) -> None:
        self.name = name
        self.opened = Opened()
        made: Any = ray.remote(kind).options(max_restarts=0, scheduling_strategy="SPREAD", **options)
        self.actor: Any = made.remote(*arguments)

    async def call(self, method: str, *arguments: object, within: float | None = None) -> Any:
        """The result of the actor's `method`. Raises RayActorError, and Hung after `within` seconds."""
        reference = getattr(self.actor, method).remote(*arguments)
        try:
            async with asyncio.timeout(within):  # Python 3.11's wait_for can lose a cancellation
                return await asyncio.wrap_future(reference.future())
        except TimeoutError as error:
            raise Hung(self.name) from error

    async def open(self) -> None:
        """Open the actor, however long it waits for its resources. Raises what it failed with."""
        self.opened = await self.call("open")
        if self.opened.failure is not None:
            raise self.opened.failure.error()

    async def end(self) -> None:
        """Kill the actor, and its process by signal too: a hung process does not respond to Ray's request."""
        ray.kill(self.actor, no_restart=True)
        if not self.opened.process:
            return
        there = NodeAffinitySchedulingStrategy(self.opened.node, soft=False)
        kill = ray.remote(_kill).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
        with suppress(RayError, TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS):
                await asyncio.wrap_future(kill.remote(self.opened.process).future())


def _kill(process: int) -> None:
    with suppress(OSError):
        if Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::"):
            os.kill(process, signal.SIGKILL)
