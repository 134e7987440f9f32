"""Counts in words."""


def plural(count: int, noun: str, many: str = "") -> str:
    """`count` with its `noun`: "1 task", "2 tasks", "1,000 tasks". `many` is a plural that does not end in -s alone."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"
