"""A run as an object: its tables, its leaderboard, and how it looks in a notebook.

The tables of a run, with names in clear: its scores, what was asked, what was read, and what came of each.

`judgments`, `evidence` and `pages` join: `evidence.key` is `judgments.key`, `evidence.url` is `pages.url`.

Two systems of a run side by side.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.commands.compare import Comparison
from adjudge.engine.commands.compare import compare as compare_run
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.scores import read_scores
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.pages import PAGES
from adjudge.engine.store.part import TableKind, current
from adjudge.engine.store.parts import scan
from adjudge.engine.store.place import Place
from adjudge.engine.store.scorecards import run_cards
from adjudge.engine.tables.standings import rankings, standings
from adjudge.engine.tables.templates import render
from adjudge.judges.plural import plural
from adjudge.scoring.contract.reasons import TRANSIENT
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["Run", "compare", "compare_async", "open", "open_async"]

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
        ("value", pa.float64()),
        ("reason", pa.string()),
        ("url", pa.string()),
        ("key", pa.string()),
    ]
)
_ASKED = pa.schema([*_WHOSE_TYPES, ("key", pa.string())])


def evidence_table(cards: Iterable[Scorecard]) -> pa.Table:
    """A row for each line of evidence: what was judged, the outcome, the page's URL and the judgment's key."""
    rows = [
        (*_whose(card), one.id, one.what, one.outcome, one.value, one.reason, one.url, one.judgment)
        for card in cards
        for one in card.evidence
    ]
    return _table(rows, _EVIDENCE)


def judgment_table(place: Place, cards: Iterable[Scorecard]) -> pa.Table:
    """A row for each question of each scorecard: whose it was, its answer as JSON, tokens and seconds.

    A question that several scorecards asked was answered once, and has a row for each. Raises StoreError.
    """
    asked = _table([(*_whose(card), key) for card in cards for key in card.judgments], _ASKED)
    wanted = pa.array([bytes.fromhex(key) for key in asked["key"].unique().to_pylist()], pa.binary(16))
    found = _first(_found(place, JUDGMENTS, "key", wanted), "key")
    keys = pa.array([key.hex() for key in found["key"].to_pylist()], pa.string())
    plain = in_clear(found.drop_columns(["key", "group"])).append_column("key", keys)
    return asked.join(plain, "key", join_type="inner").sort_by([(name, "ascending") for name in _ASKED.names])


def page_table(place: Place, source: str, cards: Iterable[Scorecard]) -> pa.Table:
    """A row for each page that the scorecards' protocols read, as it was stored for them. Raises StoreError."""
    urls = pa.array(sorted({url for card in cards for url in card.pages}), pa.string())
    found = _found(place, PAGES, "url", urls)
    own = found.filter(pc.equal(pc.cast(found["source"], pa.string()), source))
    return in_clear(_first(own, "url").drop_columns(["key", "source"])).sort_by("url")


def _whose(card: Scorecard) -> tuple[str, str, str, int, int]:
    return card.protocol, card.system, card.task_id, card.sample, card.repeat


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema
    )


def _found(place: Place, kind: TableKind[Any], column: str, wanted: pa.Array) -> pa.Table:
    tables = [
        current(table.filter(pc.is_in(table[column], value_set=wanted)), kind) for table in scan(place, kind)
    ]
    return pa.concat_tables([kind.schema.empty_table(), *tables], promote_options="permissive")


def _first(table: pa.Table, column: str) -> pa.Table:
    """Of the rows with the same `column`, the one that answers: the first, a transient failure only if alone."""
    transient = pc.is_in(pc.cast(table["reason"], pa.string()), value_set=pa.array(sorted(TRANSIENT)))
    ordered = table.append_column("transient", transient).append_column("row", pa.array(range(len(table))))
    by = [("transient", "ascending"), ("written_at", "ascending"), ("row", "ascending")]
    ordered = ordered.sort_by(by).drop_columns(["transient", "row"])
    values = ordered[column].to_pylist()
    first = {value: row for row, value in reversed(list(enumerate(values)))}
    return ordered.take(sorted(first.values()))


def in_clear(table: pa.Table) -> pa.Table:
    """The table with plain strings instead of dictionaries."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, pc.cast(table[field.name], field.type.value_type))
    return table


class Run:
    """The run in `folder`. Tables are read when first asked for. Raises UsageError if there is none.

    In a notebook a run shows its standings.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.record = RunRecord.read(self.folder).found_from_here(self.folder)
        self._place = Place.of(self.record.config.store)

    @cached_property
    def scores(self) -> pa.Table:
        """A row for each report, protocol and metric: scores.parquet. `value` is null where `reason` says why."""
        return in_clear(read_scores([self.folder]))

    @cached_property
    def judgments(self) -> pa.Table:
        """A row for each question of each report: system, task, question, answer as JSON, tokens. Raises StoreError."""
        return judgment_table(self._place, self._cards)

    @cached_property
    def evidence(self) -> pa.Table:
        """A row for each thing that was judged, with its outcome, its page's `url` and its judgment's `key`."""
        return evidence_table(self._cards)

    @cached_property
    def pages(self) -> pa.Table:
        """A row for each page that was read for the run, with its text. Raises StoreError."""
        return page_table(self._place, self.record.pages, self._cards)

    @cached_property
    def leaderboard(self) -> Leaderboard:
        """The standings, with intervals and tiers. Raises UsageError if leaderboard.json cannot be read."""
        file = self.folder / "leaderboard.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=Leaderboard)
        except (OSError, msgspec.MsgspecError) as error:
            raise UsageError(f"{file}: cannot be read; write it with adjudge leaderboard") from error

    @cached_property
    def _cards(self) -> list[Scorecard]:
        return run_cards(self._place, self.record.run)

    def __repr__(self) -> str:
        scored = len(self.record.tasks), len(self.record.systems)
        return f"Run({str(self.folder)!r}: {plural(scored[0], 'task')}, {plural(scored[1], 'system')})"

    def _repr_html_(self) -> str:
        tables = [(ranking, standings(ranking).shown) for ranking in rankings(self.leaderboard.metrics)]
        return render("run.html.jinja", __package__, tables=tables)


def open(folder: str | Path) -> Run:
    """The run in `folder`. Raises UsageError if there is none."""
    return Run(folder)


async def open_async(folder: str | Path) -> Run:
    """`open`, without keeping the event loop waiting."""
    return await asyncio.to_thread(Run, folder)


def compare(run: Run | str | Path, a: str, b: str) -> Comparison:
    """Paired tests of systems `a` and `b`, every metric, on the tasks scored for both. Raises UsageError."""
    return compare_run(run.folder if isinstance(run, Run) else run, a, b)


async def compare_async(run: Run | str | Path, a: str, b: str) -> Comparison:
    """`compare`, without keeping the event loop waiting."""
    return await asyncio.to_thread(compare, run, a, b)
