"""A discrete-event simulation of judge replicas with prefix caches, under five ways of routing questions to them.

A replica prefills one prompt at a time, at PREFILL tokens per second, skipping the part in its cache; then it decodes
up to BATCH questions at once, each for DECODE_SECONDS, plus or minus half of it at random. Its cache is LRU over whole
contexts. Questions come in a closed loop, like the engine's: OUTSTANDING questions per replica are in flight, all
questions about one context are sent together, and when all of them are answered the next context is opened.
"""

import heapq
import random
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import count

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.engine.evaluation.router import Warm, choose, name_hash

PREFILL = 10_000.0  # tokens a second
DECODE_SECONDS = 2.0  # 100 tokens at 50 a second
BATCH = 64  # questions at once
OUTSTANDING = 256  # questions asked and not answered, a replica
OWN_TOKENS = 100  # of a question, beside its context

Policy = Callable[[int, npt.NDArray[np.int64]], int]


class Workload(msgspec.Struct, frozen=True):
    """`contexts` a replica, `questions` about each, `tokens` of a context; `cached` contexts fit a replica's cache."""

    name: str
    contexts: int
    questions: int
    tokens: int
    cached: int


WORKLOADS = (
    Workload("one report x 60 rubrics", 80, 60, 6000, 8),
    Workload("one page x 12 statements", 320, 12, 3000, 32),
    Workload("one global prefix", 0, 2400, 2000, 8),
    Workload("no sharing", 2400, 1, 3000, 240),
)


class Outcome(msgspec.Struct, frozen=True):
    """Questions a second; prompt tokens computed over the least possible; busiest replica's questions over the mean."""

    throughput: float
    recomputed: float
    worst: float


class _Replica:
    def __init__(self, cached: int) -> None:
        self.queue: deque[int] = deque()
        self.cache: OrderedDict[int, None] = OrderedDict()
        self.capacity = cached
        self.running = 0
        self.prefilling = False
        self.served = 0

    def hit(self, context: int) -> bool:
        """Whether `context` is cached; it is afterwards."""
        found = context in self.cache
        self.cache[context] = None
        self.cache.move_to_end(context)
        if len(self.cache) > self.capacity:
            self.cache.popitem(last=False)
        return found


def simulate(workload: Workload, replicas: int, policy: Policy, seed: int = 0) -> Outcome:
    """Run `workload` over `replicas` under `policy`."""
    return _Simulation(workload, replicas, policy, seed).run()


class _Simulation:
    def __init__(self, workload: Workload, replicas: int, policy: Policy, seed: int) -> None:
        self.workload = workload
        self.policy = policy
        self.replicas = [_Replica(workload.cached) for _ in range(replicas)]
        self.loads = np.zeros(replicas, np.int64)
        count_of = workload.contexts * replicas or 1
        each = workload.questions if workload.contexts else workload.questions * replicas
        self.groups = np.random.default_rng(seed).integers(1, 2**63, count_of).tolist()
        self.left = [each] * count_of
        self.unasked = deque((context, each) for context in range(count_of))
        if not workload.contexts:
            self.unasked = deque((0, 1) for _ in range(each))
        self.events: list[tuple[float, int, int, int, int]] = []
        self.order = count()
        self.chance = random.Random(seed)
        self.computed = 0.0
        self.now = 0.0

    def run(self) -> Outcome:
        workload, n = self.workload, len(self.replicas)
        together = workload.questions if workload.contexts else 1
        for _ in range(OUTSTANDING * n // together):
            self._open()
        total = sum(self.left)
        while self.events:
            self.now, _, place, context, is_prefill = heapq.heappop(self.events)
            if is_prefill:
                self._prefilled(place, context)
            else:
                self._answered(place, context)
        served = np.array([replica.served for replica in self.replicas])
        least = total * OWN_TOKENS + len(self.groups) * workload.tokens
        if not workload.contexts:
            least = total * OWN_TOKENS + n * workload.tokens  # once on every replica
        return Outcome(total / self.now, self.computed / least, float(served.max() / served.mean()))

    def _open(self) -> None:
        if not self.unasked:
            return
        context, questions = self.unasked.popleft()
        for _ in range(questions):
            place = self.policy(self.groups[context], self.loads)
            self.loads[place] += 1
            self.replicas[place].queue.append(context)
            self._begin(place)

    def _begin(self, place: int) -> None:
        replica = self.replicas[place]
        if replica.prefilling or replica.running >= BATCH or not replica.queue:
            return
        context = replica.queue.popleft()
        tokens = OWN_TOKENS + (0 if replica.hit(context) else self.workload.tokens)
        self.computed += tokens
        replica.prefilling = True
        replica.running += 1
        heapq.heappush(self.events, (self.now + tokens / PREFILL, next(self.order), place, context, 1))

    def _prefilled(self, place: int, context: int) -> None:
        self.replicas[place].prefilling = False
        until = self.now + DECODE_SECONDS * (0.5 + self.chance.random())
        heapq.heappush(self.events, (until, next(self.order), place, context, 0))
        self._begin(place)

    def _answered(self, place: int, context: int) -> None:
        replica = self.replicas[place]
        replica.running -= 1
        replica.served += 1
        self.loads[place] -= 1
        self.left[context] -= 1
        if not self.left[context] or not self.workload.contexts:
            self._open()
        self._begin(place)


def round_robin(replicas: int) -> Policy:
    turn = count()
    return lambda group, loads: next(turn) % replicas


def least_loaded(replicas: int) -> Policy:
    return lambda group, loads: int(loads.argmin())


def consistent(replicas: int) -> Policy:
    names = _names(replicas)
    idle = np.zeros(replicas, np.int64)
    return lambda group, loads: choose(group, names, idle)


def prefix_tree(replicas: int) -> Policy:
    """Where the context was last, unless loads are out of balance (as SGLang's router: by 32, and by half)."""
    home: dict[int, int] = {}

    def policy(group: int, loads: npt.NDArray[np.int64]) -> int:
        known = home.get(group)
        low, high = int(loads.min()), int(loads.max())
        if known is None or (high - low > 32 and high > 1.5 * low):
            known = home[group] = int(loads.argmin())
        return known

    return policy


def ours(replicas: int) -> Policy:
    """The engine's own choice and memory."""
    names = _names(replicas)
    warm: Warm[int] = Warm()

    def policy(group: int, loads: npt.NDArray[np.int64]) -> int:
        place = choose(group, names, loads, warm.of(group))
        warm.add(group, place)
        return place

    return policy


POLICIES: dict[str, Callable[[int], Policy]] = {
    "round robin": round_robin,
    "least loaded": least_loaded,
    "consistent hashing": consistent,
    "prefix tree": prefix_tree,
    "ours": ours,
}


def _names(replicas: int) -> npt.NDArray[np.uint64]:
    return np.array([name_hash(f"replica {i}") for i in range(replicas)], np.uint64)
