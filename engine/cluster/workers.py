"""The services that evaluators use on Ray: replicas of the judge, if it has any, and fetchers of live pages."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import ray

from adjudge.engine.cluster.fetch_actor import FetchActor
from adjudge.engine.cluster.judge_actor import JudgeActor
from adjudge.engine.cluster.messages import MakeJudge
from adjudge.engine.cluster.supervisor import Service, Services
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import ClusterConfig, RunConfig
from adjudge.engine.evaluation.assembly import make_judge
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.judges import Judge
from adjudge.prompts import PromptBook

__all__ = ["Backing", "cpus_of_cluster", "patience_of", "replica_options"]


class Backing:
    """Judges and fetchers for `config`, either of which may be None; evaluators then use their own, or none.

    `judge` makes another judge than the configured one, with that many `replicas`; `changed` is called whenever
    a service starts or ends.
    """

    def __init__(
        self,
        config: RunConfig,
        metrics: Metrics,
        changed: Callable[[], None],
        judge: MakeJudge | None = None,
        replicas: int = 0,
    ) -> None:
        settings = config.cluster_config()
        if judge is None:
            judge, replicas = partial(_configured, config.judge_config()), config.judge_config().replicas or 0
        common: dict[str, Any] = {"hung": settings.hung_seconds, "changed": changed}
        self.judges = self.fetchers = None
        if replicas:
            self.judges = Services(
                JudgeActor,
                (config, judge),
                replicas,
                replica_options(settings),
                patience=patience_of(config),
                lost=partial(metrics.lost, "judge"),
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
                **common,
            )

    @property
    def live(self) -> tuple[list[Service], list[Service]]:
        """The judges and the fetchers that can be used now."""
        return (
            [] if self.judges is None else self.judges.live,
            [] if self.fetchers is None else self.fetchers.live,
        )

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
        return [kind for kind in (self.judges, self.fetchers) if kind is not None]

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
    """Seconds after which a worker that waits for the judge, and makes no progress, counts as hung."""
    judge = config.judge_config()
    return config.cluster_config().hung_seconds + (0.0 if judge.backend == "lexical" else judge.timeout_s)


def _configured(judge: JudgeConfig, book: PromptBook) -> Judge:
    return make_judge(judge, book)


def replica_options(settings: ClusterConfig) -> dict[str, Any]:
    """Ray's options for a replica of the judge."""
    wanted = settings.judge_resources or {"CPU": settings.cpus}
    options: dict[str, Any] = {"num_cpus": wanted.get("CPU", 0), "num_gpus": wanted.get("GPU", 0)}
    return options | {"resources": {name: n for name, n in wanted.items() if name not in ("CPU", "GPU")}}
