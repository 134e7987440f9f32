"""Scorecards by what decided them: a run that would make one again takes it from the store."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from adjudge.engine.store.kinds import NAMES, Key, TableKind, Text, Time
from adjudge.engine.store.parts import PartStore
from adjudge.engine.store.place import Place
from adjudge.engine.store.scorecards import SCORECARDS
from adjudge.engine.store.table import Table
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["KeptCards"]


class _CardRow(msgspec.Struct, frozen=True, gc=False):
    """Of a stored scorecard, what a look-up reads."""

    key: Key
    reason: Annotated[str | None, NAMES]
    card: Text
    written_at: Time


# Rows are asked for in about the order in which they were written: a few row groups in memory are enough.
_CARDS = TableKind(
    SCORECARDS.name,
    _CardRow,
    row_group=SCORECARDS.row_group,
    cached=4 * SCORECARDS.row_group,
    named_by=("key",),
    journaled=False,
)


class KeptCards(Table[_CardRow]):
    """Scorecards that any run left in the store, by `Scorecard.key`. Nothing is written here."""

    def __init__(self, place: Place) -> None:
        super().__init__(PartStore(place, _CARDS, lambda reason: reason is None))

    async def get(self, keys: Sequence[bytes]) -> list[Scorecard | None]:
        """Of each of `keys`, its first scorecard, or None. Raises StoreError."""
        at_hand = self._parts.at_hand(keys)
        rows = [row or await self._parts.get(key) for key, row in zip(keys, at_hand, strict=True)]
        return [None if row is None else _decoder.decode(row.card) for row in rows]


_decoder = msgspec.json.Decoder(Scorecard)
