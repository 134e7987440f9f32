"""`Rejected`, a line of input that was left out, and `FormatError`, input that leaves nothing to evaluate."""

import re

import msgspec

from adjudge.engine.errors import UsageError
from adjudge.fetchers.urls import storable

_MAX_WHY = 300
_PLACE = re.compile(r"\(byte (\d+)\)$")
_NO_NUMBER = re.compile(rb"(NaN|Infinity)\b")


class FormatError(UsageError):
    """Input that leaves nothing to evaluate: the file or key, the problem, and what to do, in one line."""


class Rejected(msgspec.Struct, frozen=True):
    """A line that was left out, and why. `line` counts from 1; 0 means the whole file."""

    file: str
    line: int
    why: str

    @classmethod
    def of(
        cls, file: object, line: int, kind: type[object], error: Exception, raw: bytes = b""
    ) -> "Rejected":
        """The rejection of a line, `raw`, that is not a `kind`, as `error` says."""
        name = "row" if kind.__name__.endswith("Row") else kind.__name__.lower()
        why = f"invalid {name}: {error}"
        if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
            why = f"not JSON; a file of JSON Lines has one object per line: {error}"
            place = _PLACE.search(str(error))
            if place and (found := _NO_NUMBER.match(raw, int(place[1]))):
                why = f"{found[0].decode()} is not a number in JSON; write a number, or null for none"
        if isinstance(error, UnicodeDecodeError):
            why = f"{name} is not in UTF-8, at byte {error.start + 1}; save the file as UTF-8"
        return cls(str(file), line, storable(why[:_MAX_WHY]))

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''}: {self.why}"
