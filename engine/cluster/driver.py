"""The driver: keeps evaluators alive, feeds them cases in sliding windows, and takes in their scorecards.

Paths in the configuration (store, snapshot, prompts) must name the same on every node. Whatever ends a run early, what
evaluators had written is in the store, and the same command goes on from there.
"""

import asyncio
import heapq
import itertools
import logging
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from ray.exceptions import RayActorError

from adjudge.engine.cluster.evaluator_actor import EvaluatorActor
from adjudge.engine.cluster.leases import Leases, shares
from adjudge.engine.cluster.messages import Delivery, MakeJudge, Opened, Setup, pack_cases
from adjudge.engine.cluster.remote import Hung, Remote
from adjudge.engine.cluster.session import connected
from adjudge.engine.cluster.shards import Shards
from adjudge.engine.cluster.supervisor import DEATHS_AT_START
from adjudge.engine.cluster.workers import Backing, cpus_of_cluster, patience_of
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import ClusterConfig, RunConfig
from adjudge.engine.errors import ClusterError
from adjudge.engine.evaluation.assembly import window_of
from adjudge.engine.evaluation.evaluator import Counts
from adjudge.engine.telemetry.families import Family, added
from adjudge.engine.telemetry.logs import current, event, form
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.judges import JudgeIdentity
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol
from adjudge.scoring.contract.scorecard import Missing, Scorecard

__all__ = ["Cluster", "open_cluster"]

_STOP_SECONDS = 30.0
_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_cluster(
    config: RunConfig, judge: MakeJudge | None = None, replicas: int = 0
) -> AsyncIterator["Cluster"]:
    """The cluster of `config` with a first evaluator open. On the way out everything is written and closed.

    `judge` makes another judge than the configured one, in every evaluator, or in so many `replicas` of its own.
    Raises UsageError, StoreError, JudgeError, ClusterError.
    """
    settings = config.cluster_config()
    with connected(settings.address, settings.cpus * (settings.evaluators or 0)):
        cluster = Cluster(config, judge, replicas)
        try:
            await cluster.open()
            yield cluster
        finally:
            await cluster.close()


