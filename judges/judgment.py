"""What came back: a judgment, scored or unscored with a reason. Success and failure have the same fields."""

from collections.abc import Iterable
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from adjudge.judges.question import Answer, Question
from adjudge.judges.text import storable

__all__ = [
    "MOST_TOKENS",
    "Asked",
    "Judge",
    "JudgeIdentity",
    "JudgeReason",
    "Judgment",
    "Reply",
    "Status",
    "Usage",
]

Status = Literal["scored", "unscored"]

JudgeReason = Literal[
    "judge_unavailable",  # no connection, 5xx or 429 after the retries
    "judge_timeout",  # sent, and no answer in time
    "judge_unparseable",  # the reply does not fit the answer type
    "judge_refused",  # the judge declined to answer
    "judge_unsupported",  # this judge cannot answer this type of question
    "media_unsupported",  # the context holds media that this judge does not take
    "deadline",  # the caller's deadline passed first
    "worker_died",  # the question killed a worker alone, twice
    "context_overflow",  # context and answer do not fit into the judge's window
    "answer_truncated",  # the reply reached its token limit, with more tokens too
]

A = TypeVar("A", bound=Answer)


MOST_TOKENS = 2**31 - 1


class Usage(msgspec.Struct, frozen=True):
    """Tokens, as the server counted them: prompt (cached included), cached, and generated; at most 2**31 - 1 each."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage.total((self, other))

    @classmethod
    def total(cls, several: Iterable["Usage"]) -> "Usage":
        """The sum of `several`."""
        prompt = cached = completion = 0
        for one in several:
            prompt += one.prompt_tokens
            cached += one.cached_tokens
            completion += one.completion_tokens
        return cls(min(MOST_TOKENS, prompt), min(MOST_TOKENS, cached), min(MOST_TOKENS, completion))


class Reply(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """A judge's answer to one question: `answer`, or None and a reason.

    `text` is the raw reply, at most 100,000 characters, or what was said in its place; `finish_reason` is the server's
    word, and names both `max_tokens` sent if the question was asked again with more. Both are made storable here.
    `seconds` runs from sending to the last byte, without queueing.
    """

    answer: A | None = None
    reason: JudgeReason | None = None
    text: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for field, text in (("text", self.text), ("finish_reason", self.finish_reason)):
            if (kept := storable(text)) is not text:
                msgspec.structs.force_setattr(self, field, kept)


class Judgment(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """A reply with its identity; a row of the store.

    `key` is the blake2b-128 of everything that decides the answer (judge, sampling, prompts, schema, context, the
    question's fields, repeat), `group` that of the context; 16 bytes each. `written_at` is microseconds since the
    epoch, UTC.
    """

    key: bytes
    group: bytes
    question: str
    answer: A | None
    status: Status
    reason: JudgeReason | None
    text: str
    finish_reason: str
    usage: Usage
    seconds: float
    judge: str
    engine: str
    written_at: int


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How a question is asked: its key (the seed derives from it), repeat, priority (lower first) and deadline.

    `deadline` is in seconds of the event loop's clock; None: no deadline.
    """

    key: bytes
    repeat: int = 0
    priority: int = 0
    deadline: float | None = None

    @property
    def seed(self) -> int:
        """A 31-bit sampling seed derived from the key."""
        return int.from_bytes(self.key[:4], "big") >> 1


class JudgeIdentity(msgspec.Struct, frozen=True):
    """Who answers, the same for every replica and wrapper of one judge.

    `name` is for people; `fingerprint` and `sampling` are part of every key. `analysis` says whether the judge is asked
    to reason before its verdict.
    """

    name: str
    fingerprint: str
    sampling: str
    analysis: bool = True


class Judge(Protocol):
    """Answers questions as `identity`."""

    identity: JudgeIdentity

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """Answer one question. Never raises for one question's failure; engine-fatal errors propagate."""
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...
