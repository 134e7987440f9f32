"""Limits of a judge's questions in flight and tokens per minute, which may change while questions are in flight.

A cluster's driver leases shares of one limit to its evaluators; together they never hold more than the
whole.
"""

import asyncio
import time
from typing import TypeVar

from adjudge.judges import Answer, Asked, Judge, Question, Reply
from adjudge.judges.slots import Slots

__all__ = ["Limit", "Limited", "TokenRate"]

A = TypeVar("A", bound=Answer)

_BURST_SECONDS = 5.0
_BYTES_PER_TOKEN = 4.0  # of a prompt, until the judge has counted tokens


class TokenRate:
    """Tokens that may be spent: at most `per_minute` in any 60 seconds, plus what one question was underestimated by.

    It begins empty, so that closing and reopening it grants no extra tokens.
    """

    def __init__(self, per_minute: float) -> None:
        self._rate = per_minute / (60.0 + _BURST_SECONDS)
        self._level = 0.0
        self._at = time.monotonic()

    def resize(self, per_minute: float) -> None:
        """Continue at another rate."""
        self._fill()
        self._rate = per_minute / (60.0 + _BURST_SECONDS)
        self._level = min(self._level, self._rate * _BURST_SECONDS)

    async def spend(self, tokens: float) -> None:
        """Wait until `tokens` may be spent, and spend them. More than one burst waits for a full burst only."""
        while (wait := self._wait(tokens)) > 0:  # noqa: ASYNC110 - only time adds tokens
            await asyncio.sleep(wait)
        self._level -= tokens

    def _wait(self, tokens: float) -> float:
        """Seconds until the next check; 0 when `tokens` may be spent."""
        missing = min(tokens, self._rate * _BURST_SECONDS) - self._fill()
        if not self._rate:
            return 1.0
        return min(1.0, max(0.001, missing / self._rate)) if missing > 0 else 0.0

    def correct(self, tokens: float) -> None:
        """Spend `tokens` more without waiting; a negative number gives tokens back."""
        self._level -= tokens

    def _fill(self) -> float:
        now = time.monotonic()
        self._level = min(self._rate * _BURST_SECONDS, self._level + (now - self._at) * self._rate)
        self._at = now
        return self._level


class Limit:
    """A share of `total` questions in flight, and the same share of `tokens_per_minute` if that is given."""

    def __init__(self, total: int, tokens_per_minute: float | None = None, share: int | None = None) -> None:
        self._total = total
        self._per_minute = tokens_per_minute
        share = total if share is None else share
        self.slots = Slots(share)
        self.tokens = None if tokens_per_minute is None else TokenRate(tokens_per_minute * share / total)

    def lease(self, share: int) -> None:
        """Hold `share` of the total from now on; an excess in flight is released as questions are answered."""
        self.slots.resize(share)
        if self.tokens is not None and self._per_minute is not None:
            self.tokens.resize(self._per_minute * share / self._total)

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
        slots, tokens = self._limit.slots, self._limit.tokens
        await slots.acquire(asked.priority)
        try:
            if tokens is None:
                return await self._judge.answer(question, asked)
            size = _size(question)
            expected = size * self._tokens / self._bytes
            await tokens.spend(expected)
            reply = await self._judge.answer(question, asked)
            used = reply.usage.prompt_tokens + reply.usage.completion_tokens
            tokens.correct(used - expected if used else 0.0)
            if used:
                self._bytes, self._tokens = self._bytes + size, self._tokens + used
            return reply
        finally:
            slots.release()

    async def close(self) -> None:
        """Close the judge."""
        await self._judge.close()


def _size(question: Question[A]) -> int:
    """Number of characters that a question shows the judge."""
    shown = sum(len(section.text) for section in question.context.sections)
    return shown + sum(map(len, question.fields().values()))
