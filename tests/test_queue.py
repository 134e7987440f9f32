"""The queue in front of a judge: leaders first, contexts together, priorities kept, waits bounded."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import pairwise
from types import NoneType

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.judges.queue import ContextQueue, Turn
from tests.nightly import quick_or_whole
from tests.virtual_time import run


class Job(msgspec.Struct, frozen=True):
    """A question: when it arrives; how many seconds it takes to get ready, to warm its context and to be answered."""

    name: int
    context: int
    at: float = 0.0
    priority: int = 0
    shared: int = 1
    own: int = 0
    prepare: float = 0.0
    prefill: float = 1.0
    decode: float = 1.0
    fails: bool = False
    patience: float = 1e9


class Seen(msgspec.Struct):
    """When a job was prepared, sent, warm and done; None for never."""

    prepared: float | None = None
    sent: float | None = None
    warm: float | None = None
    done: float | None = None


class Judge:
    """Takes jobs through a queue and records when each step happened, and how many jobs were out at once."""

    def __init__(self, queue: ContextQueue) -> None:
        self.queue = queue
        self.seen: dict[int, Seen] = defaultdict(Seen)
        self.order: list[int] = []
        self.out = 0
        self.peak = 0
        self.ready = 0
        self.most_ready = 0

    async def answer(self, job: Job) -> None:
        clock = asyncio.get_running_loop()
        await asyncio.sleep(job.at)
        seen = self.seen[job.name]

        async def prepare() -> None:
            self.ready += 1
            self.most_ready = max(self.most_ready, self.ready)
            try:
                await asyncio.sleep(job.prepare)
            except asyncio.CancelledError:
                self.ready -= 1
                raise
            seen.prepared = clock.time()

        ready = prepare if job.prepare else None
        try:
            async with (
                asyncio.timeout(job.patience),
                self.queue.turn(bytes([job.context]), job.priority, job.shared, job.own, ready) as turn,
            ):
                seen.sent = clock.time()
                self.ready -= ready is not None
                self.order.append(job.name)
                self.out += 1
                self.peak = max(self.peak, self.out)
                try:
                    await self._work(job, turn)
                finally:
                    self.out -= 1
        except (TimeoutError, ConnectionError):
            return
        seen.done = clock.time()

    async def _work(self, job: Job, turn: Turn) -> None:
        await asyncio.sleep(job.prefill)
        if job.fails:
            raise ConnectionError
        turn.warm()
        self.seen[job.name].warm = asyncio.get_running_loop().time()
        await asyncio.sleep(job.decode)


def played(queue: ContextQueue, jobs: list[Job]) -> Judge:
    judge = Judge(queue)

    async def play() -> None:
        await asyncio.gather(*map(judge.answer, jobs))

    run(play())
    assert not queue._groups, "a group that nobody needs any more was kept"
    assert not queue._begun
    assert not queue._near
    return judge


def batch(contexts: int, questions: int, **more: object) -> list[Job]:
    return [Job(c * questions + q, c, **more) for c in range(contexts) for q in range(questions)]


def shuffled(jobs: list[Job], seed: int = 0) -> list[Job]:
    return random.Random(seed).sample(jobs, len(jobs))


def test_followers_wait_until_the_leader_has_filled_the_cache() -> None:
    judge = played(ContextQueue(100), batch(1, 10, prefill=3.0))
    sent = [judge.seen[name].sent for name in range(10)]
    assert sent == [0.0] + [3.0] * 9


def test_followers_prepare_while_their_leader_warms_the_context() -> None:
    judge = played(ContextQueue(100), batch(1, 10, prepare=2.0, prefill=3.0))
    assert [judge.seen[name].prepared for name in range(10)] == [2.0] * 10
    assert [judge.seen[name].sent for name in range(10)] == [2.0] + [5.0] * 9


def test_question_prepares_only_once_its_context_has_begun() -> None:
    judge = played(ContextQueue(100, capacity=150), batch(3, 4, shared=100, prepare=0.5))
    for context in range(1, 3):
        ready = min(judge.seen[4 * context + q].prepared for q in range(4))
        assert ready > max(judge.seen[4 * context - 4 + q].sent for q in range(4))


def test_preparing_ahead_is_bounded_by_the_slots() -> None:
    judge = played(ContextQueue(3, hold_s=1e6), batch(1, 50, prepare=0.5, decode=10.0))
    assert 1 < judge.most_ready <= 4


def test_failed_preparation_holds_no_slot() -> None:
    async def fail() -> None:
        raise ConnectionError

    async def ask(queue: ContextQueue, prepare: Callable[[], Awaitable[None]] | None) -> None:
        async with queue.turn(b"page", prepare=prepare):
            await asyncio.sleep(5)

    async def ask_all() -> None:
        queue = ContextQueue(1)
        outcomes = await asyncio.gather(
            *(ask(queue, prepare) for prepare in (None, fail, fail, None)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [
            NoneType,
            ConnectionError,
            ConnectionError,
            NoneType,
        ]
        assert asyncio.get_running_loop().time() == 10.0
        assert (queue._near, queue._in_flight, queue._groups) == (0, 0, {})

    run(ask_all())


def test_failed_leader_is_replaced() -> None:
    jobs = [Job(0, 0, fails=True), Job(1, 0), Job(2, 0)]
    judge = played(ContextQueue(100), jobs)
    assert [judge.seen[name].sent for name in range(3)] == [0.0, 1.0, 2.0]


def test_context_without_a_warm_signal_is_warm_once_answered() -> None:
    queue, sent = ContextQueue(10), []

    async def ask(name: int) -> None:
        async with queue.turn(b"page"):
            sent.append((name, asyncio.get_running_loop().time()))
            await asyncio.sleep(2)

    async def ask_all() -> None:
        await asyncio.gather(*map(ask, range(3)))

    run(ask_all())
    assert sent == [(0, 0.0), (1, 2.0), (2, 2.0)]


def test_contexts_too_large_for_the_cache_run_in_turn() -> None:
    jobs = shuffled(batch(8, 16, shared=100, own=1))
    judge = played(ContextQueue(1000, capacity=150), jobs)
    contexts = [name // 16 for name in judge.order]
    changes = sum(a != b for a, b in pairwise(contexts))
    assert changes == 7


def test_contexts_begin_only_while_they_fit_the_cache() -> None:
    jobs = batch(4, 5, shared=100, own=10)  # each context takes 150 when complete
    judge = played(ContextQueue(1000, capacity=300), jobs)
    begun = sorted(min(judge.seen[c * 5 + q].sent for q in range(5)) for c in range(4))
    assert begun[:2] == [0.0, 0.0]
    assert begun[2] > 0


def test_context_larger_than_the_cache_runs_alone() -> None:
    judge = played(ContextQueue(10, capacity=10), batch(2, 3, shared=1000))
    assert all(seen.done is not None for seen in judge.seen.values())


def test_top_priority_passes_followers_of_a_begun_context() -> None:
    jobs = [*batch(1, 6), Job(100, 9, at=1.5, priority=-1)]
    judge = played(ContextQueue(1, capacity=1), jobs)
    assert judge.order[:2] == [0, 100]


def test_wait_is_bounded_even_without_free_slots() -> None:
    jobs = shuffled(batch(3, 10, decode=1000.0))
    judge = played(ContextQueue(2, hold_s=30.0, capacity=1), jobs)
    assert max(seen.sent for seen in judge.seen.values()) == 30.0
    assert judge.peak == 30


def test_overdue_question_takes_its_context_along() -> None:
    jobs = shuffled(batch(4, 8, decode=1000.0))
    judge = played(ContextQueue(1, hold_s=30.0), jobs)
    contexts = [name // 8 for name in judge.order[1:]]
    assert sum(a != b for a, b in pairwise(contexts)) == 3


def test_cancelled_waiter_holds_no_slot() -> None:
    jobs = [Job(0, 0, decode=50.0), Job(1, 1, patience=5.0), Job(2, 1, at=10.0)]
    judge = played(ContextQueue(1, hold_s=1000.0), jobs)
    assert judge.seen[1].sent is None
    assert judge.seen[2].sent == 51.0


def test_pause_waits_for_running_questions_and_holds_the_rest() -> None:
    queue = ContextQueue(2, hold_s=30.0)
    judge = Judge(queue)

    async def play() -> None:
        asked = [asyncio.ensure_future(judge.answer(job)) for job in batch(5, 1)]
        await asyncio.sleep(0.5)
        await queue.pause()
        assert asyncio.get_running_loop().time() == 2.0
        assert judge.out == 0
        await asyncio.sleep(100)
        assert len(judge.order) == 2
        queue.resume()
        await asyncio.gather(*asked)

    run(play())
    assert [seen.sent for seen in judge.seen.values()] == [0.0, 0.0, 102.0, 102.0, 102.0]


jobs = st.lists(
    st.builds(
        Job,
        name=st.just(0),
        context=st.integers(0, 5),
        at=st.integers(0, 40).map(float),
        priority=st.integers(-1, 1),
        shared=st.just(10),
        own=st.integers(0, 5),
        prefill=st.integers(0, 20).map(float),
        decode=st.integers(0, 50).map(float),
        fails=st.booleans(),
        patience=st.sampled_from([3.0, 1e9]),
    ),
    max_size=40,
).map(lambda found: [msgspec.structs.replace(job, name=name) for name, job in enumerate(found)])


@settings(max_examples=quick_or_whole(60, 300))
@given(jobs, st.integers(1, 8), st.sampled_from([5.0, 30.0, 1e6]), st.sampled_from([1.0, 25.0, 1e9]))
def test_everything_is_sent_in_time_and_within_limits(
    jobs: list[Job], total: int, hold_s: float, capacity: float
) -> None:
    judge = played(ContextQueue(total, hold_s=hold_s, capacity=capacity), jobs)
    overdue = False
    for job in jobs:
        seen = judge.seen[job.name]
        if seen.sent is None:
            assert job.patience < 1e9
        else:
            assert seen.sent - job.at <= hold_s
            overdue |= seen.sent - job.at == hold_s
            assert seen.done is not None or job.fails or job.patience < 1e9
    assert overdue or judge.peak <= total
    assert not overdue or hold_s < 1e6, "it waited for the bound although nothing was out"


@settings(max_examples=quick_or_whole(40, 200))
@given(jobs, st.integers(1, 8))
def test_followers_wait_while_the_leader_warms_a_cold_context(jobs: list[Job], total: int) -> None:
    judge = played(ContextQueue(total, hold_s=1e7), jobs)
    by_context = defaultdict(list)
    for job in jobs:
        if judge.seen[job.name].sent is not None:
            by_context[job.context].append((job, judge.seen[job.name]))
    for found in by_context.values():
        for job, seen in found:
            others = [other for other in found if other[0].name != job.name]
            warm_by_others = any(o.warm is not None and o.warm <= seen.sent for _, o in others)
            out = [o for _, o in others if o.sent < seen.sent and (o.done or 0) > seen.sent]
            assert not out or warm_by_others


@settings(max_examples=quick_or_whole(40, 200))
@given(jobs, st.lists(st.integers(0, 6).map(float), min_size=40, max_size=40), st.integers(1, 8))
def test_preparing_loses_no_question(jobs: list[Job], prepares: list[float], total: int) -> None:
    jobs = [msgspec.structs.replace(job, prepare=p) for job, p in zip(jobs, prepares, strict=False)]
    judge = played(ContextQueue(total, hold_s=30.0, capacity=25.0), jobs)
    for job in jobs:
        seen = judge.seen[job.name]
        assert seen.done is not None or job.fails or job.patience < 1e9
        assert seen.sent is None or seen.sent - job.at <= 30.0 + job.prepare


@pytest.mark.parametrize("seed", range(5))
def test_busy_context_does_not_starve_another(seed: int) -> None:
    stream = [Job(n, 0, at=n * 0.5, decode=2.0) for n in range(400)]
    other = Job(1000, 1, at=10.0 + seed)
    judge = played(ContextQueue(2, hold_s=20.0), [*stream, other])
    assert judge.seen[1000].sent <= 30.0 + seed
