"""Patterns that a text is searched for together: one pass of RE2 says which of them it may match.

A hundred patterns cost as much as one. RE2 knows neither what stands around a match nor what an earlier group matched,
and its classes are those of ASCII: it looks for wider patterns, and only what it finds is worth Python's search.
"""

import re
from collections.abc import Sequence
from functools import cached_property

import re2

__all__ = ["Screen"]

# What stands around a match, with groups to the depth of two.
_PART = r"[^()\[\]\\]|\\.|\[(?:[^\]\\]|\\.)+\]"
_AROUND = re.compile(rf"\(\?<?[=!](?>(?:{_PART}|\((?>(?:{_PART}|\((?>(?:{_PART})*)\))*)\))*)\)")
_WIDER = {
    r"\w": r"[\pL\pM\pN_]",
    r"\s": r"[\s\pZ\x0b\x1c-\x1f\x85]",
    r"\d": r"\p{Nd}",
    r"\1": r"\p{Nd}{1,9}",
    r"\b": "",
}
_ESCAPED = re.compile(r"\\.")
_MEMORY = 64 << 20  # bytes: what RE2 may remember of texts that it has passed


class Screen:
    """`patterns` in Python's syntax, with `flags`, and with no class within a class.

    The screen passes over the case of letters. Few texts match any: Python's own patterns are compiled when asked for.
    """

    def __init__(self, patterns: Sequence[str], flags: int = 0) -> None:
        self._patterns = patterns
        self._flags = flags
        self._compiled: dict[int, re.Pattern[str]] = {}

    def __len__(self) -> int:
        return len(self._patterns)

    def __getitem__(self, place: int) -> re.Pattern[str]:
        """The pattern at `place`, from 0."""
        if place not in self._compiled:
            self._compiled.setdefault(place, re.compile(self._patterns[place], self._flags))
        return self._compiled[place]

    def possible(self, text: str) -> list[int]:
        """The places of the patterns that `text` may match, in order; no other one does."""
        return sorted(self._set.Match(text.encode("utf-8", "replace")) or ())

    @cached_property
    def _set(self) -> "re2.Set":
        options = re2.Options()
        options.case_sensitive = False
        options.max_mem = _MEMORY
        options.log_errors = False
        found = re2.Set.SearchSet(options)
        for pattern in self._patterns:
            found.Add("(?m)" + _wider(pattern))
        found.Compile()
        return found


def _wider(pattern: str) -> str:
    bare = _AROUND.sub("", pattern)
    return _ESCAPED.sub(lambda one: _WIDER.get(one.group(), one.group()), bare)
