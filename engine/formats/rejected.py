"""`Rejected`, a line of input that was left out, and `FormatError`, input that leaves nothing to evaluate."""

import msgspec

from adjudge.engine.errors import UsageError
from adjudge.fetchers.urls import storable

_MAX_WHY = 300


class FormatError(UsageError):
    """Input that leaves nothing to evaluate: the file or key, the problem, and what to do, in one line."""


class Rejected(msgspec.Struct, frozen=True):
    """A line that was left out, and why. `line` counts from 1; 0 means the whole file."""

    file: str
    line: int
    why: str

    @classmethod
    def of(cls, file: object, line: int, kind: type[object], error: Exception) -> "Rejected":
        """The rejection of a line that is not a `kind`, as `error` says."""
        name = "row" if kind.__name__.endswith("Row") else kind.__name__.lower()
        why = f"invalid {name}: {error}"
        if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
            why = f"not JSON, of which JSON Lines have an object on every line: {error}"
        if isinstance(error, UnicodeDecodeError):
            why = f"{name} is not in UTF-8, at byte {error.start + 1}; save the file as UTF-8"
        return cls(str(file), line, storable(why[:_MAX_WHY]))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}"
