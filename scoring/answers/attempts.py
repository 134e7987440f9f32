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

    A judge that gave no reply is not a reply that cannot be read: it is missing at once.
    """
    for attempt in range(question.attempts):
        judgment = await tools.ask(msgspec.structs.replace(question, attempt=attempt))
        if judgment.answer is None:
            return Missing(judgment.reason or "judge_unparseable")
        try:
            return ReadReply(question.read(judgment.answer.text), judgment.key.hex())
        except UnreadableReply:
            continue
    return Missing("judge_unparseable")
