"""A judge with given opinions: for tests, benchmarks and dry runs of a whole pipeline."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, get_args

import msgspec

from adjudge.judges.chat import read_reply
from adjudge.judges.judgment import Asked, JudgeIdentity, JudgeReason, Reply
from adjudge.judges.question import Answer, Question

A = TypeVar("A", bound=Answer)

# An answer; a raw reply's text (read as a server's would be); a reason for having none; or a whole reply.
Opinion = Answer | str | Reply[Any]

_REASONS = frozenset(get_args(JudgeReason))


class ScriptedJudge:
    """Answers with what `opinions` says: a function of the question, or an iterable used in the order of asking.

    An opinion that is one of the `JudgeReason`s is that failure; any other string is a raw reply, parsed like a
    server's, so malformed replies are tried by writing them. An exception raised by the function propagates: it
    is raised as an engine-fatal error. `latency` is in seconds, a number or a function of the question. `asked` counts
    the questions, `peak` the most that were in flight at once. An exhausted iterable answers judge_unavailable.
    """

    def __init__(
        self,
        opinions: Callable[[Question[Any]], Opinion] | Iterable[Opinion],
        *,
        latency: float | Callable[[Question[Any]], float] = 0.0,
        name: str = "scripted",
        max_in_flight: int = 1_000_000,
    ) -> None:
        self.identity = JudgeIdentity(name, fingerprint=f"scripted:{name}", sampling="none")
        self.asked = 0
        self.peak = 0
        self._in_flight = 0
        self._latency = latency
        self._slots = asyncio.Semaphore(max_in_flight)
        if callable(opinions):
            self._opinion = opinions
        else:
            script: Iterator[Opinion] = iter(opinions)
            self._opinion = lambda question: next(script, "judge_unavailable")

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The scripted reply, after the latency."""
        async with self._slots:
            self.asked += 1
            self._in_flight += 1
            self.peak = max(self.peak, self._in_flight)
            try:
                opinion = self._opinion(question)
                seconds = self._latency(question) if callable(self._latency) else self._latency
                await asyncio.sleep(seconds)
            finally:
                self._in_flight -= 1
        return _reply(question, opinion, seconds)

    async def close(self) -> None:
        """Nothing to release."""


def _reply(question: Question[A], opinion: Opinion, seconds: float) -> Reply[A]:
    if isinstance(opinion, Reply):
        return opinion
    if isinstance(opinion, Answer):
        opinion = msgspec.json.encode(opinion).decode()
    if opinion in _REASONS:
        return Reply(reason=msgspec.convert(opinion, JudgeReason), seconds=seconds)
    return read_reply(question, opinion, "stop", seconds=seconds)
