"""The page of every column of a store and of a run's scores, made from their Arrow schemas."""

import pyarrow as pa
from mkdocs.exceptions import PluginError
from reference.words import table, words_of

from adjudge.engine.store.part import NAMES, schema_of
from adjudge.engine.store.scorecards import ScoreRow
from adjudge.engine.store.upkeep import TABLES


def columns_page() -> str:
    """The page of every column."""
    tables = "\n\n".join(
        f"## `{kind.name}/` {{#{kind.name}}}\n\n{columns(kind.row)}"
        for kind in sorted(TABLES, key=lambda one: one.name)
    )
    return f"""# Columns of the store

A store's tables are folders of Parquet files. [The store](../store.md) says how rows come about, and has queries for
DuckDB. Text "of few values" is an Arrow dictionary, which readers show as text. Times are UTC, in microseconds.

{tables}

## `scores.parquet` in the folder of a run {{#run}}

A row is a metric of a scorecard. Runs with comparisons have a further column `rival`, as in [`scores/`](#scores).

{columns(ScoreRow)}
"""


def columns(row: type) -> str:
    """The table of a row's columns. Raises PluginError for one without words."""
    words = words_of(row)
    for name in schema_of(row).names:
        if name not in words:
            raise PluginError(f"{row.__module__}.{row.__name__}.{name}: has no words under it")
    rows = [(f"`{one.name}`", _type(one.type), words[one.name]) for one in schema_of(row)]
    return table(("column", "type", "meaning"), rows)


def _type(kind: pa.DataType) -> str:
    if kind == NAMES:
        return "text, of few values"
    if pa.types.is_list(kind):
        return f"list of {_type(kind.value_type)}"
    if pa.types.is_struct(kind):
        return f"({', '.join(f'`{one.name}` {_type(one.type)}' for one in kind)})"
    plain = {
        pa.string(): "text",
        pa.int32(): "integer",
        pa.int64(): "integer",
        pa.float64(): "number",
        pa.bool_(): "yes or no",
        pa.binary(16): "16 bytes",
        pa.timestamp("us", "UTC"): "time",
    }
    return plain[kind]
