"""The blocks of rows that were looked up last, as many as memory is meant to hold."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic

from adjudge.engine.store.kinds import R
from adjudge.engine.store.records import Block

__all__ = ["At", "Blocks", "Rows"]

At = tuple[int, int]  # a part's number, and the number of a block of rows in it
Rows = Block[R] | list[R]


class Blocks(Generic[R]):
    """The rows of blocks, at most `most` of them in all, and always the last block."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: OrderedDict[At, Rows[R]] = OrderedDict()
        self._held = 0

    def get(self, block: At) -> Rows[R] | None:
        """The rows of `block`, which now is the last that was looked up; None if they are not here."""
        rows = self._rows.get(block)
        if rows is not None:
            self._rows.move_to_end(block)
        return rows

    def keep(self, block: At, rows: Rows[R]) -> Rows[R]:
        """Keep `rows` as those of `block`, and return them."""
        self._discard(block)
        self._rows[block] = rows
        self._held += len(rows)
        while self._held > self._most and len(self._rows) > 1:
            self._discard(next(iter(self._rows)))
        return rows

    def forget(self, which: Callable[[At], bool]) -> None:
        """Discard the blocks for which `which` is true."""
        for block in list(filter(which, self._rows)):
            self._discard(block)

    def _discard(self, block: At) -> None:
        self._held -= len(self._rows.pop(block, ()))
