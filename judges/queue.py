"""Limits how many questions are out at once, and chooses the next: by priority and arrival alone, or by context.

`Slots` knows nothing of contexts. `ContextQueue` sends questions about one context together, for the prefix cache.
Waiting questions are grouped by context. Of a cold context one question, the leader, goes first; its followers wait
until the leader's prompt is in the cache, and get ready meanwhile (their prompts are made, say). A context is started
only when everything about the contexts already started fits into the cache beside it, so that a small cache does not
thrash. Lower priorities go first, whatever the context. A question waits at most a stated time: then it is sent,
together with all that wait for its context.
"""

import asyncio
import heapq
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count


class Slots:
    """`total` slots, given to callers: by priority (lower first), then by arrival. One event loop."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    async def acquire(self, priority: int = 0) -> None:
        """Take a slot, waiting for one if need be. A caller that is cancelled while waiting holds none."""
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (priority, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot was handed over before the cancellation arrived
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back: to the first caller that still waits, else to the next that comes."""
        self._free += 1
        self._hand_out()

    @property
    def in_use(self) -> int:
        """How many are taken; more than `total` for a while after `total` was lowered."""
        return self.total - self._free

    def resize(self, total: int) -> None:
        """Change the number of slots to `total`. Those taken stay taken until they are given back."""
        self._free += total - self.total
        self.total = total
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free > 0 and self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                self._free -= 1


class Turn:
    """A question that was sent. Its sender calls `warm` once its prompt is in the cache."""

    def __init__(self, queue: "ContextQueue", group: "_Group") -> None:
        self._queue = queue
        self._group = group

    def warm(self) -> None:
        """The context is in the cache: its followers may go."""
        if not self._group.warm:
            self._group.warm = True
            self._queue._send()


class _Entry:
    """A question: its rank (priority, then arrival), its size, whether its turn is near, and whether it may go."""

    def __init__(self, rank: tuple[int, int], own: int) -> None:
        loop = asyncio.get_running_loop()
        self.rank = rank
        self.own = own
        self.near: asyncio.Future[None] = loop.create_future()
        self.waits_near = False
        self.go: asyncio.Future[None] = loop.create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.overdue = False

    def __lt__(self, other: "_Entry") -> bool:
        return self.rank < other.rank


class _Group:
    """The questions about one context, from the first that waits to the last that is answered."""

    def __init__(self, context: bytes, shared: int) -> None:
        self.context = context
        self.shared = shared
        self.own = 0
        self.waiting: list[_Entry] = []
        self.in_flight = 0
        self.begun = False
        self.warm = False

    def first(self) -> _Entry | None:
        """The first that still waits."""
        while self.waiting and self.waiting[0].go.done():
            heapq.heappop(self.waiting)
        return self.waiting[0] if self.waiting else None

    @property
    def is_leader_out(self) -> bool:
        return self.in_flight > 0 and not self.warm


class _Ranked:
    """A group at the rank of its first question."""

    def __init__(self, rank: tuple[int, int], group: _Group) -> None:
        self.rank = rank
        self.group = group

    def __lt__(self, other: "_Ranked") -> bool:
        return self.rank < other.rank

    @property
    def priority(self) -> int:
        return self.rank[0]


