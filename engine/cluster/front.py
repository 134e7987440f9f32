"""An evaluator in this process whose judge's replicas and fetchers run on Ray."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adjudge.engine.cluster.fetch_actor import Fetchers
from adjudge.engine.cluster.judge_actor import Replicas
from adjudge.engine.cluster.session import connected
from adjudge.engine.cluster.workers import Backing
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import ClusterError
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.evaluation.trust import Trust
from adjudge.engine.store import Place
from adjudge.engine.telemetry.metrics import Metrics

__all__ = ["open_front"]

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_front(config: RunConfig, place: Place, trust: Trust) -> AsyncIterator[Evaluator]:
    """The evaluator of `config`, storing at `place` as `open_evaluator` does, for callers that wait for single cases.

    A judge without `replicas` answers from this process. A replica that dies is replaced, and its unanswered
    questions are asked again. `trust` wraps the judge, as it does there. Raises UsageError, StoreError, JudgeError,
    ClusterError.
    """
    settings = config.cluster_config()
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
                judges={name: trust(one, name) for name, one in replicas.items()},
                fetcher=fetchers,
                trust=trust,
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
