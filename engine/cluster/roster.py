"""The evaluators of a cluster: those in use, and the numbers of those that are gone."""

import itertools
import time
from collections.abc import Mapping

import msgspec

from adjudge.engine.cluster.evaluator_actor import EvaluatorActor
from adjudge.engine.cluster.messages import Delivery, Hung, MakeJudge, Remote, Setup
from adjudge.engine.cluster.workers import Backing, patience_of
from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.assembly import window_of
from adjudge.engine.evaluation.budget import Spent
from adjudge.engine.evaluation.evaluator import Counts
from adjudge.engine.evaluation.gate import Patience
from adjudge.engine.evaluation.memory import ONE_HEAP
from adjudge.engine.telemetry.logs import current, form
from adjudge.engine.telemetry.metrics import Family, added
from adjudge.judges.judgment import Verdict


class Member(Remote):
    """One evaluator, from its start to its end. `room` is how many cases it may have at once.

    It counts as hung if it does not answer for `hung_seconds`, or makes no progress for `patience` seconds.
    """

    def __init__(self, name: str, setup: Setup, patience: float) -> None:
        settings = setup.config.resolved.cluster
        options = {"num_cpus": settings.cpus, "runtime_env": {"env_vars": ONE_HEAP}}
        super().__init__(name, EvaluatorActor, options, setup)
        window = window_of(setup.config, setup.slots)
        self.room = -(-window * 5 // (4 * len(setup.config.protocols))) + 1
        self.counts = Counts()
        self.spent = Spent()
        self.waits = False
        self.probed: dict[str, tuple[Verdict, ...]] = {}
        self.measured: list[Family] = []
        self.progress = 0
        self.windows: set[str] = set()
        self._progressed = 0.0
        self._hung_seconds = settings.hung_seconds
        self._patience = patience

    async def delivery(self) -> Delivery:
        """The next delivery. Raises RayActorError, and Hung if none arrives."""
        return Delivery.decode(await self.call("deliveries", within=self._hung_seconds))

    def begin_waiting(self) -> None:
        """Count the time without progress from now."""
        self._progressed = time.monotonic()

    def hear(self, delivery: Delivery, *, idle: bool) -> None:
        """Take over the numbers in `delivery`; an `idle` evaluator need not make progress."""
        self.counts = delivery.counts
        self.spent = delivery.spent
        self.waits = delivery.waits
        self.probed = delivery.probed or self.probed
        self.measured = delivery.measured or self.measured
        if delivery.progress != self.progress or idle:
            self.progress = delivery.progress
            self.begin_waiting()

    def check_progress(self) -> None:
        """Raise Hung after `patience` seconds without progress."""
        if time.monotonic() - self._progressed > self._patience:
            raise Hung(self.name)


class Roster:
    """The evaluators that are open, by name. `hire` starts one, `join` adds an open one, `leave` removes one.

    `judge` makes other judges than the configured ones, in every evaluator; `patience` is for one that no longer
    answers.
    """

    def __init__(
        self, config: RunConfig, backing: Backing, judge: MakeJudge | None, patience: Patience | None
    ) -> None:
        self._setup = Setup(
            config=config,
            slots=0,
            flush_seconds=config.resolved.cluster.flush_seconds,
            make_judge=judge,
            patience=patience,
            log=form(),
        )
        self._backing = backing
        self._patience = patience_of(config) + backing.patience
        self._numbers = itertools.count()
        self._members: dict[str, Member] = {}
        self._past_counts = Counts()
        self._past_spent = Spent()
        self._past_families: list[Family] = []

    @property
    def members(self) -> Mapping[str, Member]:
        """The evaluators that are open."""
        return self._members

    @property
    def counts(self) -> Counts:
        """Where judgments and pages came from until now, including what evaluators that are gone last reported."""
        return sum((member.counts for member in self._members.values()), self._past_counts)

    @property
    def spent(self) -> Spent:
        """Questions asked and money spent by all evaluators, including those that are gone."""
        return sum((member.spent for member in self._members.values()), self._past_spent)

    @property
    def families(self) -> list[Family]:
        """The numbers of the evaluators; of those that are gone, the last reported ones that still count."""
        return [
            *self._past_families,
            *(family for member in self._members.values() for family in member.measured),
        ]

    def hire(self, slots: int) -> Member:
        """Start an evaluator that may count on `slots` of the judge's requests in flight."""
        name = f"evaluator {next(self._numbers)}"
        fetchers = self._backing.fetchers
        setup = msgspec.structs.replace(
            self._setup,
            slots=slots,
            replicas=self._backing.replicated,
            fetchers=0 if fetchers is None else fetchers.count,
            about={**current(), "worker": name},
        )
        return Member(name, setup, self._patience)

    def join(self, member: Member) -> None:
        """Add `member`, which is open."""
        self._members[member.name] = member

    def leave(self, member: Member) -> None:
        """Remove `member`, and keep its numbers, except gauges."""
        self._members.pop(member.name, None)
        self._past_counts += member.counts
        self._past_spent += member.spent
        families = (*self._past_families, *member.measured)
        self._past_families = added(family for family in families if family.kind != "gauge")
