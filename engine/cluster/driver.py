"""The driver: keeps evaluators alive, feeds them cases in sliding windows, and collects their scorecards.

Paths in the configuration (store, snapshot, prompts) must name the same files on every node. If a run ends early,
everything the evaluators wrote stays in the store, and the same command continues from there.

The limit on requests in flight is leased in shares to holders that have work; the shares never add up to more than the
limit. If a background task fails, the main flow ends too.
"""

import asyncio
import itertools
import logging
import math
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from ray.exceptions import RayActorError

from adjudge.engine.cluster.messages import Delivery, Hung, MakeJudge, Opened, pack_cases
from adjudge.engine.cluster.roster import Member, Roster
from adjudge.engine.cluster.session import connected
from adjudge.engine.cluster.shards import Work
from adjudge.engine.cluster.supervisor import DEATHS_AT_START
from adjudge.engine.cluster.workers import Backing, cpus_of_cluster
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import ClusterError
from adjudge.engine.evaluation.budget import Spent
from adjudge.engine.evaluation.evaluator import Counts, Scored
from adjudge.engine.evaluation.gate import Check, Patience
from adjudge.engine.telemetry.logs import event
from adjudge.engine.telemetry.metrics import Family, Metrics
from adjudge.fetchers.flight import shared
from adjudge.judges import JudgeIdentity
from adjudge.judges.judgment import Verdict
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.scorecard import Scorecard

_log = logging.getLogger(__name__)


class Background:
    """Tasks of one event loop. A failure of one is raised in every `until`, now and later."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._broken: list[asyncio.Task[None]] = []
        self._failed = asyncio.Event()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` as a task."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._broken.append(task)
            self._failed.set()

    async def until(self, event: "asyncio.Future[Any]") -> None:
        """Wait for `event`, or for the failure of a task, which is raised."""
        failed = asyncio.ensure_future(self._failed.wait())
        try:
            await asyncio.wait([event, failed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            failed.cancel()
        for task in self._broken:
            task.result()

    async def cancel(self) -> None:
        """Cancel every task that still runs, and wait until all have ended."""
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Lease:
    """The latest lease of one holder, and the most that it may still have in flight (`bound`)."""

    def __init__(self) -> None:
        self.number = 0
        self.share = 0
        self.bound = 0


class Leases:
    """The shares of `total` by holder. Does not use Ray: `divide` returns the messages to send."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._leases: dict[str, _Lease] = {}

    def join(self, holder: str) -> None:
        """Add `holder`, with a share of 0."""
        self._leases[holder] = _Lease()

    def leave(self, holder: str) -> None:
        """Remove `holder`, which must be dead, and free its share."""
        self._leases.pop(holder, None)

    def report(self, holder: str, number: int, held: int) -> None:
        """Note that `holder` holds `held` under its lease `number`; reports under earlier leases are ignored."""
        lease = self._leases[holder]
        if number == lease.number:
            lease.bound = max(lease.share, held)

    def divide(self, busy: list[str]) -> list[tuple[str, int, int]]:
        """New leases (holder, number, share), which give the `busy` equal shares as soon as others release theirs."""
        if not busy:
            return []
        wanted = dict.fromkeys(self._leases, 0)
        wanted |= dict(zip(sorted(busy), shares(self._total, len(busy)), strict=False))
        changed = [holder for holder, share in wanted.items() if share < self._leases[holder].share]
        for holder in changed:
            self._leases[holder].share = wanted[holder]
        free = self._total - sum(lease.bound for lease in self._leases.values())
        for holder, share in wanted.items():
            lease = self._leases[holder]
            grown = min(share, lease.bound + free)
            if grown > lease.share:
                free -= max(0, grown - lease.bound)
                lease.share = grown
                lease.bound = max(lease.bound, grown)
                changed.append(holder)
        for holder in changed:
            self._leases[holder].number += 1
        return [(holder, self._leases[holder].number, self._leases[holder].share) for holder in changed]


