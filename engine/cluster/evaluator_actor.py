"""An evaluator in a separate process: the driver sends it cases, and it returns scorecards.

Each evaluator writes its own parts to the store: one writer per process, not per node. Part names are unique to their
writer, so evaluators share no files, an answer is stored without another hop, and a kill loses at most what one
evaluator had not yet written. A scorecard is delivered only once everything it rests on is written.
"""

import asyncio
import gc
import logging
import os
import time
from collections import defaultdict
from contextlib import AsyncExitStack, suppress

import msgspec
import ray

from adjudge.engine.cluster.fetch_actor import Fetchers
from adjudge.engine.cluster.judge_actor import Replicas
from adjudge.engine.cluster.messages import FATAL, Delivery, Done, Failure, Opened, Setup, unpack_cases
from adjudge.engine.cluster.supervisor import Service
from adjudge.engine.errors import StoreError
from adjudge.engine.evaluation.assembly import open_evaluator, window_of
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.evaluation.gate import Limit, RunGates
from adjudge.engine.evaluation.memory import YOUNG
from adjudge.engine.telemetry.logs import about, begin, event
from adjudge.engine.telemetry.metrics import Family
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import ScoringProtocol
from adjudge.scoring.contract.scorecard import Scorecard

_log = logging.getLogger(__name__)

UNWRITTEN = 2_000  # the most finished cases that wait to be written
PULSE_SECONDS = 2.0
_MEASURE_SECONDS = 1.0
_GATHER_SECONDS = 0.01  # what is ready within this time goes into one delivery