class _Member(Remote):
    """One evaluator, from its start to its end."""

    def __init__(self, name: str, setup: Setup, settings: ClusterConfig, protocols: int) -> None:
        super().__init__(name, EvaluatorActor, {"num_cpus": settings.cpus}, setup)
        self.room = -(-window_of(setup.config, setup.slots) * 5 // (4 * protocols)) + 1
        self.counts = Counts()
        self.measured: list[Family] = []
        self.progress = 0
        self.progressed = 0.0


class Cluster:
    """Evaluators on Ray that look like one `Evaluator`."""

    def __init__(self, config: RunConfig, judge: MakeJudge | None = None, replicas: int = 0) -> None:
        self.metrics = Metrics()
        self._config = config
        self._settings = config.cluster_config()
        self._make_judge = judge
        self._protocols = config.scoring_protocols()
        self._places = self._settings.evaluators or cpus_of_cluster()
        asked = config.judge_config()
        total = min([asked.max_in_flight, *(member.max_in_flight for member in _panel(asked))])
        self._slots = shares(total, self._places)
        self._leases = Leases(total)
        self._backing = Backing(config, self.metrics, self._tell, judge, replicas)
        self._patience = patience_of(config) + self._backing.patience
        self._numbers = itertools.count()
        self._members: dict[str, _Member] = {}
        self._counts = Counts()
        self._buried: list[Family] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._services: list[asyncio.Task[None]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._broken: list[asyncio.Task[None]] = []
        self._failed = asyncio.Event()
        self._opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self._cards: asyncio.Queue[Scorecard | None] = asyncio.Queue()
        self._shards = Shards(())
        self._has_run = asyncio.Event()
        self._complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def evaluators(self) -> list[str]:
        """Names of the evaluators that are open."""
        return list(self._members)

    @property
    def judge(self) -> JudgeIdentity:
        """Who judges."""
        return self._opened.result().judge

    @property
    def pages(self) -> str:
        """The source that pages are stored under."""
        return self._opened.result().pages

    @property
    def counts(self) -> Counts:
        """Where judgments and pages came from until now; what dead evaluators last said included."""
        return sum((member.counts for member in self._members.values()), self._counts)

    def measured(self) -> list[Family]:
        """All numbers, of this process and the evaluators; of dead ones what they last said that still counts."""
        self.metrics.workers("evaluator", len(self._members))
        for kind, services in (("judge", self._backing.judges), ("fetcher", self._backing.fetchers)):
            if services is not None:
                self.metrics.workers(kind, len(services.live))
        living = [family for member in self._members.values() for family in member.measured]
        return [*self.metrics.families(), *self._buried, *living]

    async def open(self) -> None:
        """Start judges, fetchers and evaluators; returns when the first evaluator is open."""
        self._services = [self._task(keeper) for keeper in self._backing.keepers()]
        if self._backing.judges is not None:
            await self._until(self._backing.judges.opened)
        self._keepers = [self._task(self._keep(slots)) for slots in self._slots]
        await self._until(self._opened)

    async def run(self, cases: Iterable[Case]) -> AsyncIterator[Scorecard]:
        """The scorecards of `cases`, each when all that it rests on is written. Engine-fatal errors propagate."""
        self._complete = asyncio.get_running_loop().create_future()
        self._shards = Shards(cases)
        for name in self._members:
            self._shards.join(name)
        self._has_run.set()
        self._feed()
        finish = asyncio.ensure_future(self._finish())
        try:
            while (card := await self._cards.get()) is not None:
                yield card
            await finish
        finally:
            finish.cancel()
            await asyncio.gather(finish, return_exceptions=True)

    async def close(self) -> None:
        """Let every evaluator write what it has, and end it."""
        tasks = (*self._keepers, *self._sending, *self._services)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(self._stop(member) for member in self._members.values()))
        await self._backing.close()

    def _tell(self) -> None:
        for member in self._members.values():
            self._send_services(member)

    def _send_services(self, member: _Member) -> None:
        self._send(member, "use", next(self._numbers), *self._backing.live)

    async def _finish(self) -> None:
        """Put None when every case is written, or as soon as a keeper has failed; then raise that failure."""
        try:
            await self._until(self._complete)
        finally:
            self._cards.put_nowait(None)

    async def _until(self, event: "asyncio.Future[Any]") -> None:
        """Wait for `event`, or for the failure of a keeper or a sending, which is raised."""
        failed = asyncio.ensure_future(self._failed.wait())
        try:
            await asyncio.wait([event, failed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            failed.cancel()
        for task in self._broken:
            task.result()

    async def _keep(self, slots: int) -> None:
        """Have one evaluator, and another when it dies or hangs, for as long as the cluster is open."""
        deaths, judges, fetchers = 0, self._backing.judges, self._backing.fetchers
        while True:
            name = f"evaluator {next(self._numbers)}"
            setup = Setup(
                config=self._config,
                slots=slots,
                flush_seconds=self._settings.flush_seconds,
                make_judge=self._make_judge,
                replicas=None if judges is None else judges.opened.result(),
                fetchers=0 if fetchers is None else fetchers.count,
                log=form(),
                about={**current(), "worker": name},
            )
            member = _Member(name, setup, self._settings, len(self._protocols))
            try:
                await self._tend(member)
            except (RayActorError, Hung) as error:
                deaths = 0 if member.progress else deaths + 1
                event(_log, "worker lost", logging.WARNING, worker=name, why=type(error).__name__)
                await self._bury(member)
                if deaths == DEATHS_AT_START:
                    raise ClusterError(f"evaluators die before they do anything: {error}") from error

    async def _tend(self, member: _Member) -> None:
        """Open `member`, take in what it delivers and give it more, for as long as it lives."""
        await member.open()
        self._send_services(member)
        self._members[member.name] = member
        self._shards.join(member.name)
        self._leases.join(member.name)
        if not self._opened.done():
            self._opened.set_result(member.opened)
        await self._has_run.wait()
        member.progressed = time.monotonic()
        self._feed()
        while True:
            raw = await member.call("deliveries", within=self._settings.hung_seconds)
            self._take_in(member, Delivery.decode(raw))
            self._feed()

    def _take_in(self, member: _Member, delivery: Delivery) -> None:
        now = time.monotonic()
        member.counts = delivery.counts
        member.measured = delivery.measured or member.measured
        self._leases.report(member.name, delivery.lease, delivery.held)
        idle = not self._shards.in_flight(member.name) or not self._backing.is_there
        if delivery.progress != member.progress or idle:
            member.progress, member.progressed = delivery.progress, now
        if delivery.failure is not None:
            raise delivery.failure.error()
        for number in delivery.finished:
            self._shards.finish(member.name, number)
        for done in delivery.done:
            if self._shards.write(member.name, done.case, done.cards):
                for card in done.cards:
                    self._cards.put_nowait(card)
        if now - member.progressed > self._patience:
            raise Hung(member.name)

    def _feed(self) -> None:
        """Give every evaluator that has room what it may have, the one with least to do first."""
        if self._shards.is_done and not self._complete.done():
            self._complete.set_result(None)
        given: dict[str, tuple[list[tuple[int, Case]], bool]] = {}
        hungry = [(self._shards.in_flight(name), name) for name in self._members]
        heapq.heapify(hungry)
        while hungry:
            load, name = heapq.heappop(hungry)
            room = self._members[name].room - load
            if room <= 0:
                continue
            cases, refresh = self._shards.give(name, max(1, room // 8))
            if cases:
                before, fresh = given.get(name, ([], False))
                given[name] = before + cases, fresh or refresh
                heapq.heappush(hungry, (load + len(cases), name))
        for name, (cases, refresh) in given.items():
            self._send(self._members[name], "take", pack_cases(cases), refresh)
        for name in self._shards.awaited():
            if name in self._members:  # what one that is being buried has is not yet given to others
                self._send(self._members[name], "hurry")
        busy = [name for name in self._members if self._shards.in_flight(name)]
        for name, number, share in self._leases.divide(busy):
            if name in self._members:
                self._send(self._members[name], "lease", number, share)

    def _send(self, member: _Member, method: str, *arguments: object) -> None:
        async def send() -> None:
            with suppress(RayActorError):  # whoever waits for its deliveries sees that it died
                await member.call(method, *arguments)

        task = self._task(send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """`work` begun; its failure ends the run."""

        def end(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and task.exception() is not None:
                self._broken.append(task)
                self._failed.set()

        task = asyncio.ensure_future(work)
        task.add_done_callback(end)
        return task

    async def _bury(self, member: _Member) -> None:
        """Make sure that `member` is dead, and give its cases to others."""
        self._members.pop(member.name, None)
        self.metrics.lost("evaluator")
        self._counts += member.counts
        self._buried = added(family for family in (*self._buried, *member.measured) if family.kind != "gauge")
        await member.end()
        self._leases.leave(member.name)
        if member.opened.process:
            for case in self._shards.lose(member.name):
                for protocol in self._protocols:
                    self._cards.put_nowait(_set_aside(protocol, case))
            self._feed()

    async def _stop(self, member: _Member) -> None:
        with suppress(RayActorError, Hung):
            await member.call("stop", within=_STOP_SECONDS)
        await member.end()


def _panel(judge: JudgeConfig) -> tuple[JudgeConfig, ...]:
    return judge.panel() if judge.backend == "panel" else ()


def _set_aside(protocol: ScoringProtocol, case: Case) -> Scorecard:
    """The scorecard of a case that killed a worker alone, twice."""
    metrics = protocol.metrics
    if isinstance(protocol, CaseMetrics):
        with suppress(GoldError):
            metrics = protocol.metrics_of(case)
    values = {metric.name: Missing("worker_died") for metric in metrics if metric.ratio is None}
    return Scorecard.of(protocol.name, case, values)
