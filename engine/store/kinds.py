"""The kinds of tables: a struct per row, whose fields are the columns, each annotated with its Arrow type."""

from functools import cache
from typing import Annotated, Generic, Protocol, TypeVar, get_type_hints

import msgspec
import pyarrow as pa

__all__ = ["NAMES", "Integer", "Key", "Name", "R", "Row", "TableKind", "Text", "Time"]

NAMES = pa.dictionary(pa.int32(), pa.string())  # for columns of few different values

Key = Annotated[bytes, pa.binary(16)]
Name = Annotated[str, NAMES]
Text = Annotated[str, pa.string()]
Integer = Annotated[int, pa.int32()]
Time = Annotated[int, pa.timestamp("us", "UTC")]  # microseconds since the epoch


class Row(Protocol):
    """What every row has: a msgspec struct with further fields, whose last is `written_at`."""

    @property
    def key(self) -> bytes:
        """The key it is found by."""

    @property
    def reason(self) -> str | None:
        """Why there is no answer; None where there is one."""


R = TypeVar("R", bound=Row)


class TableKind(msgspec.Struct, Generic[R], frozen=True):
    """A kind of table: its folder's name, the struct of its rows, and how many rows are read at once."""

    name: str
    row: type[R]
    row_group: int

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the order of the struct's fields."""
        return _schema(self.row)


@cache
def _schema(row: type[Row]) -> pa.Schema:
    hints = get_type_hints(row, include_extras=True)
    return pa.schema([(name, hint.__metadata__[0]) for name, hint in hints.items()])
