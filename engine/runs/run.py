"""A run as one object: what its folder and its store hold, read when it is first asked for.

Paths in a run's record are relative to the folder that it was started in. `Run` resolves them, and nothing else does.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.items import Item, label_readers, labelled_cards
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.scores import ScoreMatrix, read_matrices, read_scores
from adjudge.engine.store import JudgmentStore, PageStore, Place
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.pages import PAGES
from adjudge.engine.store.part import TableKind, current
from adjudge.engine.store.parts import scan
from adjudge.engine.store.scorecards import find_cards, run_cards
from adjudge.fetchers.page import Page, address_of
from adjudge.scoring.contract.reasons import TRANSIENT
from adjudge.scoring.contract.scorecard import Evidence, Metric, Outcome, Scorecard

__all__ = ["Run", "in_clear"]


class Run:
    """The run in `folder`. Nothing is ever written.

    `written` is the record as run.json has it: runs are compared and published by it. `record` is the same with its
    relative paths as seen from this process's working directory: files and stores are opened by it.
    `withheld` says by protocol why its evidence is left out; it is empty except in a `published` run.
    """

    def __init__(self, folder: Path, written: RunRecord, withheld: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.written = written
        self.record = written.found_from_here(folder)
        self.withheld = withheld or {}

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """The run in `folder`. Raises UsageError if there is none, or this version cannot read its record."""
        return cls(Path(folder), RunRecord.read(Path(folder)))

    def published(self) -> "Run":
        """The run as it is published: without the evidence that tells gold which a benchmark keeps to itself."""
        loaders = protocol_loaders()
        why = {name: getattr(loaders[name](), "withheld", "") for name in self.metrics if name in loaders}
        return Run(self.folder, self.written, {name: words for name, words in why.items() if words})

    @property
    def config(self) -> RunConfig:
        """The run's configuration, its paths as seen from here."""
        return self.record.config

    @property
    def metrics(self) -> dict[str, tuple[Metric, ...]]:
        """The metrics of each protocol, in the order in which it declares them."""
        return self.record.metrics

    @cached_property
    def has_store(self) -> bool:
        """Whether its store is where it was, which it is not where a finished run was moved without it."""
        place = Place.of(self.config.store)
        return self.record.due is not None or not place.is_local or place.is_folder()

    @cached_property
    def place(self) -> Place:
        """The run's store. Raises UsageError where it is not there."""
        place = Place.of(self.config.store)
        if not self.has_store:
            raise UsageError(
                f"store: {self.folder} keeps its evidence in {place.uri}, which does not exist; "
                "move a run together with its store"
            )
        return place

    @cached_property
    def scores(self) -> pa.Table:
        """A row for each report, protocol and metric; `value` is null where `reason` says why.

        Texts are dictionary-encoded. The rows of a run that has not finished are what its store holds by now. Raises
        UsageError, StoreError.
        """
        return read_scores(self.folder, self.record)

    @property
    def matrices(self) -> list[ScoreMatrix]:
        """Every metric as systems x tasks, in order of protocol and metric. Raises UsageError, StoreError."""
        return read_matrices(self.scores)

    @property
    def board(self) -> Leaderboard | None:
        """The leaderboard of the whole run that `evaluate` wrote; None if the run has not finished or has none.

        Earlier versions knew fewer fields and ranked by other rules, and wrote the table of some tasks or of several
        runs over it: such a file is not the run's leaderboard.
        """
        try:
            raw = (self.folder / "leaderboard.json").read_bytes()
            fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            found = msgspec.json.decode(raw, type=Leaderboard)
        except (OSError, msgspec.MsgspecError):
            return None
        is_current = fields.keys() >= {*Leaderboard.__struct_fields__}
        return found if is_current and self.record.due is None and _is_whole(found, self.record) else None

    @cached_property
    def cards(self) -> list[Scorecard]:
        """Every scorecard, by protocol, system, task, sample and repeat. Raises StoreError."""
        return self._read_cards()

    def _read_cards(self) -> list[Scorecard]:
        return [self.shown(card) for card in run_cards(self.place, self.record.run)]

    def cards_of(self, system: str, task: str) -> list[Scorecard]:
        """Every scorecard of a system's reports to a task, comparisons included. Raises StoreError."""
        return [self.shown(card) for card in find_cards(self.place, self.record.run, system, task)]

    def shown(self, card: Scorecard) -> Scorecard:
        """A scorecard as this run shows it: where its gold is withheld, a sentence takes the place of its evidence."""
        why = self.withheld.get(card.protocol)
        if why is None:
            return card
        said = f"The evidence is not published: it tells the gold of {card.protocol}, which is {why}."
        return msgspec.structs.replace(card, evidence=(Evidence(what=said, outcome=Outcome("note")),))

    def labelled_cards(self) -> Iterator[tuple[Scorecard, list[Item]]]:
        """Every scorecard of the judge's first repeat with the lines that people can label. Raises StoreError."""
        return labelled_cards(self._read_cards(), label_readers(self.metrics))

    @property
    def items(self) -> Iterator[Item]:
        """Every verdict of the judge that people can label. Raises StoreError."""
        return (item for _, items in self.labelled_cards() for item in items if item.labelled.label)

    @cached_property
    def judgments(self) -> pa.Table:
        """A row for each question of each scorecard: whose it was, its answer as JSON, tokens and seconds.

        A question that several scorecards asked was answered once, and has a row for each. `key` joins with `evidence`.
        Raises StoreError.
        """
        asked = _table([(*_whose(card), key) for card in self.cards for key in card.judgments], _ASKED)
        wanted = pa.array([bytes.fromhex(key) for key in asked["key"].unique().to_pylist()], pa.binary(16))
        found = _first(_found(self.place, JUDGMENTS, "key", wanted), "key")
        keys = pa.array([key.hex() for key in found["key"].to_pylist()], pa.string())
        plain = in_clear(found.drop_columns(["key", "group"])).append_column("key", keys)
        joined = asked.join(plain, "key", join_type="inner")
        return joined.sort_by([(name, "ascending") for name in _ASKED.names])

    @cached_property
    def evidence(self) -> pa.Table:
        """A row for each line of evidence: what was judged, the outcome in words and by fields, `url` and `key`.

        Raises StoreError.
        """
        rows = [(*_whose(card), *_line(one)) for card in self.cards for one in card.evidence]
        return _table(rows, _EVIDENCE)

    @cached_property
    def pages(self) -> pa.Table:
        """A row for each page that the protocols read, with its text, as it was stored for them. Raises StoreError."""
        urls = pa.array(sorted({url for card in self.cards for url in card.pages}), pa.string())
        found = _found(self.place, PAGES, "url", urls)
        own = found.filter(pc.equal(pc.cast(found["source"], pa.string()), self.record.pages))
        return in_clear(_first(own, "url").drop_columns(["key", "source"])).sort_by("url")

    async def stores(
        self,
        retry_unscored: bool = False,
        *,
        cached_judgments: int | None = None,
        cached_pages: int | None = None,
    ) -> tuple[JudgmentStore, PageStore]:
        """The run's judgments and pages, opened for reading, with at most so many rows in memory. Raises StoreError."""
        judgments = JudgmentStore(self.place, retry_unscored=retry_unscored, cached=cached_judgments)
        pages = PageStore(self.place, self.record.pages, retry_unscored=retry_unscored, cached=cached_pages)
        await judgments.open(every=True)
        await pages.open(every=True)
        return judgments, pages

    def pages_of(self, cards: Iterable[Scorecard]) -> dict[str, Page]:
        """The pages that `cards` name and the store still holds, by URL in order of first use. Raises StoreError."""
        addresses = (address_of(url) for card in cards for url in card.pages)
        return asyncio.run(self._pages(list(dict.fromkeys(one for one in addresses if isinstance(one, str)))))

    async def _pages(self, urls: Sequence[str]) -> dict[str, Page]:
        store = PageStore(self.place, self.record.pages)
        await store.open(every=True)
        found = {url: await store.get(url) for url in urls}
        return {url: page for url, page in found.items() if page is not None}


