"""Rows as Arrow tables: strings that no file can hold are cleaned, and a row that cannot be stored is set aside."""

import logging
import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeVar, cast

import msgspec
import pyarrow as pa

from adjudge.engine.store.kinds import R, TableKind
from adjudge.engine.store.part import stamped

__all__ = ["UNSTORABLE", "cleaned", "json_text", "set_aside", "table_of"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

UNSTORABLE = (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 200


def table_of(kind: TableKind[R], rows: Sequence[R]) -> tuple[pa.Table, list[R]]:
    """`rows` as a table, and those of them that it holds: all but the ones that cannot be stored, which are logged."""
    try:
        return _table(kind, rows), list(rows)
    except UNSTORABLE:
        pass
    held = []
    for row in map(cleaned, rows):
        try:
            _table(kind, [row])
        except UNSTORABLE as error:
            set_aside(kind, row, error)
        else:
            held.append(row)
    return _table(kind, held), held


def _table(kind: TableKind[R], rows: Sequence[R]) -> pa.Table:
    schema = kind.schema
    arrays = [pa.array(list(map(attrgetter(field.name), rows)), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=stamped(schema))


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
