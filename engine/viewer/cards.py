"""A run's scorecards: where each one is, in memory; the cards themselves on disk."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from adjudge.engine.store.parts import live_parts
from adjudge.engine.store.place import Place
from adjudge.engine.store.scorecards import SCORECARDS
from adjudge.scoring.scorecard import Scorecard

__all__ = ["CardIndex"]

_NAMED = ("protocol", "system", "task_id", "sample", "repeat")


class CardIndex:
    """The scorecards of one run in a store. Make it with `CardIndex.of`, which reads all columns but the cards."""

    def __init__(self, place: Place, parts: list[str], rows: pa.Table) -> None:
        self._place = place
        self._parts = parts
        self._rows = rows

    @classmethod
    def of(cls, store: Place, run: str) -> "CardIndex":
        """The cards of `run` in `store`. Raises StoreError."""
        place = store / SCORECARDS.name
        parts = live_parts(place)
        tables = []
        for number, name in enumerate(parts):
            table = place.open(name).read(columns=["run", *_NAMED])
            table = table.append_column("part", pa.array(np.full(len(table), number, np.int32)))
            table = table.append_column("row", pa.array(np.arange(len(table), dtype=np.int32)))
            tables.append(table.filter(pc.equal(pc.cast(table["run"], pa.string()), run)).drop_columns("run"))
        empty = pa.table({name: pa.array([], kind) for name, kind in _KINDS.items()})
        encoded = [_encoded(table) for table in tables] or [empty]
        return cls(place, parts, pa.concat_tables(encoded).unify_dictionaries().combine_chunks())

    def __len__(self) -> int:
        """How many scorecards the run has."""
        return len(self._rows)

    def find(self, system: str, task: str, sample: int, repeat: int) -> list[Scorecard]:
        """The cards of one report, in order of protocol."""
        wanted = pc.and_(pc.equal(self._rows["system"], system), pc.equal(self._rows["task_id"], task))
        for name, value in (("sample", sample), ("repeat", repeat)):
            wanted = pc.and_(wanted, pc.equal(self._rows[name], value))
        found = self._rows.filter(wanted)
        groups: dict[tuple[int, int], list[int]] = {}
        for part, row in zip(found["part"].to_pylist(), found["row"].to_pylist(), strict=True):
            groups.setdefault((part, row // SCORECARDS.row_group), []).append(row % SCORECARDS.row_group)
        cards = [card for (part, group), rows in groups.items() for card in self._read(part, group, rows)]
        return sorted(cards, key=lambda card: card.protocol)

    def scan(self, after: int, holding: bytes) -> Iterator[tuple[int, Scorecard | None]]:
        """From place `after` on: (place, card) of cards with `holding` in their JSON, and (place, None) between.

        A place is where to go on after what came with it.
        """
        part, row = after >> 32, after & 0xFFFFFFFF
        parts = self._rows["part"].to_numpy()
        rows = self._rows["row"].to_numpy()
        for number in range(part, len(self._parts)):
            own = np.sort(rows[parts == number])
            own = own[own >= row] if number == part else own
            for group in np.unique(own // SCORECARDS.row_group).tolist():
                wanted = own[own // SCORECARDS.row_group == group]
                places = (wanted - group * SCORECARDS.row_group).tolist()
                for at, card in self._holding(number, group, places, holding):
                    yield (number << 32) + group * SCORECARDS.row_group + at + 1, card
                yield (number << 32) + (group + 1) * SCORECARDS.row_group, None

    def _holding(
        self, part: int, group: int, rows: list[int], holding: bytes
    ) -> Iterator[tuple[int, Scorecard]]:
        column = self._cards(part, group)
        found = pc.match_substring(column, holding.decode(), ignore_case=True).to_pylist()
        for row in rows:
            if found[row]:
                yield row, msgspec.json.decode(column[row].as_py(), type=Scorecard)

    def _read(self, part: int, group: int, rows: list[int]) -> list[Scorecard]:
        column = self._cards(part, group)
        return [msgspec.json.decode(column[row].as_py(), type=Scorecard) for row in rows]

    def _cards(self, part: int, group: int) -> pa.ChunkedArray:
        return self._place.open(self._parts[part]).read_row_group(group, columns=["card"])["card"]


_NAMES = pa.dictionary(pa.int32(), pa.string())
_KINDS = {
    **dict.fromkeys(("protocol", "system", "task_id"), _NAMES),
    **dict.fromkeys(("sample", "repeat", "part", "row"), pa.int32()),
}


def _encoded(table: pa.Table) -> pa.Table:
    columns = {}
    for name, kind in _KINDS.items():
        column = table[name]
        if kind == _NAMES:
            column = pc.dictionary_encode(pc.cast(column, pa.string()))
        columns[name] = column.cast(kind)
    return pa.table(columns)
