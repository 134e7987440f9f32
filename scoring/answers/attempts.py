"""Asking a published question as often as its benchmark does, until a reply can be read."""

from typing import Generic, TypeVar

import msgspec

from adjudge.judges.published import PublishedQuestion, UnreadableReply
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing

__all__ = ["ReadReply", "ask_until_read"]

T = TypeVar("T")


class ReadReply(msgspec.Struct, Generic[T], frozen=True):
    """What a reply says, and the hex key of its judgment."""

    value: T
    judgment: str


async def ask_until_read(tools: Tools, question: PublishedQuestion[T]) -> ReadReply[T] | Missing:
    """The first reply to `question` that can be read, after at most `question.attempts`.

    One that reads as None is followed by the next attempt too, but stands if it is the last. A judge that gave no reply
    is missing at once: that is not a reply that cannot be read.
    """
    for attempt in range(question.attempts):
        asked = msgspec.structs.replace(question, attempt=attempt)
        judgment = await tools.ask(asked)
        if judgment.answer is None:
            return Missing(judgment.reason or "judge_unparseable")
        try:
            value = asked.read(judgment.answer.text)
        except UnreadableReply:
            continue
        if value is not None or asked.is_last:
            return ReadReply(value, judgment.key.hex())
    return Missing("judge_unparseable")
