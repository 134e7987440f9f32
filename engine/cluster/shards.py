"""Which evaluator gets which cases: sharded by task, handed out as there is room, and taken back from dead workers.

A task's cases stay with one evaluator until one of them is written, so that what they share is asked once; after that
any worker with room may take the rest. Cases in flight when a worker dies are suspects: they run again one at a time,
on a worker that has nothing else. A case that was alone on a worker when it died, twice, is set aside.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import groupby

from adjudge.engine.cluster.messages import Delivery, Numbered
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import ScoringProtocol, by_case, unscored
from adjudge.scoring.contract.scorecard import Scorecard

DEATHS = 2  # of workers that had one case alone


class _Shard:
    """A task: `unsent` cases, `owners`, whether a case is written (`led`), its size, and how many cases are `out`."""

    def __init__(self) -> None:
        self.unsent: deque[_Item] = deque()
        self.owners: set[str] = set()
        self.led = False
        self.size = 0
        self.out = 0


class _Item:
    """A case and its state."""

    def __init__(self, number: int, case: Case, shard: _Shard) -> None:
        self.number = number
        self.case = case
        self.shard = shard
        self.suspect = False
        self.finished = False
        self.deaths = 0


class Shards:
    """The cases of a run, read as they are needed, and where each one is until it is written. Does not use Ray."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._unread = groupby(enumerate(cases), key=lambda numbered: numbered[1].task.id)
        self._open: list[_Shard] = []
        self._suspects: deque[_Item] = deque()
        self._held: dict[str, dict[int, _Item]] = {}
        self._flying: dict[str, int] = {}
        self._alone: set[str] = set()
        self._ahead = self._loaded()

    @property
    def is_done(self) -> bool:
        """Whether every case is written."""
        unsent = any(shard.unsent for shard in self._open)
        return not (self._ahead or self._suspects or unsent or any(self._held.values()))

    def awaited(self) -> list[str]:
        """Workers that should write their finished cases now, because others wait for them or nothing else is left."""
        found = set()
        if self._ahead is None:
            found |= {owner for shard in self._open if not shard.led for owner in shard.owners}
            if not self._suspects and not self._open and not any(self._flying.values()):
                found |= set(self._held)
        return [worker for worker in found if len(self._held[worker]) > self._flying[worker]]

    def join(self, worker: str) -> None:
        """Let `worker` be given cases from now on."""
        self._held[worker] = {}
        self._flying[worker] = 0

    def in_flight(self, worker: str) -> int:
        """The number of cases that `worker` has and has not finished."""
        return self._flying[worker]

    def give(self, worker: str, room: int) -> tuple[list[Numbered], bool]:
        """At most `room` cases, now held by `worker`, and whether it must first refresh its view of the store."""
        if worker in self._alone:
            return [], False
        if self._suspects and (suspect := self._suspect(worker)) is not None:
            return self._hand(worker, [suspect]) if not self.in_flight(worker) else ([], False)
        items: list[_Item] = []
        while len(items) < room and (shard := self._shard(worker)) is not None:
            shard.owners.add(worker)
            given = min(room - len(items), self._allowed(shard))
            items += [shard.unsent.popleft() for _ in range(given)]
            shard.out += given
        self._open = [shard for shard in self._open if shard.unsent]
        return self._hand(worker, items)

    def deal(self, rooms: Mapping[str, int]) -> dict[str, tuple[list[Numbered], bool]]:
        """Cases that `give` hands to the workers, least busy first; `rooms` maps a worker to its most cases."""
        given: dict[str, tuple[list[Numbered], bool]] = {}
        hungry = [(self.in_flight(worker), worker) for worker in rooms]
        heapq.heapify(hungry)
        while hungry:
            load, worker = heapq.heappop(hungry)
            room = rooms[worker] - load
            if room <= 0:
                continue
            cases, refresh = self.give(worker, max(1, room // 8))
            if cases:
                before, fresh = given.get(worker, ([], False))
                given[worker] = before + cases, fresh or refresh
                heapq.heappush(hungry, (load + len(cases), worker))
        return given

    def finish(self, worker: str, number: int) -> None:
        """Note that `worker` has scored a case and not yet written it."""
        item = self._held[worker].get(number)
        if item is not None and not item.finished:
            item.finished = True
            self._flying[worker] -= 1
            self._alone.discard(worker)

    def write(self, worker: str, number: int, cards: tuple[Scorecard, ...]) -> bool:
        """Note that `worker` has written a case. Returns False if it does not hold that case."""
        item = self._held[worker].pop(number, None)
        if item is None:
            return False
        item.shard.out -= 1
        item.shard.led = item.shard.led or any(card.judgments for card in cards)
        return True

    def lose(self, worker: str) -> list[Case]:
        """Take back the cases of `worker`, which is dead. Returns those that are set aside."""
        items = list(self._held.pop(worker).values())
        del self._flying[worker]
        self._alone.discard(worker)
        shards = {id(item.shard): item.shard for item in items} | {id(s): s for s in self._open}
        for shard in shards.values():
            shard.owners.discard(worker)
        aside = []
        for item in items:
            if item.finished:
                self._put_back(item)
                continue
            item.deaths += item.suspect
            item.suspect = True
            if item.deaths >= DEATHS:
                aside.append(item.case)
                item.shard.out -= 1
            else:
                self._suspects.append(item)
        return aside

    def _put_back(self, item: _Item) -> None:
        item.suspect = item.finished = False
        item.shard.out -= 1
        item.shard.unsent.append(item)
        if item.shard not in self._open:
            self._open.append(item.shard)

    def _suspect(self, worker: str) -> _Item | None:
        """The suspect that `worker` runs next, if no other worker has fewer cases in flight."""
        mine = self.in_flight(worker)
        if any(self.in_flight(other) < mine for other in self._held):
            return None
        for item in self._suspects:
            if self._may_take(worker, item.shard):
                return item
        return None

    def _hand(self, worker: str, items: list[_Item]) -> tuple[list[Numbered], bool]:
        for item in items:
            if item.suspect:
                self._suspects.remove(item)
                self._alone.add(worker)
            item.shard.owners.add(worker)
            self._held[worker][item.number] = item
        self._flying[worker] += len(items)
        return [(item.number, item.case) for item in items], any(item.shard.led for item in items)

    def _may_take(self, worker: str, shard: _Shard) -> bool:
        return not shard.owners or worker in shard.owners or shard.led

    def _allowed(self, shard: _Shard) -> int:
        """How many more cases of `shard` may be given: the last tasks are rationed until they may be shared."""
        if shard.led or self._ahead is not None:
            return len(shard.unsent)
        first = -(-shard.size // max(1, len(self._held)))
        return min(len(shard.unsent), max(0, first - shard.out))

    def _shard(self, worker: str) -> _Shard | None:
        """The shard `worker` takes from next: its own, an unowned one, a new task, then one that others may share."""
        free = [shard for shard in self._open if self._may_take(worker, shard) and self._allowed(shard)]
        own = next((shard for shard in free if worker in shard.owners), None)
        return (
            own
            or next((shard for shard in free if not shard.owners), None)
            or self._read()
            or next(iter(free), None)
        )

    def _read(self) -> _Shard | None:
        """The next task, opened. One is read ahead, to know the last."""
        shard, self._ahead = self._ahead, self._loaded()
        if shard is not None:
            self._open.append(shard)
        return shard

    def _loaded(self) -> _Shard | None:
        _, cases = next(self._unread, (None, None))
        if cases is None:
            return None
        shard = _Shard()
        shard.unsent.extend(_Item(number, case, shard) for number, case in cases)
        shard.size = len(shard.unsent)
        return shard


class Work:
    """`cases` under `protocols`: where each case is (`shards`), and a queue of scorecards that `end` closes."""

    def __init__(self, cases: Iterable[Case], protocols: tuple[ScoringProtocol, ...]) -> None:
        self.shards = Shards(cases)
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._protocols_of = by_case(protocols)
        self._cards: asyncio.Queue[Scorecard | None] = asyncio.Queue()

    def check_complete(self) -> None:
        """Set `complete` if every case is written."""
        if self.shards.is_done and not self.complete.done():
            self.complete.set_result(None)

    def take_in(self, worker: str, delivery: Delivery) -> None:
        """Take in what `worker` has finished and written."""
        for number in delivery.finished:
            self.shards.finish(worker, number)
        for done in delivery.done:
            if self.shards.write(worker, done.case, done.cards):
                for card in done.cards:
                    self._cards.put_nowait(card)

    def lose(self, worker: str) -> None:
        """Return the cases of a dead `worker` to the pool; those that killed too many workers get scorecards here."""
        for case in self.shards.lose(worker):
            for protocol in self._protocols_of(case):
                self._cards.put_nowait(unscored(protocol, case, "worker_died"))

    def end(self) -> None:
        """Let `next_card` return None after the cards already queued."""
        self._cards.put_nowait(None)

    async def next_card(self) -> Scorecard | None:
        """The next scorecard, or None at the end."""
        return await self._cards.get()
