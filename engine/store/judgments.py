"""The store of judgments: what was asked, and what came back."""

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from adjudge.engine.store.parts import CACHED_GROUPS, FLUSH_SECONDS, PartStore, Row, TableKind
from adjudge.engine.store.place import Place
from adjudge.engine.store.table import Table, answering
from adjudge.judges import Answer, Judgment, Question, Usage

__all__ = ["JUDGMENTS", "JudgmentStore"]

A = TypeVar("A", bound=Answer)

_NAMES = pa.dictionary(pa.int32(), pa.string())

JUDGMENTS = TableKind(
    "judgments",
    pa.schema(
        [
            ("key", pa.binary(16)),
            ("group", pa.binary(16)),
            ("question", _NAMES),
            ("answer", pa.string()),
            ("status", _NAMES),
            ("reason", _NAMES),
            ("text", pa.string()),
            ("finish_reason", _NAMES),
            ("prompt_tokens", pa.int32()),
            ("cached_tokens", pa.int32()),
            ("completion_tokens", pa.int32()),
            ("seconds", pa.float64()),
            ("judge", _NAMES),
            ("engine", _NAMES),
            ("written_at", pa.timestamp("us", "UTC")),
        ]
    ),
    row_group=1024,
)


class JudgmentStore(Table):
    """Judgments by key. With `retry_unscored` only scored ones answer; else all but transient failures do."""

    def __init__(
        self,
        place: Place,
        *,
        retry_unscored: bool = False,
        flush_seconds: float = FLUSH_SECONDS,
        cached: int = CACHED_GROUPS,
    ) -> None:
        super().__init__(PartStore(place, JUDGMENTS, answering(retry_unscored), flush_seconds, cached))

    def at_hand(self, keys: Sequence[bytes], questions: Sequence[Question[A]]) -> list[Judgment[A] | None]:
        """What `get` gives for each, if it can be had at once (`PartStore.at_hand`); None says nothing."""
        rows = self._parts.at_hand(keys)
        return [
            None if row is None else _judgment(row, question)
            for row, question in zip(rows, questions, strict=True)
        ]

    async def get(self, key: bytes, question: Question[A]) -> Judgment[A] | None:
        """The stored judgment of `key`, its answer decoded as `question`'s answer type, or None."""
        row = await self._parts.get(key)
        return None if row is None else _judgment(row, question)

    async def raw(self, key: bytes) -> dict[str, Any] | None:
        """The stored columns of `key` by name, or None."""
        row = await self._parts.get(key)
        return None if row is None else dict(zip(JUDGMENTS.schema.names, row, strict=True))

    def put(self, judgment: Judgment[A]) -> None:
        """Keep `judgment`. Raises StoreError if an earlier part could not be written."""
        answer = None if judgment.answer is None else msgspec.json.encode(judgment.answer).decode()
        usage = judgment.usage
        row: Row = (
            judgment.key,
            judgment.group,
            judgment.question,
            answer,
            judgment.status,
            judgment.reason,
            judgment.text,
            judgment.finish_reason,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            judgment.seconds,
            judgment.judge,
            judgment.engine,
            judgment.written_at,
        )
        self._parts.put(row, 300 + len(judgment.text) + len(answer or ""))


def _judgment(row: Row, question: Question[A]) -> Judgment[A]:
    (
        key,
        group,
        kind,
        answer,
        status,
        reason,
        text,
        finish,
        prompt,
        cached,
        completed,
        seconds,
        judge,
        engine,
        at,
    ) = row
    return Judgment(
        key=key,
        group=group,
        question=kind,
        answer=None if answer is None else question.typed(_decoder(question.answer).decode(answer)),
        status=status,
        reason=reason,
        text=text,
        finish_reason=finish,
        usage=Usage(prompt, cached, completed),
        seconds=seconds,
        judge=judge,
        engine=engine,
        written_at=at,
    )


@cache
def _decoder(answer: type[Answer]) -> msgspec.json.Decoder[Answer]:
    return msgspec.json.Decoder(answer)
