"""The store of scorecards: what each run gave, with its evidence.

Scorecards by what decided them: a run that would make one again takes it from the store.

The scorecards of a run while they arrive: each part is read once, when it is new.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.store.cards import read_card, stored, unread_card
from adjudge.engine.store.journal import live_parts, open_part
from adjudge.engine.store.part import NAMES, Integer, Key, Name, TableKind, Text, Time, current, schema_of
from adjudge.engine.store.parts import PartStore, Table, scan
from adjudge.engine.store.place import MissingFile, Place
from adjudge.engine.store.rows import json_text, text
from adjudge.engine.store.writer import FLUSH_SECONDS
from adjudge.scoring.contract.scorecard import Bounds, Scorecard, count_kinds

__all__ = [
    "RIVAL",
    "SCORECARDS",
    "SCORE_COLUMNS",
    "SCORE_TYPES",
    "Arrivals",
    "KeptCards",
    "ScoreRow",
    "ScorecardStore",
    "find_cards",
    "referred_to",
    "run_cards",
    "score_table",
    "stored_signs",
    "with_bounds",
]

_log = logging.getLogger(__name__)

_METRICS = pa.list_(pa.struct([("metric", pa.string()), ("value", pa.float64()), ("reason", pa.string())]))
_BOUNDS = pa.list_(
    pa.struct(
        [("low", pa.float64()), ("high", pa.float64()), ("answered", pa.int32()), ("parts", pa.int32())]
    )
)


_Number = Annotated[float | None, pa.float64()]


class ScorecardRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """A scorecard as it is stored: `card` is all of it as JSON, `written_at` is in microseconds since the epoch.

    `bounds` has an entry for each of `metrics`, None where the value is all there is to it. A scorecard that the store
    has already is referred to: `same_as` is the `key` of the first row that has it, and `card` and `verdicts` are None.
    """

    key: Key
    """Hash of all that decided the scorecard; 16 zero bytes where every run makes it anew."""
    run: Name
    """The run, `run` in its `run.json`."""
    protocol: Name
    """Name of the protocol."""
    system: Name
    """The system that wrote the report."""
    task_id: Text
    """The task."""
    sample: Integer
    """Number of the system's own attempt at the task, from 0."""
    repeat: Integer
    """Number of the judge's repetition, from 0."""
    reason: Annotated[str | None, NAMES]
    """Why a metric is missing, or why the report got the minimum; null otherwise."""
    metrics: Annotated[list[dict[str, str | float | None]], _METRICS]
    """Every metric: its value, null if it is missing, and the reason."""
    bounds: Annotated[list[dict[str, float | None] | None], _BOUNDS]
    """For each of `metrics`, the ends between which it lies and its parts; null where there is only the value."""
    card: Annotated[str | None, pa.string()]
    """The whole scorecard as JSON, with `evidence`, `judgments` (hexadecimal keys) and `pages` (URLs)."""
    rival: Annotated[str | None, NAMES] = None
    """The other system of a comparison; null for a report that was judged alone."""
    verdicts: Annotated[str | None, pa.string()] = None
    """How many lines of its evidence have which kind of outcome, as JSON (`{"supported": 3}`); null in older rows."""
    same_as: Annotated[bytes | None, pa.binary(16)] = None
    """Where `card` is null: the `key` of the earliest row with the same scorecard."""
    written_at: Time
    """When the scorecard was made."""
    signs: Annotated[str | None, pa.string()] = None
    """What the report, and in a comparison then the rival's, does to please a judge, as a JSON list of values by name
    (`[{"hidden": 0}]`); null where nobody has looked."""


SCORECARDS = TableKind(
    "scores",
    ScorecardRow,
    row_group=1024,
    cached=1024,
    named_by=("protocol", "system", "task_id", "sample", "repeat"),
    journaled=True,
)


class ScoreRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A metric of a scorecard: a row of a run's scores.parquet."""

    protocol: Text
    """Name of the protocol."""
    system: Text
    """The system that wrote the report."""
    task_id: Text
    """The task."""
    sample: Integer
    """Number of the system's own attempt at the task, from 0."""
    repeat: Integer
    """Number of the judge's repetition, from 0."""
    metric: Text
    """Name of the metric."""
    value: _Number
    """The value; null if unscored."""
    low: _Number
    """The least that it could be, whatever its missing parts would have answered; null if there is no such bound."""
    high: _Number
    """The most that it could be; null if there is no such bound."""
    answered: Integer
    """Parts (pairs, criteria, questions) that have an answer."""
    parts: Integer
    """All parts of the metric; 1 where it has no parts."""
    status: Text
    """`scored` or `unscored`."""
    reason: Annotated[str | None, pa.string()]
    """Why it is unscored, or why the report got the minimum; null otherwise."""