class EvaluatorActor:
    """Runs as a Ray actor, on one event loop. `open` before anything else."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._limits = {
            name: Limit(judge, share=0)
            for seat in setup.config.resolved.bench.seats.values()
            for name, judge in seat.limited()
        }
        self._leased = dict.fromkeys(self._limits, 0)
        self._told = -1
        self._replicas = {name: Replicas(one) for name, one in setup.replicas.items()}
        self._fetchers = Fetchers(setup.fetchers) if setup.fetchers else None
        self._stack = AsyncExitStack()
        self._window = asyncio.Semaphore(window_of(setup.config, setup.slots))
        self._running: set[asyncio.Task[None]] = set()
        self._finished: list[int] = []
        self._unwritten: list[Done] = []
        self._written: list[Done] = []
        self._scored = 0
        self._said: list[str] = []
        self._windows: dict[str, int] = {}
        self._window_is_checked: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._gates = RunGates(setup.config, setup.patience, self._say, self._learn_window)
        self._failure: Failure | None = None
        self._broken: BaseException | None = None
        self._measured = 0.0
        self._news = asyncio.Event()
        self._hurry = asyncio.Event()

    async def open(self) -> Opened:
        """Open stores and judges."""
        gc.set_threshold(YOUNG)
        begin(self._setup.log)
        seconds = self._setup.flush_seconds
        try:
            house = open_evaluator(
                self._setup.config,
                flush_seconds=seconds,
                judge=self._setup.make_judge,
                judges=self._replicas,
                fetcher=self._fetchers,
                limits=self._limits,
                gates=self._gates,
                cores=self._setup.config.resolved.cluster.cpus,
            )
            self._evaluator: Evaluator = await self._stack.enter_async_context(house)
        except FATAL as error:
            return Opened(failure=Failure.of(error))
        self._writing = asyncio.ensure_future(self._write_now_and_then())
        node = ray.get_runtime_context().get_node_id()
        with about(**self._setup.about):
            event(_log, "evaluator opened", node=node)
        found = self._evaluator
        return Opened(judges=found.judges, pages=found.pages, process=os.getpid(), node=node)

    async def use(self, number: int, judges: dict[str, list[Service]], fetchers: list[Service]) -> None:
        """Use these workers from now on; messages may overtake each other, and the highest `number` counts."""
        if number > self._told:
            self._told = number
            for name, replicas in self._replicas.items():
                replicas.update(judges[name])
            if self._fetchers is not None:
                self._fetchers.update(fetchers)

    async def take(self, packed: bytes, refresh: bool) -> None:
        """Begin the cases in `packed`; with `refresh`, first index what other processes have written."""
        if refresh:
            try:
                await self._evaluator.refresh()
            except StoreError as error:
                self._fail(error)
        for number, case in unpack_cases(packed):
            task = asyncio.ensure_future(self._score(number, case))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def deliveries(self) -> bytes:
        """A `Delivery`, as soon as there is news, or after PULSE_SECONDS as a sign of life."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PULSE_SECONDS):
                await self._news.wait()
                await asyncio.sleep(_GATHER_SECONDS)
        if self._broken is not None:
            raise self._broken
        self._news.clear()
        finished, self._finished = self._finished, []
        written, self._written = self._written, []
        said, self._said = self._said, []
        counts = self._evaluator.counts
        progress = sum(msgspec.structs.astuple(counts)) + self._scored
        return Delivery(
            finished=finished,
            done=written,
            counts=counts,
            measured=self._measure(),
            progress=progress,
            held={name: (self._leased[name], limit.held) for name, limit in self._limits.items()},
            windows=self._windows,
            said=said,
            waits=self._gates.is_waiting,
            probed=self._gates.probed,
            spent=self._gates.spent,
            failure=self._failure,
        ).encode()

    def _measure(self) -> list[Family]:
        """All metrics, at intervals while there is work, and always once all of it is written."""
        now = time.monotonic()
        if (self._running or self._unwritten) and now - self._measured < _MEASURE_SECONDS:
            return []
        self._measured = now
        return self._evaluator.measured()

    async def lease(self, name: str, number: int, share: int) -> None:
        """Use `share` of a judge's requests in flight from now on, under lease `number`; the latest counts."""
        if number > self._leased[name]:
            self._leased[name] = number
            self._limits[name].lease(share)
            self._news.set()

    async def begin_asking(self, judge: str) -> None:
        """Ask the judge of that name from now on: the driver knows its window."""
        self._window_is_checked[judge].set()

    async def hurry(self) -> None:
        """Write finished cases now."""
        self._hurry.set()

    async def stop(self) -> None:
        """Drop running cases, write everything answered so far, and close."""
        for task in (*self._running, self._writing):
            task.cancel()
        await asyncio.gather(*self._running, self._writing, return_exceptions=True)
        with suppress(StoreError):  # already reported, or nothing waits for it any more
            await self._stack.aclose()

    async def _score(self, number: int, case: Case) -> None:
        try:
            cards = await asyncio.gather(
                *(self._card(case, protocol) for protocol in self._evaluator.protocols_of(case))
            )
        except FATAL as error:
            self._fail(error)
            return
        except Exception as error:  # noqa: BLE001 - the driver raises it
            self._broken = error
            self._news.set()
            return
        self._scored += 1
        self._finished.append(number)
        self._unwritten.append(Done(number, tuple(cards)))
        if len(self._unwritten) >= UNWRITTEN:
            self._hurry.set()
        self._news.set()

    async def _card(self, case: Case, protocol: ScoringProtocol) -> Scorecard:
        with about(**self._setup.about):
            return await self._evaluator.card(case, protocol, self._window)

    async def _write_now_and_then(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._setup.flush_seconds):
                    await self._hurry.wait()
            self._hurry.clear()
            done, self._unwritten = self._unwritten, []
            try:
                await self._evaluator.flush()
            except StoreError as error:
                self._fail(error)
                return
            if done:
                self._written += done
                self._news.set()

    def _say(self, line: str) -> None:
        """Tell the driver a line for the user."""
        self._said.append(line)
        self._news.set()

    async def _learn_window(self, judge: str, window: int) -> None:
        """Tell the driver the window of a judge, in tokens, and wait until it has checked all prompts against it."""
        self._windows[judge] = min(window, self._windows.get(judge, window))
        self._news.set()
        await self._window_is_checked[judge].wait()

    def _fail(self, error: Exception) -> None:
        self._failure = Failure.of(error)
        self._news.set()
