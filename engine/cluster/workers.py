"""The services on Ray that evaluators use: judge replicas, if any, and fetchers of live pages.

An evaluator may also run in this process while its replicas and fetchers run on Ray.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import ray

from adjudge.engine.cluster.fetch_actor import FetchActor, Fetchers
from adjudge.engine.cluster.judge_actor import JudgeActor, Replicas
from adjudge.engine.cluster.messages import MakeJudge, Replicated
from adjudge.engine.cluster.session import connected
from adjudge.engine.cluster.supervisor import Service, Services
from adjudge.engine.config.judge import Seat
from adjudge.engine.config.run import ClusterConfig, RunConfig
from adjudge.engine.errors import ClusterError
from adjudge.engine.evaluation.assembly import make_judge, open_evaluator
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.evaluation.gate import Gates
from adjudge.engine.store import Place
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.judges import Judge
from adjudge.prompts import PromptBook

_log = logging.getLogger(__name__)


class Backing:
    """Replicas of judges, by the judges' names, and fetchers for `config`, which may be None.

    Evaluators use their own judges and fetchers if there are none here. `judge` makes other judges than the
    configured ones, with that many `replicas`; `changed` is called whenever a service starts or ends.
    """

    def __init__(
        self,
        config: RunConfig,
        metrics: Metrics,
        changed: Callable[[], None],
        judge: MakeJudge | None = None,
        replicas: int = 0,
    ) -> None:
        settings = config.resolved.cluster
        common: dict[str, Any] = {"hung": settings.hung_seconds, "changed": changed}
        self.judges: dict[str, Services] = {}
        self.fetchers: Services | None = None
        for name, seat in config.resolved.bench.seats.items():
            count = replicas if judge is not None else seat.config.replicas
            if count:
                self.judges[name] = Services(
                    JudgeActor,
                    (config, judge or partial(_configured, seat)),
                    count,
                    replica_options(settings),
                    patience=settings.hung_seconds + seat.timeout_s,
                    lost=partial(metrics.lost, "judge"),
                    title="JudgeActor" if name == "judge" else f"JudgeActor of {name}",
                    **common,
                )
        if config.fetch.mode == "live":
            self.fetchers = Services(
                FetchActor,
                (config.fetch,),
                settings.fetchers or max(1, cpus_of_cluster() // 2),
                {"num_cpus": settings.cpus},
                patience=settings.hung_seconds + config.fetch.timeouts.total,
                lost=partial(metrics.lost, "fetcher"),
                title="FetchActor",
                **common,
            )

    @property
    def live(self) -> tuple[dict[str, list[Service]], list[Service]]:
        """The judges, by name, and the fetchers that can be used now."""
        judges = {name: kind.live for name, kind in self.judges.items()}
        return judges, [] if self.fetchers is None else self.fetchers.live

    @property
    def replicated(self) -> dict[str, Replicated]:
        """The judges with replicas, by name; each has one that is open."""
        return {
            name: Replicated(kind.opened.result().judges[""], kind.count)
            for name, kind in self.judges.items()
        }

    @property
    def is_there(self) -> bool:
        """Whether each kind has a live service now; a worker that waits for one is not hung."""
        return all(kind.live for kind in self._kinds)

    @property
    def patience(self) -> float:
        """Seconds without progress until a service is replaced; workers that wait for it must be given longer."""
        return max((kind.patience for kind in self._kinds), default=0.0)

    @property
    def _kinds(self) -> list[Services]:
        return [*self.judges.values(), *([] if self.fetchers is None else [self.fetchers])]

    def keepers(self) -> list[Coroutine[Any, Any, None]]:
        """One coroutine for each place, to run for as long as the services are needed."""
        return [kind.keep(place) for kind in self._kinds for place in range(kind.count)]

    async def close(self) -> None:
        """Let each service close what it has open, then end it. Cancel the keepers first."""
        await asyncio.gather(*(kind.close() for kind in self._kinds))


def cpus_of_cluster() -> int:
    """Ray's logical CPUs, at least 1."""
    found: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return max(1, int(found.get("CPU", 1)))


def patience_of(config: RunConfig) -> float:
    """Seconds after which a worker that waits for a judge or a site, and makes no progress, counts as hung."""
    slowest = max(seat.timeout_s for seat in config.resolved.bench.seats.values())
    rests = config.fetch.patience_s if config.fetch.mode == "live" else 0.0
    return config.resolved.cluster.hung_seconds + max(slowest, rests)


def _configured(seat: Seat, book: PromptBook) -> Judge:
    return make_judge(seat.config, book, seat.free_text)


def replica_options(settings: ClusterConfig) -> dict[str, Any]:
    """Ray's options for a replica of the judge."""
    wanted = settings.judge_resources or {"CPU": settings.cpus}
    options: dict[str, Any] = {"num_cpus": wanted.get("CPU", 0), "num_gpus": wanted.get("GPU", 0)}
    return options | {"resources": {name: n for name, n in wanted.items() if name not in ("CPU", "GPU")}}


@asynccontextmanager
async def open_front(config: RunConfig, place: Place, gates: Gates) -> AsyncIterator[Evaluator]:
    """The evaluator of `config`, storing at `place` as `open_evaluator` does, for callers that wait for single cases.

    A judge without `replicas` answers from this process. A replica that dies is replaced, and its unanswered
    questions are asked again. `gates` are made before the judges, as there. Raises UsageError, StoreError, JudgeError,
    ClusterError.
    """
    settings = config.resolved.cluster
    with connected(settings.address, settings.cpus):
        replicas: dict[str, Replicas] = {}
        fetchers: Fetchers | None = None

        def tell() -> None:
            judges, readers = backing.live
            for name, one in replicas.items():
                one.update(judges[name])
            if fetchers is not None:
                fetchers.update(readers)

        backing = Backing(config, Metrics(), tell)
        keepers = [asyncio.ensure_future(keeper) for keeper in backing.keepers()]
        for keeper in keepers:
            keeper.add_done_callback(_say)
        try:
            for judge in backing.judges.values():
                opened: asyncio.Future[Any] = judge.opened
                await asyncio.wait([opened, *keepers], return_when=asyncio.FIRST_COMPLETED)
                for keeper in keepers:
                    if keeper.done():
                        keeper.result()
            replicas |= {name: Replicas(one) for name, one in backing.replicated.items()}
            if backing.fetchers is not None:
                fetchers = Fetchers(backing.fetchers.count)
            tell()
            async with open_evaluator(
                config,
                place,
                judges=replicas,
                fetcher=fetchers,
                gates=gates,
            ) as evaluator:
                yield evaluator
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
            await backing.close()


def _say(keeper: "asyncio.Task[None]") -> None:
    """Log why a keeper failed. Callers that wait for its service give up at their deadlines."""
    if not keeper.cancelled() and isinstance(keeper.exception(), ClusterError):
        _log.error("%s", keeper.exception())
