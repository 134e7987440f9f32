"""Judges in separate processes: replicas that take batches of questions and stream the answers back.

A replica, with all accelerators its model is split over, runs on one node.
"""

import asyncio
import os
import pickle
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import ray
from ray.exceptions import RayActorError

from adjudge.engine.cluster.messages import Failure, MakeJudge, Opened, Pulse, Replicated
from adjudge.engine.cluster.supervisor import Service
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import make_book
from adjudge.engine.evaluation.gate import refusal
from adjudge.engine.evaluation.router import Router
from adjudge.judges import Answer, Asked, Judge, JudgeIdentity, Question, Reply
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import PROBE_SECONDS, Verdict, probe

A = TypeVar("A", bound=Answer)

_GATHER_SECONDS = 0.002  # questions and answers within this time travel together
_LOSSES_TOGETHER = 2  # of replicas, after which a question is asked with nothing beside it
_RESERVED_SECONDS = 10.0
_LOSSES_ALONE = 2  # after which it is set aside

Packed = list[tuple[int, "Question[Any]", Asked]]


class JudgeActor:
    """One replica of a judge, as a Ray actor on one event loop. `open` before anything else."""

    def __init__(self, config: RunConfig, make: MakeJudge) -> None:
        self._config = config
        self._make = make
        self._progress = 0
        self._outstanding = 0
        self._alone = asyncio.Lock()
        self._expiry: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    async def open(self) -> Opened:
        """Load the judge."""
        try:
            self._judge: Judge = self._make(make_book(self._config))
        except (UsageError, JudgeError) as error:
            return Opened(failure=Failure.of(error))
        return Opened(
            judges={"": self._judge.identity},
            process=os.getpid(),
            node=ray.get_runtime_context().get_node_id(),
        )

    async def probe(self, timeout_s: float) -> tuple[Verdict, ...]:
        """The verdicts on this replica."""
        return await probe(self._judge, timeout_s)

    async def reserve(self) -> None:
        """Wait until nothing else runs here. The caller's next question then runs alone, if it arrives in time."""
        await self._alone.acquire()
        await self._empty.wait()
        self._expiry = asyncio.get_running_loop().call_later(_RESERVED_SECONDS, self._release)

    def _release(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
            self._alone.release()

    async def answers(self, packed: bytes, alone: bool) -> AsyncIterator[bytes]:
        """Pairs of number and reply, pickled, as they arrive. `alone` uses a reservation made before."""
        asked: Packed = pickle.loads(packed)
        tasks = {asyncio.ensure_future(self._answer(*one, alone)) for one in asked}
        try:
            while tasks:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(_GATHER_SECONDS)
                done = {task for task in tasks if task.done()}
                tasks -= done
                yield pickle.dumps([task.result() for task in done], protocol=5)
        finally:
            for task in tasks:
                task.cancel()

    async def _answer(
        self, number: int, question: Question[A], asked: Asked, alone: bool
    ) -> tuple[int, Reply[A] | Failure]:
        if alone and self._expiry is not None:
            self._expiry.cancel()
        else:
            alone = False
            await self._alone.acquire()
        self._outstanding += 1
        self._empty.clear()
        if not alone:
            self._alone.release()
        try:
            return number, await self._ask(question, asked)
        finally:
            self._outstanding -= 1
            if not self._outstanding:
                self._empty.set()
            if alone:
                self._release()

    async def _ask(self, question: Question[A], asked: Asked) -> Reply[A] | Failure:
        try:
            return await self._judge.answer(question, asked)
        except JudgeError as error:
            return Failure.of(error)
        finally:
            self._progress += 1

    async def pulse(self) -> Pulse:
        """The progress of this replica."""
        return Pulse(progress=self._progress, outstanding=self._outstanding)

    async def stop(self) -> None:
        """Close the judge."""
        await self._judge.close()


class _Lost(JudgeError):
    """A replica died, or its engine did, with questions at work."""


class _Replica:
    """A judge that is an actor elsewhere. Raises _Lost when it dies, or cannot be used: `refused` says so then."""

    def __init__(self, name: str, identity: JudgeIdentity, actor: Any, losses: Counter[bytes]) -> None:
        self._name = name
        self.identity = identity
        self.refused: JudgeError | None = None
        self._actor = actor
        self._losses = losses
        self._batch: dict[int, tuple[Question[Any], Asked, asyncio.Future[Any]]] = {}
        self._number = 0
        self._streams: set[asyncio.Task[None]] = set()

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The replica's reply; worker_died for a question that was alone at two that died."""
        losses = self._losses[asked.key]
        if losses >= _LOSSES_TOGETHER:
            try:
                await self._actor.reserve.remote()
            except RayActorError as error:
                raise _Lost(str(error)) from error
        future: asyncio.Future[Reply[A]] = asyncio.get_running_loop().create_future()
        if losses >= _LOSSES_TOGETHER:
            self._send({0: (question, asked, future)}, alone=True)
        else:
            if not self._batch:
                asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._send_batch)
            self._number += 1
            self._batch[self._number] = question, asked, future
        try:
            reply = await future
        except _Lost:
            self._losses[asked.key] += 1
            if losses + 1 == _LOSSES_TOGETHER + _LOSSES_ALONE:
                return Reply(reason="worker_died")
            raise
        self._losses.pop(asked.key, None)
        return reply

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """The verdicts that the actor itself comes to."""
        try:
            found: tuple[Verdict, ...] = await self._actor.probe.remote(timeout_s)
        except RayActorError as error:
            said = str(error).partition("\n")[0]
            line = f"{self._name}: died when it was tried: {said}; it is replaced"
            return (Verdict(where=self._name, trouble="unreachable", line=line),)
        self.refused = None
        where = f"{self._name}: "
        return tuple(
            msgspec.structs.replace(one, where=where + one.where, line=where + one.line) for one in found
        )

    def _send_batch(self) -> None:
        batch, self._batch = self._batch, {}
        self._send(batch, alone=False)

    def _send(
        self, batch: dict[int, tuple[Question[Any], Asked, asyncio.Future[Any]]], *, alone: bool
    ) -> None:
        task = asyncio.ensure_future(self._stream(batch, alone))
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)

    async def _stream(
        self, batch: dict[int, tuple[Question[Any], Asked, asyncio.Future[Any]]], alone: bool
    ) -> None:
        packed = pickle.dumps([(n, question, asked) for n, (question, asked, _) in batch.items()], protocol=5)
        try:
            answers = self._actor.answers.options(num_returns="streaming").remote(packed, alone)
            async for reference in answers:
                for number, reply in pickle.loads(await reference):
                    future = batch.pop(number)[2]
                    if future.done():
                        continue
                    if isinstance(reply, Failure):
                        self.refused = JudgeError(reply.message)
                        future.set_exception(_Lost(reply.message))
                    else:
                        future.set_result(reply)
        except RayActorError as error:
            for _, _, future in batch.values():
                if not future.done():
                    future.set_exception(_Lost(str(error)))

    async def close(self) -> None:
        """Stop waiting for answers."""
        for task in self._streams:
            task.cancel()


