"""A Ray actor as the driver sees it: called with a time limit, and killed for certain."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from adjudge.engine.cluster.messages import Opened

__all__ = ["Hung", "Remote"]

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
