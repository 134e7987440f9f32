"""The tables of a run, with names in clear: its scores, what was asked, what was read, and what came of each.

`judgments`, `evidence` and `pages` join: `evidence.key` is `judgments.key`, `evidence.url` is `pages.url`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.kinds import TableKind
from adjudge.engine.store.pages import PAGES
from adjudge.engine.store.part import current
from adjudge.engine.store.parts import scan
from adjudge.engine.store.place import Place
from adjudge.scoring.contract.reasons import TRANSIENT
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["evidence_table", "in_clear", "judgment_table", "page_table"]

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