class Replicas:
    """The live ones of a judge's replicas as one judge, routed by context; it waits while there are none.

    `probe` leaves out unusable replicas. A replica that comes later is used after its own probe.
    """

    def __init__(self, replicated: Replicated) -> None:
        self.identity = replicated.judge
        self._count = replicated.count
        self._late: asyncio.Queue[tuple[Verdict, ...]] = asyncio.Queue()
        self._router: Router | None = None
        self._live: dict[str, _Replica] = {}
        self._are_tried = False
        self._trials: set[asyncio.Task[None]] = set()
        self._there = asyncio.Event()
        self._losses: Counter[bytes] = Counter()

    @property
    def loads(self) -> dict[str, int]:
        """Outstanding questions of this process at each replica."""
        return {} if self._router is None else self._router.loads

    def update(self, live: list[Service]) -> None:
        """Use the replicas `live` from now on."""
        for gone in self._live.keys() - {one.name for one in live}:
            del self._live[gone]
            if self._router is not None:
                self._router.leave(gone)
        for one in live:
            if one.name in self._live:
                continue
            replica = self._live[one.name] = _Replica(one.name, self.identity, one.actor, self._losses)
            if self._are_tried:
                trial = asyncio.ensure_future(self._try(one.name, replica))
                self._trials.add(trial)
                trial.add_done_callback(self._trials.discard)
            else:
                self._join(one.name, replica)

    def _join(self, name: str, replica: _Replica) -> None:
        if self._router is None:
            self._router = Router({name: replica})
        else:
            self._router.join(name, replica)
        self._there.set()

    async def _try(self, name: str, replica: _Replica) -> None:
        """Ask a replica that came late from now on, if it can be used."""
        verdicts = await replica.probe()
        if refusal(verdicts) is None and self._live.get(name) is replica:
            self._join(name, replica)
        self._late.put_nowait(verdicts)

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """The verdicts on the replicas that there are, once there is one.

        The first time, others are waited for for `timeout_s` while none can be used.
        """
        await self._there.wait()
        assert self._router is not None
        is_first, self._are_tried = not self._are_tried, True
        verdicts = await self._router.probe(timeout_s)
        if is_first and refusal(verdicts) is not None:
            verdicts += await self._latecomers(self._count - len(verdicts), timeout_s)
            await self._router.probe(timeout_s)  # leaves out the first ones if another can be used
        return verdicts

    async def _latecomers(self, count: int, timeout_s: float) -> tuple[Verdict, ...]:
        """The verdicts on at most `count` replicas that come within `timeout_s`, up to the first that can be used."""
        found: tuple[Verdict, ...] = ()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while len(found) < count and (not found or refusal(found) is not None):
                    found += await self._late.get()
        return found

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The reply of one replica. Raises JudgeError if each of them refuses."""
        while True:
            await self._there.wait()
            assert self._router is not None
            if self._router.loads:
                with suppress(_Lost):
                    return await self._router.answer(question, asked)
            if not self._router.loads:
                refused = [replica.refused for replica in self._live.values()]
                if refused and refused[0] is not None and None not in refused:
                    raise refused[0]
                self._there.clear()

    async def close(self) -> None:
        """Stop waiting for answers."""
        for trial in self._trials:
            trial.cancel()
        if self._router is not None:
            await self._router.close()