SCORE_TYPES: dict[str, pa.DataType] = {column.name: column.type for column in schema_of(ScoreRow)}
SCORE_COLUMNS = tuple(SCORE_TYPES)
"""The columns of scores.parquet. `low` and `high` are null where a metric is unbounded, or its bounds are unknown."""
RIVAL = "rival"
"""A further column, where reports were compared: the other system, null for a report that was judged alone."""
_NO_KEY = bytes(16)


class ScorecardStore(Table[ScorecardRow]):
    """The scorecards of one run, written as they arrive. Nothing is looked up by key here."""

    def __init__(self, place: Place, run: str, flush_seconds: float = FLUSH_SECONDS) -> None:
        self.run = run
        self._kept = KeptCards(place)
        super().__init__(PartStore(place, SCORECARDS, lambda reason: False, flush_seconds))

    async def open(self, every: bool = False) -> None:
        """Prepare to write, and to refer to scorecards of earlier runs. Raises StoreError."""
        await super().open(every)
        await self._kept.open()

    async def close(self) -> None:
        """Write everything put so far. Raises StoreError if any part could not be written."""
        try:
            await super().close()
        finally:
            await self._kept.close()

    async def keep(self, cards: Iterable[tuple[Scorecard, bool]], at: int) -> None:
        """Keep `cards`, written at `at` microseconds since the epoch, or refer to those that the store has already.

        Beside each is whether it was read there; if not, it is looked up.
        """
        rows = []
        for card, is_stored in cards:
            key, encoded = bytes.fromhex(card.key), "" if is_stored else json_text(stored(card))
            same = is_stored or (key and await self._kept.text(key) == encoded)
            rows.append(self._row(card, encoded, at, key if same else None))
        self._parts.put(*rows)

    def put(self, card: Scorecard, at: int) -> None:
        """Keep `card`, written at `at` microseconds since the epoch."""
        self._parts.put(self._row(card, json_text(stored(card)), at, None))

    def _row(self, card: Scorecard, encoded: str, at: int, same_as: bytes | None) -> tuple[ScorecardRow, int]:
        """The row of `card`, and its bytes, roughly."""
        own_doing = card.reason if card.status == "scored" else None
        row = ScorecardRow(
            key=_NO_KEY if same_as else bytes.fromhex(card.key) or _NO_KEY,
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
            bounds=[_stored(card.bounds.get(name)) for name in card.scores],
            card=None if same_as else encoded,
            rival=card.rival or None,
            verdicts=None if same_as else json_text(count_kinds(card.evidence)),
            same_as=same_as,
            written_at=at,
            signs=json_text([card.signs, card.rival_signs][: 1 + bool(card.rival)])
            if card.signs or card.rival_signs
            else None,
        )
        return row, 200 + (0 if same_as else len(encoded))


def score_table(place: Place, run: str) -> pa.Table:
    """The score rows of `run`: one per card and metric, columns SCORE_COLUMNS, sorted by those that identify a row."""
    names = ["protocol", "system", "task_id", "sample", "repeat", "metrics", "bounds", RIVAL]
    scores = flat_scores(_rows_of(place, run, names))
    compared = RIVAL in scores.column_names
    order = [(name, "ascending") for name in (*SCORE_COLUMNS[:6], *([RIVAL] if compared else []))]
    return scores.sort_by(order).combine_chunks()


