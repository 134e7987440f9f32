"""Tasks and reports that are given as rows: lists of dictionaries, data frames, Arrow tables."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec
import pyarrow as pa

from adjudge.engine.errors import UsageError

__all__ = ["Columns", "Rows", "write_rows"]


@runtime_checkable
class Columns(Protocol):
    """A table that others can read as Arrow: a data frame of pandas or polars, an Arrow table, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Rows = Iterable[Mapping[str, object]] | Columns
_IDS = ("id", "task_id")


def write_rows(file: Path, name: str, given: Iterable[object] | Columns) -> str:
    """Write the rows of the argument `name` into `file` as JSON Lines; its path. Raises UsageError."""
    with file.open("wb") as lines:
        for number, row in enumerate(_rows(given), 1):
            if not isinstance(row, Mapping):
                raise UsageError(f"{name}: row {number}: {type(row).__name__} where a mapping belongs")
            try:
                lines.write(msgspec.json.encode(_plain(row), enc_hook=_unpacked) + b"\n")
            except (TypeError, ValueError, RecursionError) as error:
                raise UsageError(f"{name}: row {number}: cannot be written as JSON: {error}") from error
    return str(file)


def _rows(given: Iterable[object] | Columns) -> Iterator[object]:
    if not isinstance(given, Columns):
        yield from given
        return
    for batch in pa.table(given).to_batches():
        yield from batch.to_pylist()


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    """The row without nulls, which data frames put where a row has nothing, and with ids as text."""
    found = {str(key): _without_nulls(value) for key, value in row.items() if value is not None}
    for name in _IDS:
        if isinstance(number := found.get(name), int) and not isinstance(number, bool):
            found[name] = str(number)
    return found


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _without_nulls(each) for key, each in value.items() if each is not None}
    return value


def _unpacked(value: object) -> object:
    """Numbers and arrays of numpy as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