class ContextQueue:
    """At most `total` questions are out at once, and none waits here for more than `hold_s` seconds.

    `capacity` is what the judge's cache holds, in the unit of `turn`'s sizes; it may be set at any time. The bound
    comes before `total` and `capacity`. One event loop.
    """

    def __init__(self, total: int, *, hold_s: float = 30.0, capacity: float = math.inf) -> None:
        self.capacity = capacity
        self._total = total
        self._hold_s = hold_s
        self._groups: dict[bytes, _Group] = {}
        self._begun: dict[bytes, _Group] = {}
        self._cold: list[_Ranked] = []  # may hold groups begun or gone, and old ranks
        self._in_flight = 0
        self._near = 0  # whose turn is near, and who are not out yet
        self._arrivals = count()
        self._paused = False
        self._idle: asyncio.Future[None] | None = None

    @asynccontextmanager
    async def turn(
        self,
        context: bytes,
        priority: int = 0,
        shared: int = 0,
        own: int = 0,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncIterator[Turn]:
        """Wait for the turn of a question about `context`; it is over when the block is left.

        `shared` is the size of the context, `own` that of the rest of the prompt. A block that is left without an
        exception has warmed its context. `prepare` is awaited first, mostly while others still have their turns; of
        those that wait, never more than `total` are prepared.
        """
        group = self._groups.setdefault(context, _Group(context, shared))
        entry = self._enter(group, priority, own)
        try:
            if prepare is not None:
                await entry.near
                await prepare()
            await entry.go
            turn = Turn(self, group)
            yield turn
            turn.warm()
        finally:
            if entry.timer is not None:
                entry.timer.cancel()
            group.own -= entry.own
            if entry.go.done() and not entry.go.cancelled():
                group.in_flight -= 1
                self._in_flight -= 1
            else:
                entry.go.cancel()
                self._near -= entry.waits_near
            if not group.in_flight and group.first() is None and self._groups.get(group.context) is group:
                del self._groups[group.context]
                self._begun.pop(group.context, None)
            if self._idle is not None and not self._in_flight:
                self._idle.set_result(None)
                self._idle = None
            self._send()

    async def pause(self) -> None:
        """Send nothing more, until `resume`; returns when nothing is out. The bound waits too."""
        self._paused = True
        while self._in_flight:
            if self._idle is None:
                self._idle = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)

    def resume(self) -> None:
        """Send again, overdue questions first."""
        self._paused = False
        for group in list(self._groups.values()):
            if any(entry.overdue and not entry.go.done() for entry in group.waiting):
                self._flush(group)
        self._send()

    def _enter(self, group: _Group, priority: int, own: int) -> _Entry:
        entry = _Entry((priority, next(self._arrivals)), own)
        entry.timer = asyncio.get_running_loop().call_later(self._hold_s, self._expire, group, entry)
        heapq.heappush(group.waiting, entry)
        group.own += own
        if group.begun:
            self._approach(entry)
        if not group.begun and group.first() is entry:
            heapq.heappush(self._cold, _Ranked(entry.rank, group))
        self._send()
        return entry

    def _expire(self, group: _Group, entry: _Entry) -> None:
        entry.overdue = True
        if not self._paused and not entry.go.done():
            self._flush(group)

    def _flush(self, group: _Group) -> None:
        while group.first() is not None:
            self._go(group)

    def _send(self) -> None:
        """Send what may go now."""
        while not self._paused and self._in_flight < self._total:
            group = self._next()
            if group is None:
                return
            self._go(group)

    def _go(self, group: _Group) -> None:
        """Send the first of `group` that waits."""
        entry = heapq.heappop(group.waiting)
        self._near -= entry.waits_near
        if not entry.near.done():
            entry.near.set_result(None)
        entry.go.set_result(None)
        if entry.timer is not None:
            entry.timer.cancel()
        group.in_flight += 1
        self._in_flight += 1
        if not group.begun:
            group.begun = True
            self._begun[group.context] = group
            for waiting in group.waiting:
                self._approach(waiting)

    def _approach(self, entry: _Entry) -> None:
        """The turn of `entry` is near, unless that can be said of enough others."""
        if self._near < self._total and not entry.near.done() and not entry.go.done():
            self._near += 1
            entry.waits_near = True
            entry.near.set_result(None)

    def _next(self) -> _Group | None:
        """The group whose first question goes next: by priority, then one already begun, then by arrival."""
        begun = min(
            (
                _Ranked(entry.rank, group)
                for group in self._begun.values()
                if not group.is_leader_out and (entry := group.first()) is not None
            ),
            default=None,
        )
        cold = self._coldest()
        if begun is not None and (cold is None or begun.priority <= cold.priority):
            return begun.group
        if cold is None or not self._fits(cold.group):
            return None
        return cold.group

    def _coldest(self) -> _Ranked | None:
        """The first in rank among the groups not yet begun."""
        while self._cold:
            found = self._cold[0]
            entry = found.group.first()
            if not found.group.begun and entry is not None and entry.rank == found.rank:
                return found
            heapq.heappop(self._cold)
            if not found.group.begun and entry is not None:
                heapq.heappush(self._cold, _Ranked(entry.rank, found.group))
        return None

    def _fits(self, group: _Group) -> bool:
        """Whether `group` may begin: if nothing is out, or its first question fits beside all that is begun."""
        if not self._in_flight:
            return True
        entry = group.first()
        load = sum(begun.shared + begun.own for begun in self._begun.values())
        return load + group.shared + (entry.own if entry else 0) <= self.capacity
