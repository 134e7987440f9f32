"""The kinds of tables. Each has a struct for its rows; its fields, annotated with Arrow types, are the columns."""

from functools import cache
from typing import Annotated, Generic, Protocol, TypeVar, get_type_hints

import msgspec
import pyarrow as pa

__all__ = ["NAMES", "Integer", "Key", "Name", "R", "Row", "TableKind", "Text", "Time", "schema_of"]

NAMES = pa.dictionary(pa.int32(), pa.string())  # for columns of few different values

Key = Annotated[bytes, pa.binary(16)]
Name = Annotated[str, NAMES]
Text = Annotated[str, pa.string()]
Integer = Annotated[int, pa.int32()]
Time = Annotated[int, pa.timestamp("us", "UTC")]  # microseconds since the epoch


class Row(Protocol):
    """What every row has. A row is a msgspec struct with more fields, the last of which is `written_at`."""

    @property
    def key(self) -> bytes:
        """The 16-byte key that it is looked up by."""

    @property
    def reason(self) -> str | None:
        """The reason why there is no answer; None if there is one."""


R = TypeVar("R", bound=Row)


class TableKind(msgspec.Struct, Generic[R], frozen=True):
    """A kind of table: the name of its folder, the struct of its rows, and how many of them make a row group.

    `cached` is how many rows that were looked up stay in memory. `named_by` are the columns by which a message names a
    row. `journaled` says whether rows are kept in a journal until their part is written. `frame` is how many rows make
    a frame of records; 0 where rows are looked up by row group. `unique` are columns whose values hardly repeat.
    """

    name: str
    row: type[R]
    row_group: int
    cached: int
    named_by: tuple[str, ...]
    journaled: bool
    frame: int = 0
    unique: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the order of the struct's fields."""
        return schema_of(self.row)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in that order."""
        return _columns(self.row)


@cache
def schema_of(row: type) -> pa.Schema:
    """The columns of a struct whose fields are annotated with Arrow types."""
    hints = get_type_hints(row, include_extras=True)
    return pa.schema([(name, hint.__metadata__[0]) for name, hint in hints.items()])


@cache
def _columns(row: type[Row]) -> tuple[str, ...]:
    return tuple(schema_of(row).names)
