"""Counts and names in words."""

from collections.abc import Sequence

_NAMED = 5


def plural(count: int, noun: str, many: str = "") -> str:
    """`count` with its `noun`: "1 task", "2 tasks", "1,000 tasks". `many` is a plural that does not end in -s alone."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"


def listed(names: Sequence[str]) -> str:
    """The first five of `names`, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
