"""Pools of actors that evaluators use (judges and fetchers); an actor that dies or hangs is replaced."""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec
from ray.exceptions import RayActorError

from adjudge.engine.cluster.messages import Hung, Opened, Pulse, Remote
from adjudge.engine.errors import ClusterError
from adjudge.engine.telemetry.logs import event

DEATHS_AT_START = 5
_PULSE_SECONDS = 2.0
_log = logging.getLogger(__name__)


class Service(msgspec.Struct, frozen=True):
    """One actor of a kind: its place, which its successor inherits, its own name, and its handle."""

    place: str
    name: str
    actor: Any


class Services:
    """`count` actors of class `kind`, made of `arguments` with Ray's `options`. `title` begins their names.

    One that does not answer for `hung` seconds, or has work and makes no progress for `patience`, is replaced.
    `changed` is called whenever one comes or goes, `lost` whenever one is replaced.
    """

    def __init__(
        self,
        kind: type,
        arguments: tuple[object, ...],
        count: int,
        options: dict[str, Any],
        *,
        hung: float,
        patience: float,
        changed: Callable[[], None],
        lost: Callable[[], None],
        title: str,
    ) -> None:
        self.count = count
        self.patience = patience
        self.opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self._kind = kind
        self._title = title
        self._arguments = arguments
        self._options = options
        self._hung = hung
        self._changed = changed
        self._lost = lost
        self._numbers = itertools.count()
        self._live: dict[int, Remote] = {}

    @property
    def live(self) -> list[Service]:
        """The actors that can be used now."""
        return [
            Service(f"{self._title} {place}", one.name, one.actor)
            for place, one in sorted(self._live.items())
        ]

    async def keep(self, place: int) -> None:
        """Keep one actor at `place`, replaced when it dies or hangs. Raises what it failed to open with."""
        deaths = 0
        while True:
            name = f"{self._title} {place}.{next(self._numbers)}"
            remote = Remote(name, self._kind, self._options, *self._arguments)
            try:
                await remote.open()
                deaths = 0
                self._live[place] = remote
                if not self.opened.done():
                    self.opened.set_result(remote.opened)
                self._changed()
                await self._watch(remote)
            except (RayActorError, Hung) as error:
                self._lost()
                event(_log, "worker lost", logging.WARNING, worker=name, why=type(error).__name__)
                deaths += not remote.opened.process
                if deaths == DEATHS_AT_START:
                    raise ClusterError(
                        f"cluster: {name} died before doing anything, {DEATHS_AT_START} times in a row: {error}"
                    ) from error
            finally:
                if self._live.get(place) is remote:
                    del self._live[place]
            self._changed()
            await remote.end()

    async def _watch(self, remote: Remote) -> None:
        progress, since = -1, time.monotonic()
        while True:
            pulse: Pulse = await remote.call("pulse", within=self._hung)
            now = time.monotonic()
            if pulse.progress != progress or not pulse.outstanding:
                progress, since = pulse.progress, now
            if now - since > self.patience:
                raise Hung(remote.name)
            await asyncio.sleep(_PULSE_SECONDS)

    async def close(self) -> None:
        """Let each actor close what it has open, then end it."""

        async def stop(remote: Remote) -> None:
            try:
                await remote.call("stop", within=10.0)
            except (RayActorError, Hung):
                pass
            finally:
                await remote.end()

        await asyncio.gather(*(stop(remote) for remote in self._live.values()))
