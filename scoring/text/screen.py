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
    """`patterns` in Python's syntax, whatever the case of letters, with no class within a class."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns

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
