"""Limits of a judge's questions in flight, requests and tokens per minute. They may change while questions are out.

A cluster's driver leases shares of one limit to its evaluators; together they never hold more than the
whole.
"""

import asyncio
import time
from typing import TypeVar

from adjudge.engine.config.judge import JudgeConfig
from adjudge.judges import Answer, Asked, Judge, Question, Reply
from adjudge.judges.slots import Slots

__all__ = ["Limit", "Limited", "Rate"]

A = TypeVar("A", bound=Answer)

_BURST_SECONDS = 5.0
_BYTES_PER_TOKEN = 4.0  # of a prompt, until the judge has counted tokens


class Rate:
    """What may be spent: at most `per_minute` in any 60 seconds, plus what one question was underestimated by.

    It begins empty, so that closing and reopening it grants nothing extra. A question waits for `whole`, if that is
    more than it could otherwise save up.
    """

    def __init__(self, per_minute: float, whole: float = 0.0) -> None:
        self._rate = per_minute / (60.0 + _BURST_SECONDS)
        self._whole = whole
        self._level = 0.0
        self._at = time.monotonic()

    def resize(self, per_minute: float) -> None:
        """Continue at another rate."""
        self._fill()
        self._rate = per_minute / (60.0 + _BURST_SECONDS)
        self._level = min(self._level, self._burst)

    @property
    def _burst(self) -> float:
        return max(self._whole, self._rate * _BURST_SECONDS)

    async def spend(self, amount: float) -> None:
        """Wait until `amount` may be spent, and spend it. More than one burst waits for a full burst only."""
        while (wait := self._wait(amount)) > 0:  # noqa: ASYNC110 - only time adds to it
            await asyncio.sleep(wait)
        self._level -= amount

    def _wait(self, amount: float) -> float:
        """Seconds until the next check; 0 when `amount` may be spent."""
        missing = min(amount, self._burst) - self._fill()
        if not self._rate:
            return 1.0
        return min(1.0, max(0.001, missing / self._rate)) if missing > 0 else 0.0

    def correct(self, amount: float) -> None:
        """Spend `amount` more without waiting; a negative number gives it back."""
        self._level -= amount

    def _fill(self) -> float:
        now = time.monotonic()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        return self._level


class Limit:
    """A `share` of what the judge of `config` takes: questions in flight, and requests and tokens per minute.

    Without `share`, all of it.
    """

    def __init__(self, config: JudgeConfig, share: int | None = None) -> None:
        self._config = config
        share = config.max_in_flight if share is None else share
        self.slots = Slots(share)
        self.requests = self._rate(config.requests_per_minute, share, whole=1.0)
        self.tokens = self._rate(config.tokens_per_minute, share)

    def lease(self, share: int) -> None:
        """Hold `share` of the total from now on; an excess in flight is released as questions are answered."""
        self.slots.resize(share)
        for rate, whole in (
            (self.requests, self._config.requests_per_minute),
            (self.tokens, self._config.tokens_per_minute),
        ):
            if rate is not None and whole is not None:
                rate.resize(whole * share / self._config.max_in_flight)

    def _rate(self, per_minute: int | None, share: int, whole: float = 0.0) -> Rate | None:
        return None if per_minute is None else Rate(per_minute * share / self._config.max_in_flight, whole)

    @property
    def held(self) -> int:
        """The share held: the leased one, or the number still in flight if that is more."""
        return max(self.slots.total, self.slots.in_use)


class Limited:
    """A judge under a limit. Its identity is the judge's own."""

    def __init__(self, judge: Judge, limit: Limit) -> None:
        self.identity = judge.identity
        self._judge = judge
        self._limit = limit
        self._bytes, self._tokens = _BYTES_PER_TOKEN, 1.0

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The judge's reply, once the limit admits the question."""
        slots, requests, tokens = self._limit.slots, self._limit.requests, self._limit.tokens
        await slots.acquire(asked.priority)
        try:
            if requests is not None:
                await requests.spend(1)
            if tokens is None:
                return await self._judge.answer(question, asked)
            return await self._within(tokens, question, asked)
        finally:
            slots.release()

    async def _within(self, tokens: Rate, question: Question[A], asked: Asked) -> Reply[A]:
        size = _size(question)
        expected = size * self._tokens / self._bytes
        await tokens.spend(expected)
        reply = await self._judge.answer(question, asked)
        used = reply.usage.prompt_tokens + reply.usage.completion_tokens
        tokens.correct(used - expected if used else 0.0)
        if used:
            self._bytes, self._tokens = self._bytes + size, self._tokens + used
        return reply

    async def close(self) -> None:
        """Close the judge."""
        await self._judge.close()


def _size(question: Question[A]) -> int:
    """Number of characters that a question shows the judge."""
    shown = sum(len(section.text) for section in question.context.sections)
    return shown + sum(map(len, question.fields().values()))
