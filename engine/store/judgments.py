"""The store of judgments: questions and their answers."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, TypeVar

import msgspec
import pyarrow as pa

from adjudge.engine.store.part import NAMES, Integer, Key, Name, TableKind, Text, Time
from adjudge.engine.store.parts import PartStore, Table, answering
from adjudge.engine.store.place import Place
from adjudge.engine.store.rows import json_text
from adjudge.engine.store.writer import FLUSH_SECONDS
from adjudge.judges import Answer, Judgment, Question, Usage
from adjudge.judges.judgment import JudgeReason, Status

__all__ = ["JUDGMENTS", "JudgmentRow", "JudgmentStore", "row_of"]

A = TypeVar("A", bound=Answer)


class JudgmentRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A judgment as it is stored: `answer` is JSON, `written_at` is in microseconds since the epoch."""

    key: Key
    """Hash of all that decides the answer: judge, prompts, answer schema, context, the question's fields, repeat."""
    group: Key
    """Hash of the context, the long text that was shown: questions about one report share it."""
    question: Name
    """Type of the question."""
    answer: Annotated[str | None, pa.string()]
    """The answer as JSON; null if unscored."""
    status: Annotated[Status, NAMES]
    """`scored` or `unscored`."""
    reason: Annotated[JudgeReason | None, NAMES]
    """Why the judge gave no answer; null if it gave one."""
    text: Text
    """The reply as the judge sent it, or what was said in its place; at most 100,000 characters."""
    finish_reason: Name
    """Why the judge stopped writing, as its server says."""
    prompt_tokens: Integer
    """Tokens of the prompt, cached ones included, as the server counted them."""
    cached_tokens: Integer
    """Prompt tokens that the server had in its prefix cache."""
    completion_tokens: Integer
    """Tokens that the judge wrote, its thinking included."""
    seconds: Annotated[float, pa.float64()]
    """From sending the question to the last byte of the answer."""
    judge: Name
    """The judge's name."""
    engine: Name
    """The version of adjudge that asked."""
    written_at: Time
    """When the answer came."""
    served: Annotated[str | None, NAMES] = None
    """The model that answered, as its server calls it; null where it does not say, and in older rows."""
    system_fingerprint: Annotated[str | None, NAMES] = None
    """The server's word for its system; null where it does not say, and in older rows."""
    constrained: Annotated[bool | None, pa.bool_()] = None
    """Whether a schema did bind the reply; null where that is not known, and in older rows."""


JUDGMENTS = TableKind(
    "judgments",
    JudgmentRow,
    row_group=16_384,
    cached=65_536,
    named_by=("question", "judge", "key"),
    journaled=True,
    frame=16,
    unique=("key", "answer", "text"),
)
_MOST_TOKENS = 2**31 - 1  # what a server claims beyond that cannot be stored


class JudgmentStore(Table[JudgmentRow]):
    """Judgments by key. With `retry_unscored`, only scored ones answer; else all but transient failures do."""

    def __init__(
        self,
        place: Place,
        *,
        retry_unscored: bool = False,
        flush_seconds: float = FLUSH_SECONDS,
        cached: int | None = None,
    ) -> None:
        super().__init__(PartStore(place, JUDGMENTS, answering(retry_unscored), flush_seconds, cached))

    def at_hand(self, keys: Sequence[bytes], questions: Sequence[Question[A]]) -> list[Judgment[A] | None]:
        """The result of `get` for each of `keys` that needs no waiting (see `PartStore.at_hand`); None for others."""
        rows = self._parts.at_hand(keys)
        return [
            None if row is None else _judgment(row, question)
            for row, question in zip(rows, questions, strict=True)
        ]

    async def get(self, key: bytes, question: Question[A]) -> Judgment[A] | None:
        """The stored judgment of `key`, its answer decoded as `question`'s answer type, or None."""
        row = await self._parts.get(key)
        return None if row is None else _judgment(row, question)

    def holds(self, groups: Iterable[Iterable[str]]) -> list[bool]:
        """Of each group of keys, in hexadecimal, whether there is a judgment that answers each of them."""
        return self._parts.holds([bytes.fromhex("".join(keys)) for keys in groups])

    async def raw(self, key: bytes) -> JudgmentRow | None:
        """The stored row of `key`, or None."""
        return await self._parts.get(key)

    def put(self, judgment: Judgment[A]) -> None:
        """Keep `judgment`. Raises StoreError if an earlier part could not be written."""
        row = row_of(judgment)
        self._parts.put((row, 300 + len(row.text) + len(row.answer or "")))


def row_of(judgment: Judgment[A]) -> JudgmentRow:
    """A judgment as it is stored."""
    answer = None if judgment.answer is None else json_text(judgment.answer)
    usage = judgment.usage
    return JudgmentRow(
        key=judgment.key,
        group=judgment.group,
        question=judgment.question,
        answer=answer,
        status=judgment.status,
        reason=judgment.reason,
        text=judgment.text,
        finish_reason=judgment.finish_reason,
        prompt_tokens=_stored(usage.prompt_tokens),
        cached_tokens=_stored(usage.cached_tokens),
        completion_tokens=_stored(usage.completion_tokens),
        seconds=judgment.seconds,
        judge=judgment.judge,
        engine=judgment.engine,
        written_at=judgment.written_at,
        served=judgment.served or None,
        system_fingerprint=judgment.system_fingerprint or None,
        constrained=judgment.constrained,
    )


def _stored(tokens: int) -> int:
    return max(0, min(tokens, _MOST_TOKENS))


def _judgment(row: JudgmentRow, question: Question[A]) -> Judgment[A]:
    answer = row.answer
    return Judgment(
        key=row.key,
        group=row.group,
        question=row.question,
        answer=None if answer is None else question.typed(_decoder(question.answer).decode(answer)),
        status=row.status,
        reason=row.reason,
        text=row.text,
        finish_reason=row.finish_reason,
        usage=Usage(row.prompt_tokens, row.cached_tokens, row.completion_tokens),
        seconds=row.seconds,
        judge=row.judge,
        engine=row.engine,
        written_at=row.written_at,
        served=row.served or "",
        system_fingerprint=row.system_fingerprint or "",
        constrained=row.constrained,
    )


@cache
def _decoder(answer: type[Answer]) -> msgspec.json.Decoder[Answer]:
    return msgspec.json.Decoder(answer)
