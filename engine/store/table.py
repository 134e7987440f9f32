"""One table of a store as its callers see it: opened, refreshed, flushed, closed and counted."""

from collections.abc import Callable
from typing import Generic

from adjudge.engine.store.kinds import R
from adjudge.engine.store.parts import PartStore
from adjudge.scoring.contract.reasons import TRANSIENT

__all__ = ["Table", "answering"]


def answering(retry_unscored: bool) -> Callable[[str | None], bool]:
    """Whether a row with a reason answers: with `retry_unscored` only scored ones, else all but transient failures."""
    return (lambda reason: reason is None) if retry_unscored else (lambda reason: reason not in TRANSIENT)


class Table(Generic[R]):
    """The base of the stores of judgments, pages and scorecards.

    Use from one event loop; call `open` before the first look-up, and `close` at the end.
    """

    def __init__(self, parts: PartStore[R]) -> None:
        self._parts = parts

    @property
    def name(self) -> str:
        """The name of the table, which is also the name of its folder."""
        return self._parts.table

    @property
    def rows(self) -> int:
        """Rows that answer: indexed ones and those not yet written."""
        return self._parts.rows

    @property
    def unwritten(self) -> int:
        """Rows that are buffered for the next part."""
        return self._parts.writer.unwritten

    @property
    def written(self) -> int:
        """Rows written since this object was made."""
        return self._parts.writer.written

    @property
    def written_bytes(self) -> int:
        """Bytes of Parquet written since this object was made."""
        return self._parts.writer.written_bytes

    @property
    def set_aside(self) -> int:
        """Rows left out since this object was made because no file can hold them."""
        return self._parts.writer.set_aside

    @property
    def healthy(self) -> bool:
        """Whether the last attempt to write a part succeeded. Attempts go on by themselves as long as it did not."""
        return self._parts.writer.failure is None

    async def open(self, every: bool = False) -> None:
        """Build the key index, of `every` row or only of rows that answer. Raises StoreError."""
        await self._parts.open(every)

    async def refresh(self) -> None:
        """Index the parts that other processes have written since, of rows that answer. Raises StoreError."""
        await self._parts.refresh()

    async def flush(self) -> None:
        """Write everything put so far. Raises StoreError; what could not be written is tried again."""
        await self._parts.writer.flush()

    async def close(self) -> None:
        """Write everything put so far. Raises StoreError if any part could not be written."""
        await self._parts.close()
