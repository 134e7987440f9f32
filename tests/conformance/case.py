"""What every checker of a folder shares: the shape of a result, the tolerance, and reading lines."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

# A case: its name, whether it passed, and what differed. A checker yields one for each case of its file.
Check = tuple[str, bool, str]
Checker = Callable[[Path], Iterator[Check]]

TOLERANCE = 1e-9


def compare(name: str, actual: object, expected: object) -> Check:
    """One check: `actual` equals `expected`, numbers within 1e-9, containers element by element."""
    detail = difference(actual, expected)
    return name, not detail, detail


def difference(actual: object, expected: object, where: str = "") -> str:
    """The first place at which two nested values differ, or an empty string."""
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or actual.keys() != expected.keys():
            return f"{where or 'value'}: {actual!r}, expected {expected!r}"
        parts = (difference(actual[key], expected[key], f"{where}.{key}") for key in expected)
        return next(filter(None, parts), "")
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if not isinstance(actual, Sequence) or isinstance(actual, str) or len(actual) != len(expected):
            return f"{where or 'value'}: {actual!r}, expected {expected!r}"
        pairs = enumerate(zip(actual, expected, strict=True))
        return next(filter(None, (difference(a, e, f"{where}[{i}]") for i, (a, e) in pairs)), "")
    return "" if _equal(actual, expected) else f"{where or 'value'}: {actual!r}, expected {expected!r}"


def _equal(actual: object, expected: object) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return actual is expected
    if not (isinstance(actual, Real) and isinstance(expected, Real)):
        return actual == expected
    # A NaN equals nothing, so that an undefined number never passes for an expected one.
    return math.isclose(actual, expected, rel_tol=0.0, abs_tol=TOLERANCE)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
