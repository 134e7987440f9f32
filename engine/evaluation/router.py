"""Chooses the replica for a question: the one that has seen its context before, unless that one is too busy.

Rendezvous hashing of a question's context group over the live replicas, with bounded load. A context that is in no
cache goes to the first replica in rendezvous order whose load is at most the mean. All its questions follow, to the
least busy of the replicas that have had it, unless that one has at least FLOOR questions outstanding and more than
(1 + EPSILON) times the least busy of all; then one more is chosen as for a cold context. So contexts stay whole, a
replica that joins or leaves moves only its own share of the groups, a flood on one context spreads, and work that
shares nothing spreads evenly. benchmarks/scale.py simulates it beside other policies.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from adjudge.judges import Answer, Asked, Judge, Question, Reply
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import PROBE_SECONDS, Verdict, probe

A = TypeVar("A", bound=Answer)
N = TypeVar("N")
Hashes = npt.NDArray[np.uint64]
Loads = npt.NDArray[np.int64]

EPSILON = 3.0
FLOOR = 64  # questions that a replica answers at once anyway
REMEMBERED = 65_536  # contexts: more than any replicas' caches hold
REST_SECONDS = 5.0

_log = logging.getLogger(__name__)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def name_hash(name: str) -> int:
    """A replica's name as 64 bits."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


def choose(group: int, names: Hashes, loads: Loads, warm: Sequence[int] = ()) -> int:
    """The place of the replica for `group` (64 bits) among `names` uint64[R] with outstanding work `loads` int64[R].

    `warm` are the places that the group has been sent to.
    """
    if warm:
        lightest = min(warm, key=loads.__getitem__)
        if loads[lightest] < FLOOR or loads[lightest] <= (1 + EPSILON) * loads.min():
            return lightest
    weight = names ^ np.uint64(group)
    weight = (weight ^ (weight >> np.uint64(30))) * _MIX_1
    weight = (weight ^ (weight >> np.uint64(27))) * _MIX_2
    weight ^= weight >> np.uint64(31)
    return int(np.argmax(np.where(loads <= loads.mean(), weight | np.uint64(1), np.uint64(0))))


class Warm(Generic[N]):
    """The replicas, by name, that each of the last REMEMBERED groups has been sent to."""

    def __init__(self) -> None:
        self._names: OrderedDict[int, list[N]] = OrderedDict()

    def of(self, group: int) -> list[N]:
        """The replicas that `group` has been sent to."""
        return self._names.get(group, [])

    def add(self, group: int, name: N) -> None:
        """Remember that `group` was sent to `name`."""
        names = self._names.setdefault(group, [])
        self._names.move_to_end(group)
        if name not in names:
            names.append(name)
        if len(self._names) > REMEMBERED:
            self._names.popitem(last=False)


class Router:
    """Several replicas of one judge as one `Judge`. All must have one fingerprint and one sampling.

    A replica that is unavailable rests for REST_SECONDS, and its question goes to the next; only when all are does
    the question come back judge_unavailable. A replica that fails for good (JudgeError) is left out until a probe
    of it is good; the error propagates when it was the last. `loads` says how many questions each replica has
    outstanding.
    """

    def __init__(self, replicas: Mapping[str, Judge]) -> None:
        first = next(iter(replicas.values()), None)
        if first is None:
            raise JudgeError("judge: a router needs at least one replica")
        if len({(one.identity.fingerprint, one.identity.sampling) for one in replicas.values()}) > 1:
            raise JudgeError("judge: replicas must be the same model with the same settings")
        self.identity = first.identity
        self._replicas: dict[str, Judge] = {}
        self._refused = JudgeError("judge: no replica can be used")
        self._names: list[str] = []
        self._judges: list[Judge] = []
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._loads: Loads = np.empty(0, np.int64)
        self._resting: dict[str, float] = {}
        self._warm: Warm[str] = Warm()
        for name, judge in replicas.items():
            self.join(name, judge)

    @property
    def loads(self) -> dict[str, int]:
        """Questions outstanding at each live replica."""
        return dict(zip(self._names, map(int, self._loads), strict=True))

    def join(self, name: str, judge: Judge) -> None:
        """Add a replica; it takes over its own share of the groups from now on."""
        self._replicas[name] = judge
        self._names = [*self._names, name]
        self._judges = [*self._judges, judge]
        self._hashes = np.append(self._hashes, np.uint64(name_hash(name)))
        self._loads = np.append(self._loads, 0)

    def leave(self, name: str) -> None:
        """Send nothing more to a replica; it may still answer its outstanding questions."""
        self._replicas.pop(name, None)
        self._leave_out(name)

    def _leave_out(self, name: str) -> None:
        """Send nothing more to a replica until a probe of it is good."""
        kept = [place for place, known in enumerate(self._names) if known != name]
        self._names = [self._names[place] for place in kept]
        self._judges = [self._judges[place] for place in kept]
        self._hashes, self._loads = self._hashes[kept], self._loads[kept]

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """The verdicts on all replicas; those that cannot be used are left out from now on if any other can."""
        replicas = dict(self._replicas)
        found = await asyncio.gather(*(probe(judge, timeout_s) for judge in replicas.values()))
        good = {
            name
            for name, verdicts in zip(replicas, found, strict=True)
            if all(verdict.is_good for verdict in verdicts)
        }
        for name in replicas if good else ():
            if name not in good:
                self._leave_out(name)
            elif name not in self._names:
                self.join(name, replicas[name])
        return tuple(verdict for verdicts in found for verdict in verdicts)

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The reply of the replica that the question is routed to, or of the next available one."""
        group = int.from_bytes(question.context.digest[:8], "big")
        tried: set[str] = set()
        reply: Reply[A] | None = None
        while not tried.issuperset(self._names):
            place = self._next(group, tried)
            name, judge = self._names[place], self._judges[place]
            self._warm.add(group, name)
            self._shift(name, 1)
            try:
                reply = await judge.answer(question, asked)
            except JudgeError as error:
                self._refused = error
                if name in self._names:
                    self._leave_out(name)
                    if self._names:
                        _log.warning("%s (left out; %d other servers answer)", error, len(self._names))
                continue
            finally:
                self._shift(name, -1)
            tried.add(name)
            if reply.reason != "judge_unavailable":
                return reply
            self._resting[name] = asyncio.get_running_loop().time() + REST_SECONDS
        if reply is None:
            raise self._refused
        return reply

    def _next(self, group: int, tried: set[str]) -> int:
        now = asyncio.get_running_loop().time()
        rested = [
            p
            for p, name in enumerate(self._names)
            if name not in tried and self._resting.get(name, 0.0) <= now
        ]
        places = rested or [p for p, name in enumerate(self._names) if name not in tried]
        names = [self._names[p] for p in places]
        warm = [names.index(name) for name in self._warm.of(group) if name in names]
        return places[choose(group, self._hashes[places], self._loads[places], warm)]

    def _shift(self, name: str, by: int) -> None:
        if name in self._names:
            self._loads[self._names.index(name)] += by

    async def close(self) -> None:
        """Close every replica."""
        await asyncio.gather(*(judge.close() for judge in self._replicas.values()))