def _rows_of(place: Place, run: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Those `columns` of the rows of `run`, part by part; of other runs' parts, hardly anything is read."""
    folder = place / SCORECARDS.name
    for name in live_parts(folder):
        part = open_part(folder, SCORECARDS, name)
        own = pc.equal(pc.cast(part.read(["run"])["run"], pa.string()), run)
        if pc.any(own).as_py():
            yield current(part.read(columns).filter(own), SCORECARDS)


def flat_scores(cards: Iterable[pa.Table]) -> pa.Table:
    """The score rows of scorecards: one per card and metric, columns SCORE_COLUMNS, and RIVAL where some have one."""
    tables = []
    for rows in cards:
        bounded = pc.is_valid(rows["bounds"])
        tables += [_flat(rows.filter(bounded)), _flat(rows.filter(pc.invert(bounded)))]
    if not tables:
        return pa.table({name: pa.array([], kind) for name, kind in SCORE_TYPES.items()})
    scores = pa.concat_tables(tables)
    return scores if scores[RIVAL].null_count < len(scores) else scores.drop_columns([RIVAL])


def _flat(table: pa.Table) -> pa.Table:
    metrics = _whole(table["metrics"])
    parents = pc.list_parent_indices(metrics)
    entries = pc.list_flatten(metrics)
    columns = {name: pc.cast(pc.take(table[name], parents), SCORE_TYPES[name]) for name in SCORE_COLUMNS[:5]}
    columns[RIVAL] = pc.cast(pc.take(table[RIVAL], parents), pa.string())
    columns["metric"] = pc.struct_field(entries, "metric")
    columns["value"] = pc.struct_field(entries, "value")
    columns["status"] = pc.if_else(pc.is_valid(columns["value"]), "scored", "unscored")
    columns["reason"] = pc.struct_field(entries, "reason")
    bounds = pc.list_flatten(_whole(table["bounds"]))
    if len(bounds):
        columns |= {name: pc.struct_field(bounds, name) for name in _BOUNDS.value_type.names}
    return with_bounds(pa.table(columns))


def with_bounds(scores: pa.Table) -> pa.Table:
    """Score rows of any version with all SCORE_COLUMNS: without stated bounds, a value is all there is to a metric."""
    known = "answered" in scores.column_names
    if not known or scores["answered"].null_count:
        defaults = {
            "low": scores["value"],
            "high": scores["value"],
            "answered": pc.cast(pc.is_valid(scores["value"]), pa.int32()),
            "parts": pa.repeat(pa.scalar(1, pa.int32()), len(scores)),
        }
        unstated = pc.is_null(scores["answered"]) if known else None
        for name, default in defaults.items():
            if unstated is None:
                scores = scores.append_column(name, default)
            else:
                filled = pc.if_else(unstated, default, scores[name])
                scores = scores.set_column(scores.column_names.index(name), name, filled)
    return scores.select([*SCORE_COLUMNS, *([RIVAL] if RIVAL in scores.column_names else [])])


class Signs(NamedTuple):
    """The `signs` in a report, empty where nobody has looked; one that was `compared` may come again."""

    protocol: str
    system: str
    task_id: str
    sample: int
    signs: dict[str, float]
    compared: bool


def stored_signs(place: Place, run: str) -> Iterator[Signs]:
    """The signs in the reports of `run`, at the judge's first repeat."""
    names = ["protocol", "system", "task_id", "sample", "repeat", RIVAL, "signs"]
    decoder = msgspec.json.Decoder(list[dict[str, float]])
    for table in _rows_of(place, run, names):
        looked = table.filter(pc.and_(pc.is_valid(table["signs"]), pc.equal(table["repeat"], 0)))
        columns = (looked[name].to_pylist() for name in names)
        for protocol, system, task, sample, _, rival, said in zip(*columns, strict=True):
            for of, signs in zip((system, rival), decoder.decode(said), strict=False):
                yield Signs(protocol, of, task, sample, signs, rival is not None)


def run_cards(place: Place, run: str) -> list[Scorecard]:
    """Every scorecard of `run`, by protocol, system, task, sample and repeat."""
    rows = pa.concat_tables(
        [_SAID, *(rows.select(_SAID.column_names) for rows in _rows_of(place, run, _WHOLE))]
    )
    return sorted(
        _cards_of(place, rows),
        key=lambda card: (card.protocol, card.system, card.task_id, card.sample, card.repeat),
    )


_WHOLE = ["card", "same_as"]
_SAID = pa.Table.from_batches([], schema=pa.schema({"card": pa.string(), "same_as": pa.binary(16)}))


def _cards_of(place: Place, rows: pa.Table) -> Iterator[Scorecard]:
    """The scorecards of `rows`, columns `card` and `same_as`; one that was referred to and is gone is logged."""
    missing = 0
    referred = pc.unique(rows["same_as"].drop_null())
    first = _first_of(place, referred) if len(referred) else {}
    for own, key in zip(rows["card"].to_pylist(), rows["same_as"].to_pylist(), strict=True):
        found = own if key is None else first.get(key)
        if found is None:
            missing += 1
        else:
            yield read_card(found)
    if missing:
        _log.error("%s: %d scorecards that this run took from an earlier one are gone", place.uri, missing)


def _first_of(place: Place, keys: pa.Array) -> dict[bytes, str]:
    """Of each of `keys`, the first row's card as JSON."""
    found: dict[bytes, tuple[int, str]] = {}
    for table in scan(place, SCORECARDS, ["key", "card", "written_at"]):
        rows = table.filter(pc.is_in(table["key"], keys))
        times = pc.cast(rows["written_at"], pa.int64()).to_pylist()
        for key, at, card in zip(rows["key"].to_pylist(), times, rows["card"].to_pylist(), strict=True):
            if key not in found or at < found[key][0]:
                found[key] = at, card
    return {key: card for key, (_, card) in found.items()}


def referred_to(tables: Iterable[pa.Table]) -> pa.Array:
    """The keys of all scorecards that rows of `tables` refer to."""
    columns = [pc.unique(table["same_as"].drop_null()) for table in tables if "same_as" in table.column_names]
    return pc.unique(pa.concat_arrays([pa.array([], pa.binary(16)), *columns]))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _stored(bounds: Bounds | None) -> dict[str, float | None] | None:
    return None if bounds is None else msgspec.structs.asdict(bounds)


def find_cards(place: Place, run: str, system: str, task_id: str) -> list[Scorecard]:
    """Every scorecard of `run` for a system's reports to one task, by protocol, sample and repeat.

    Comparisons with its reports are among them, whichever of the two systems they are about.
    """
    names = ["run", "system", "task_id", RIVAL, *_WHOLE]
    found = [_SAID]
    for table in scan(place, SCORECARDS, names):
        rows = current(table, SCORECARDS)
        held = {name: pc.cast(rows[name], pa.string()) for name in names[:4]}
        either = pc.or_kleene(pc.equal(held["system"], text(system)), pc.equal(held[RIVAL], text(system)))
        wanted = pc.and_(pc.equal(held["run"], text(run)), pc.equal(held["task_id"], text(task_id)))
        found.append(rows.filter(pc.and_kleene(wanted, either)).select(_WHOLE))
    cards = _cards_of(place, pa.concat_tables(found))
    return sorted(cards, key=lambda card: (card.protocol, card.sample, card.repeat, card.system, card.rival))


class _CardRow(msgspec.Struct, frozen=True, gc=False):
    """Of a stored scorecard, what a look-up reads."""

    key: Key
    reason: Annotated[str | None, NAMES]
    card: Annotated[str | None, pa.string()]
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
    """Scorecards that any run left in the store, by `Scorecard.key`.

    Nothing is written here, and nothing merged: this knows but some of the columns.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(PartStore(place, _CARDS, lambda reason: reason is None))

    async def get(self, keys: Sequence[bytes]) -> list[Scorecard | None]:
        """Of each of `keys`, its first scorecard, or None; its evidence is read later. Raises StoreError."""
        at_hand = self._parts.at_hand(keys)
        rows = [row or await self._parts.get(key) for key, row in zip(keys, at_hand, strict=True)]
        return [None if row is None or row.card is None else unread_card(row.card) for row in rows]

    async def text(self, key: bytes) -> str | None:
        """The first scorecard of `key` as JSON, or None. Raises StoreError."""
        row = self._parts.at_hand([key])[0] or await self._parts.get(key)
        return None if row is None else row.card


_COLUMNS = ["run", "protocol", "system", "task_id", "sample", "repeat", "metrics", "bounds", "rival"]


class Arrivals:
    """The score rows of `run`, which began at `began`, in seconds since the epoch.

    Journals are not read: what is in them is in a part seconds later, unless the process of the run has died (`whole`).
    """

    def __init__(self, store: Place, run: str, began: float) -> None:
        self._store = store
        self._place = store / SCORECARDS.name
        self._run = run
        self._first = f"{int(began * 1e9):020d}"
        self._seen: set[str] = set()
        self.rows: pa.Table = flat_scores([])

    def whole(self) -> pa.Table:
        """All rows, those of journals included. Raises StoreError."""
        self.rows = score_table(self._store, self._run)
        return self.rows

    def take_in(self) -> pa.Table | None:
        """The rows of new parts, which `rows` then has too; None if parts were rewritten, and `rows` was read anew.

        Raises StoreError.
        """
        names = [name for name in self._place.files() if name not in self._seen]
        fresh = []
        for name in names:
            self._seen.add(name)
            if name < self._first:  # written before the run began
                continue
            try:
                part = open_part(self._place, SCORECARDS, name)
            except MissingFile:
                continue
            if part.replaces:
                self._seen.update(self._place.files())
                self.whole()
                return None
            table = current(part.read(_COLUMNS), SCORECARDS)
            fresh.append(table.filter(pc.equal(pc.cast(table["run"], pa.string()), self._run)))
        rows = flat_scores(fresh)
        if len(rows):
            self.rows = pa.concat_tables([self.rows, rows], promote_options="default")
        return rows
