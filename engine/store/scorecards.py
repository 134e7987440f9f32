"""The store of scorecards: what each run gave, with its evidence."""

from typing import Annotated

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.store.kinds import NAMES, Integer, Key, Name, TableKind, Text, Time
from adjudge.engine.store.parts import FLUSH_SECONDS, PartStore, scan
from adjudge.engine.store.place import Place
from adjudge.engine.store.table import Table
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["SCORECARDS", "SCORE_COLUMNS", "ScorecardRow", "ScorecardStore", "find_cards", "score_table"]

_METRICS = pa.list_(pa.struct([("metric", pa.string()), ("value", pa.float64()), ("reason", pa.string())]))


class ScorecardRow(msgspec.Struct, frozen=True, gc=False):
    """A scorecard as it is stored: `card` is all of it as JSON, `written_at` is in microseconds since the epoch."""

    key: Key
    run: Name
    protocol: Name
    system: Name
    task_id: Text
    sample: Integer
    repeat: Integer
    reason: Annotated[str | None, NAMES]
    metrics: Annotated[list[dict[str, str | float | None]], _METRICS]
    card: Text
    written_at: Time


SCORECARDS = TableKind("scores", ScorecardRow, row_group=1024)

SCORE_COLUMNS = ("protocol", "system", "task_id", "sample", "repeat", "metric", "value", "status", "reason")
_NO_KEY = bytes(16)


class ScorecardStore(Table[ScorecardRow]):
    """The scorecards of one run, written as they arrive. Nothing is looked up by key here."""

    def __init__(self, place: Place, run: str, flush_seconds: float = FLUSH_SECONDS) -> None:
        self.run = run
        super().__init__(PartStore(place, SCORECARDS, lambda reason: False, flush_seconds))

    def put(self, card: Scorecard, at: int) -> None:
        """Keep `card`, written at `at` microseconds since the epoch."""
        own_doing = card.reason if card.status == "scored" else None
        encoded = msgspec.json.encode(card).decode()
        row = ScorecardRow(
            key=_NO_KEY,
            run=self.run,
            protocol=card.protocol,
            system=card.system,
            task_id=card.task_id,
            sample=card.sample,
            repeat=card.repeat,
            reason=card.reason,
            metrics=[
                {"metric": name, "value": value, "reason": card.reasons.get(name, own_doing)}
                for name, value in card.scores.items()
            ],
            card=encoded,
            written_at=at,
        )
        self._parts.put(row, 200 + len(encoded))


def score_table(place: Place, run: str) -> pa.Table:
    """The score rows of `run`: one per card and metric, columns SCORE_COLUMNS, sorted by all but the last three."""
    names = ["run", "protocol", "system", "task_id", "sample", "repeat", "metrics"]
    tables = [
        _flat(table.filter(pc.equal(pc.cast(table["run"], pa.string()), run)))
        for table in scan(place / SCORECARDS.name, names)
    ]
    if not tables:
        return pa.table({name: pa.array([], _COLUMN_TYPES[name]) for name in SCORE_COLUMNS})
    order = [(name, "ascending") for name in SCORE_COLUMNS[:6]]
    return pa.concat_tables(tables).sort_by(order).combine_chunks()


_COLUMN_TYPES = {
    "protocol": pa.string(),
    "system": pa.string(),
    "task_id": pa.string(),
    "sample": pa.int32(),
    "repeat": pa.int32(),
    "metric": pa.string(),
    "value": pa.float64(),
    "status": pa.string(),
    "reason": pa.string(),
}


def _flat(table: pa.Table) -> pa.Table:
    metrics = table["metrics"].combine_chunks()
    if isinstance(metrics, pa.ChunkedArray):
        metrics = pa.concat_arrays(metrics.chunks) if metrics.num_chunks else pa.array([], _METRICS)
    parents = pc.list_parent_indices(metrics)
    entries = pc.list_flatten(metrics)
    columns = {
        name: pc.cast(pc.take(table[name], parents), _COLUMN_TYPES[name]) for name in SCORE_COLUMNS[:5]
    }
    columns["metric"] = pc.struct_field(entries, "metric")
    columns["value"] = pc.struct_field(entries, "value")
    columns["status"] = pc.if_else(pc.is_valid(columns["value"]), "scored", "unscored")
    columns["reason"] = pc.struct_field(entries, "reason")
    return pa.table(columns)


def find_cards(place: Place, run: str, system: str, task_id: str) -> list[Scorecard]:
    """Every scorecard of `run` for a system's reports to one task, by protocol, sample and repeat."""
    names = ["run", "system", "task_id", "card"]
    found = []
    for table in scan(place / SCORECARDS.name, names):
        wanted = pc.equal(pc.cast(table["run"], pa.string()), run)
        for name, value in (("system", system), ("task_id", task_id)):
            wanted = pc.and_(wanted, pc.equal(pc.cast(table[name], pa.string()), value))
        found += [
            msgspec.json.decode(card, type=Scorecard) for card in table.filter(wanted)["card"].to_pylist()
        ]
    return sorted(found, key=lambda card: (card.protocol, card.sample, card.repeat))