def _is_whole(board: Leaderboard, record: RunRecord) -> bool:
    """Whether a leaderboard is of all tasks and systems of one run alone, and of nothing else."""
    sizes = {(source.tasks, source.systems) for source in board.sources}
    return (
        board.runs == (record.run,) and not board.by and sizes <= {(len(record.tasks), len(record.systems))}
    )


_WHOSE = ("protocol", "system", "task_id", "sample", "repeat")
_WHOSE_TYPES = [
    *((name, pa.string()) for name in _WHOSE[:3]),
    *((name, pa.int32()) for name in _WHOSE[3:]),
]
_EVIDENCE = pa.schema(
    [
        *_WHOSE_TYPES,
        ("id", pa.string()),
        ("what", pa.string()),
        ("outcome", pa.string()),
        ("kind", pa.string()),
        ("points", pa.float64()),
        ("most", pa.float64()),
        ("reference", pa.float64()),
        ("value", pa.float64()),
        ("reason", pa.string()),
        ("url", pa.string()),
        ("key", pa.string()),
    ]
)
_ASKED = pa.schema([*_WHOSE_TYPES, ("key", pa.string())])


def _whose(card: Scorecard) -> tuple[str, str, str, int, int]:
    return card.protocol, card.system, card.task_id, card.sample, card.repeat


def _line(one: Evidence) -> tuple[str | float | None, ...]:
    kind, points, most, reference, words = msgspec.structs.astuple(one.outcome)
    of = (words, kind, points, most, reference)
    return one.id, one.what, *of, one.value, one.reason, one.url, one.judgment


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema
    )


def _found(place: Place, kind: TableKind[Any], column: str, wanted: pa.Array) -> pa.Table:
    """The stored rows of `kind` whose `column` is among `wanted`."""
    tables = [
        current(table.filter(pc.is_in(table[column], value_set=wanted)), kind) for table in scan(place, kind)
    ]
    return pa.concat_tables([kind.schema.empty_table(), *tables], promote_options="permissive")


def _first(table: pa.Table, column: str) -> pa.Table:
    """Of the rows with the same `column`, the one that answers: the first, a transient failure only if alone."""
    transient = pc.is_in(pc.cast(table["reason"], pa.string()), value_set=pa.array(sorted(TRANSIENT)))
    rows = pa.array(range(len(table)), pa.int64())
    ordered = table.append_column("transient", transient).append_column("row", rows)
    by = [("transient", "ascending"), ("written_at", "ascending"), ("row", "ascending")]
    ordered = ordered.sort_by(by).drop_columns(["transient", "row"])
    values = ordered[column].to_pylist()
    first = {value: row for row, value in reversed(list(enumerate(values)))}
    return ordered.take(pa.array(sorted(first.values()), pa.int64()))


def in_clear(table: pa.Table) -> pa.Table:
    """The table with plain strings instead of dictionaries."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, pc.cast(table[field.name], field.type.value_type))
    return table
