"""Reads live pages in a few processes, chosen by the URL's host so that rate limits per host hold across the cluster.

After a redirect to another host, the process that follows it counts as a separate visitor there.
"""

import asyncio
import os
from typing import Any

import ray
from ray.exceptions import RayActorError

from adjudge.engine.cluster.messages import Failure, Opened, Pulse
from adjudge.engine.cluster.supervisor import Service
from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import make_fetcher
from adjudge.fetchers.page import Fetcher, Page, failed
from adjudge.fetchers.urls import NormalURL, worker_of

_LOSSES = 3


class FetchActor:
    """Reads pages, as a Ray actor on one event loop. `open` before anything else."""

    def __init__(self, config: FetchConfig) -> None:
        self._config = config
        self._progress = 0
        self._outstanding = 0

    async def open(self) -> Opened:
        """Make the fetcher."""
        try:
            self._fetcher, source = make_fetcher(self._config)
        except UsageError as error:
            return Opened(failure=Failure.of(error))
        node = ray.get_runtime_context().get_node_id()
        return Opened(pages=source, process=os.getpid(), node=node)

    async def page(self, address: NormalURL) -> Page:
        """The page at `address`."""
        assert self._fetcher is not None
        self._outstanding += 1
        try:
            return await self._fetcher.page(address)
        finally:
            self._outstanding -= 1
            self._progress += 1

    async def pulse(self) -> Pulse:
        """The progress of this worker."""
        return Pulse(progress=self._progress, outstanding=self._outstanding)

    async def stop(self) -> None:
        """Close connections and end worker processes."""
        if self._fetcher is not None:
            await self._fetcher.close()


class Fetchers(Fetcher):
    """The live fetch workers as one fetcher; URLs whose worker is gone wait for its successor."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._actors: dict[str, Any] = {}
        self._changed = asyncio.Event()

    def update(self, live: list[Service]) -> None:
        """Use the workers `live` from now on."""
        self._actors = {one.place: one.actor for one in live}
        self._changed.set()
        self._changed = asyncio.Event()

    async def page(self, address: NormalURL) -> Page:
        """The page at `address`; network_unavailable if several workers died reading it."""
        place = f"{FetchActor.__name__} {worker_of(address, self._count)}"
        for _ in range(_LOSSES):
            while (actor := self._actors.get(place)) is None:
                await self._changed.wait()
            try:
                page: Page = await actor.page.remote(address)
                return page
            except RayActorError:
                if self._actors.get(place) is actor:
                    del self._actors[place]
        return failed(address, "network_unavailable", f"{_LOSSES} fetch workers died while reading it")

    async def close(self) -> None:
        """Do nothing: the driver owns the workers."""
