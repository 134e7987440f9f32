"""Rows to and from Arrow tables, without pandas.

Strings that no file can hold are cleaned, and a row that cannot be stored is set aside. Where pandas is installed,
`pyarrow.scalar`, `pyarrow.array` and `to_numpy` import it, which adds a third of a second to commands that only look
something up, so none of them is used here.
"""

import logging
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from adjudge.engine.store.part import R, TableKind, listed, stamped

__all__ = [
    "UNSTORABLE",
    "Columns",
    "cleaned",
    "integers",
    "json_text",
    "set_aside",
    "table_of",
    "text",
    "whole",
]

_log = logging.getLogger(__name__)


def text(value: str) -> pa.Scalar:
    """A string to compare columns with."""
    content = value.encode("utf-8", "surrogatepass")
    ends = np.array([0, len(content)], np.int32)
    return pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(content))[0]


def whole(value: int) -> pa.Scalar:
    """A 64-bit integer to compare columns with."""
    return pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(np.array([value], np.int64))])[0]


def integers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A column of integers or times without nulls, as int64[n]; its buffer may be read-only."""
    return np.from_dlpack(column.cast(pa.int64()).combine_chunks()).astype(np.int64, copy=False)


T = TypeVar("T")

UNSTORABLE = (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 200
_CHUNK = 256


class Columns(Generic[R]):
    """Rows as they come, as Arrow columns: a few rows at a time, which the processor's cache still holds.

    `lost` has the numbers of rows that cannot be stored; these are logged.
    """

    def __init__(self, kind: TableKind[R]) -> None:
        self.lost: list[int] = []
        self._kind = kind
        self._batches: list[pa.RecordBatch] = []
        self._rows: list[R] = []  # those after the batches
        self._count = 0

    def __len__(self) -> int:
        """How many rows came, the lost ones included."""
        return self._count

    def __getitem__(self, number: int) -> R | None:
        """The row that came as that number, from 0; None if it is lost."""
        chunk, at = divmod(number, _CHUNK)
        rows = self._rows  # read before the batches, to which another thread adds before it drops these
        if chunk == len(self._batches):
            return rows[at]
        before, lost = bisect_left(self.lost, chunk * _CHUNK), bisect_left(self.lost, number)
        if number in self.lost[lost : lost + 1]:
            return None
        values = map(listed, self._batches[chunk].slice(at - (lost - before), 1).columns)
        return self._kind.row(
            **{name: value for name, (value,) in zip(self._kind.columns, values, strict=True)}
        )

    def add(self, row: R) -> None:
        """Add `row`."""
        self._rows.append(row)
        self._count += 1
        if len(self._rows) == _CHUNK:
            self._convert()

    def _convert(self) -> None:
        rows, first = self._rows, self._count - len(self._rows)
        try:
            batch = _batch(self._kind, rows)
        except UNSTORABLE:
            held = [self._is_stored(row) for row in rows]
            self.lost += [first + at for at, is_held in enumerate(held) if not is_held]
            batch = _batch(self._kind, list(compress(rows, held)))
        self._batches.append(batch)
        self._rows = []

    def _is_stored(self, row: R) -> bool:
        try:
            _batch(self._kind, [row])
        except UNSTORABLE as error:
            set_aside(self._kind, row, error)
            return False
        return True

    def table(self) -> pa.Table:
        """The rows that can be stored."""
        if self._rows:
            self._convert()
        return pa.Table.from_batches(self._batches, stamped(self._kind.schema)).unify_dictionaries()


def _batch(kind: TableKind[R], rows: Sequence[R]) -> pa.RecordBatch:
    schema = kind.schema
    arrays = [pa.array(list(map(attrgetter(field.name), rows)), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=stamped(schema))


def table_of(kind: TableKind[R], rows: Iterable[R]) -> pa.Table:
    """The `rows` that can be stored. The others are logged."""
    columns = Columns(kind)
    for row in rows:
        columns.add(row)
    return columns.table()


def set_aside(kind: TableKind[R], row: R, error: Exception) -> None:
    """Log in one line that `row` is not stored, and why."""
    shown = " ".join(f"{name}={_shown(getattr(row, name))}" for name in kind.named_by)
    _log.error("%s: a row cannot be stored and is left out: %s: %s", kind.name, shown, _shown(error))


def _shown(value: object) -> str:
    return ascii(value.hex() if isinstance(value, bytes) else str(value)[:_SHOWN])


def cleaned(value: T) -> T:
    """`value` with U+FFFD in place of each lone surrogate, which no file can hold."""
    found: Any = value
    if isinstance(value, str):
        found = _SURROGATE.sub("\ufffd", value)
    elif isinstance(value, msgspec.Struct):
        found = type(value)(**{name: cleaned(getattr(value, name)) for name in value.__struct_fields__})
    elif isinstance(value, dict):
        found = {cleaned(name): cleaned(each) for name, each in value.items()}
    elif isinstance(value, list | tuple | set | frozenset):
        found = type(value)(map(cleaned, value))
    return cast(T, found)


def json_text(value: object) -> str:
    """`value` as JSON that can be stored."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeError:
        return msgspec.json.encode(cleaned(value)).decode()