def shares(total: int, parts: int) -> list[int]:
    """`total` in `parts` whole numbers as equal as possible, each at least 1; fewer parts if `total` is smaller."""
    parts = min(parts, total)
    return [total // parts + (part < total % parts) for part in range(parts)]


_STOP_SECONDS = 30.0
_SAID_SECONDS = 60.0


@asynccontextmanager
async def open_cluster(
    config: RunConfig,
    judge: MakeJudge | None = None,
    replicas: int = 0,
    patience: Patience | None = None,
    check: Check | None = None,
) -> AsyncIterator["Cluster"]:
    """The cluster of `config` with a first evaluator open. On the way out everything is written and closed.

    `judge` makes other judges than the configured ones, in every evaluator, or in `replicas` separate processes. One
    that no longer answers is waited for with `patience`; `check` is called with its window, in tokens. Raises
    UsageError, StoreError, JudgeError, LimitReached and ClusterError.
    """
    settings = config.resolved.cluster
    with connected(settings.address, settings.cpus * (settings.evaluators or 0)):
        cluster = Cluster(config, judge, replicas, patience, check)
        try:
            await cluster.open()
            yield cluster
        finally:
            await cluster.close()


class Cluster:
    """Evaluators on Ray with the interface of one `Evaluator`."""

    def __init__(
        self,
        config: RunConfig,
        judge: MakeJudge | None = None,
        replicas: int = 0,
        patience: Patience | None = None,
        check: Check | None = None,
    ) -> None:
        seats = config.resolved.bench.seats.values()
        limited = {name: one.max_in_flight for seat in seats for name, one in seat.limited()}
        # An evaluator without a share of some judge would wait for it until others have nothing left to do.
        count = min(config.resolved.cluster.evaluators or cpus_of_cluster(), *limited.values())
        self.metrics = Metrics()
        self._protocols = config.resolved.protocols
        self._slots = shares(sum(seat.slots for seat in seats), count)
        self._leases = {name: Leases(total) for name, total in limited.items()}
        self._backing = Backing(config, self.metrics, self._tell, judge, replicas)
        self._told = itertools.count()
        self._said: dict[str, float] = {}
        self._check = check
        self._windows: defaultdict[str, float] = defaultdict(lambda: math.inf)
        self._checking: dict[str, asyncio.Future[None]] = {}
        self._config = config
        self._roster = Roster(config, self._backing, judge, patience)
        self._background = Background()
        self._opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self._work = Work((), self._protocols)
        self._has_run = asyncio.Event()

    @property
    def evaluators(self) -> list[str]:
        """Names of the evaluators that are open."""
        return list(self._roster.members)

    @property
    def judges(self) -> dict[str, JudgeIdentity]:
        """The judges that answer, by their names."""
        return self._opened.result().judges

    @property
    def pages(self) -> str:
        """The source that pages are stored under."""
        return self._opened.result().pages

    @property
    def counts(self) -> Counts:
        """Where judgments and pages came from until now, including what dead evaluators last reported."""
        return self._roster.counts

    @property
    def spent(self) -> Spent:
        """Questions asked and money spent so far."""
        return self._roster.spent

    @property
    def is_waiting(self) -> bool:
        """Whether an evaluator waits for a judge to answer again."""
        return any(member.waits for member in self._roster.members.values())

    @property
    def probed(self) -> dict[str, tuple[Verdict, ...]]:
        """What an evaluator found of every server that it tried, by the judge's name in the configuration."""
        return {name: one for member in self._roster.members.values() for name, one in member.probed.items()}

    def measured(self) -> list[Family]:
        """All numbers, of this process and of evaluators; of dead ones, the last reported that still count."""
        self.metrics.workers("evaluator", len(self._roster.members))
        judges, fetchers = self._backing.live
        if judges:
            self.metrics.workers("judge", sum(map(len, judges.values())))
        if self._backing.fetchers is not None:
            self.metrics.workers("fetcher", len(fetchers))
        return [*self.metrics.families(), *self._roster.families]

    async def open(self) -> None:
        """Start judges, fetchers and evaluators; returns when the first evaluator is open."""
        for keeper in self._backing.keepers():
            self._background.begin(keeper)
        for judge in self._backing.judges.values():
            await self._background.until(judge.opened)
        for slots in self._slots:
            self._background.begin(self._keep(slots))
        await self._background.until(self._opened)

    async def scored(self, cases: Iterable[Case]) -> AsyncGenerator[list[Scored], None]:
        """What `run` gives. Whether the store had it is not sent along."""
        async with aclosing(self.run(cases)) as cards:
            async for card in cards:
                yield [Scored(card, False)]

    async def run(self, cases: Iterable[Case]) -> AsyncGenerator[Scorecard, None]:
        """The scorecards of `cases`, each once everything it rests on is written. Engine-fatal errors propagate."""
        self._work = work = Work(cases, self._protocols)
        for name in self._roster.members:
            work.shards.join(name)
        self._has_run.set()
        self._feed()
        finish = asyncio.ensure_future(self._finish(work))
        try:
            while (card := await work.next_card()) is not None:
                yield card
            await finish
        finally:
            finish.cancel()
            await asyncio.gather(finish, return_exceptions=True)

    async def _finish(self, work: Work) -> None:
        """End `work` when every case is written, or as soon as a task has failed; then raise that failure."""
        try:
            await self._background.until(work.complete)
        finally:
            work.end()

    async def close(self) -> None:
        """Let every evaluator write what it has, then end it."""
        for checking in self._checking.values():
            checking.cancel()
        await self._background.cancel()
        await asyncio.gather(*map(_stop, self._roster.members.values()))
        await self._backing.close()

    async def _keep(self, slots: int) -> None:
        """Keep one evaluator running, replaced when it dies or hangs, for as long as the cluster is open."""
        deaths = 0
        while True:
            member = self._roster.hire(slots)
            try:
                await self._tend(member)
            except (RayActorError, Hung) as error:
                deaths = 0 if member.progress else deaths + 1
                event(_log, "worker lost", logging.WARNING, worker=member.name, why=type(error).__name__)
                await self._bury(member)
                if deaths == DEATHS_AT_START:
                    raise ClusterError(
                        f"cluster: {DEATHS_AT_START} evaluators in a row died before doing anything: {error}"
                    ) from error

    async def _tend(self, member: Member) -> None:
        """Open `member`, take in what it delivers and give it more cases, for as long as it lives."""
        await member.open()
        self._send_services(member)
        self._roster.join(member)
        self._work.shards.join(member.name)
        for leases in self._leases.values():
            leases.join(member.name)
        if not self._opened.done():
            self._opened.set_result(member.opened)
        await self._has_run.wait()
        member.begin_waiting()
        self._feed()
        while True:
            self._take_in(member, await member.delivery())
            self._feed()

    def _take_in(self, member: Member, delivery: Delivery) -> None:
        for name, (number, held) in delivery.held.items():
            self._leases[name].report(member.name, number, held)
        idle = not self._work.shards.in_flight(member.name) or not self._backing.is_there or delivery.waits
        member.hear(delivery, idle=idle)
        for line in delivery.said:
            self._say(line)
        for judge in delivery.windows.keys() - member.windows:
            member.windows.add(judge)
            self._background.begin(self._check_window(member, judge, delivery.windows[judge]))
        if (reached := self._roster.spent.limit(self._config)) is not None:
            raise reached
        if delivery.failure is not None:
            raise delivery.failure.error()
        self._work.take_in(member.name, delivery)
        member.check_progress()

    async def _check_window(self, member: Member, judge: str, window: int) -> None:
        """Check the prompts against the window of the member's judge, unless a smaller one was, before it asks."""
        if self._check is not None and window < self._windows[judge]:
            self._windows[judge] = window
            self._checking[judge] = asyncio.ensure_future(self._check(judge, window))
        if judge in self._checking:
            await shared(self._checking[judge])
        self._send(member, "begin_asking", judge)

    def _say(self, line: str) -> None:
        """Tell the user what every evaluator may find at about the same time, once."""
        now = time.monotonic()
        if now - self._said.get(line, -math.inf) > _SAID_SECONDS:
            _log.warning("%s", line)
        self._said[line] = now

    def _feed(self) -> None:
        """Give every evaluator the cases that it has room for, and its share of the judge."""
        self._work.check_complete()
        shards, members = self._work.shards, self._roster.members
        for name, (cases, refresh) in shards.deal({name: one.room for name, one in members.items()}).items():
            self._send(members[name], "take", pack_cases(cases), refresh)
        for name in shards.awaited():
            if name in members:  # a dead one's cases are given to others only after it is buried
                self._send(members[name], "hurry")
        busy = [name for name in members if shards.in_flight(name)]
        for limited, leases in self._leases.items():
            for name, number, share in leases.divide(busy):
                if name in members:
                    self._send(members[name], "lease", limited, number, share)

    def _tell(self) -> None:
        for member in self._roster.members.values():
            self._send_services(member)

    def _send_services(self, member: Member) -> None:
        self._send(member, "use", next(self._told), *self._backing.live)

    def _send(self, member: Member, method: str, *arguments: object) -> None:
        async def send() -> None:
            with suppress(RayActorError):  # the task that waits for its deliveries sees that it died
                await member.call(method, *arguments)

        self._background.begin(send())

    async def _bury(self, member: Member) -> None:
        """Make sure that `member` is dead, and give its cases to others."""
        self._roster.leave(member)
        self.metrics.lost("evaluator")
        await member.end()
        for leases in self._leases.values():
            leases.leave(member.name)
        if member.opened.process:
            self._work.lose(member.name)
            self._feed()


async def _stop(member: Member) -> None:
    with suppress(RayActorError, Hung):
        await member.call("stop", within=_STOP_SECONDS)
    await member.end()
