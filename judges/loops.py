"""Replies that end in repetition: the same words again and again, or nothing but blanks, until no tokens are left.

A model that decodes greedily never leaves such a loop, so more tokens do not help. Only the end of a text is looked at.
"""

import re

__all__ = ["LOOP", "loop_begins"]

LOOP = "loop"
"""The finish reason of a reply that ended in repetition."""

SHORTEST = 400
"""Characters of a loop, at least."""
_ROUNDS = 6  # of what is repeated, at least
_LOOKED_AT = 8_000
_END = 32  # characters that the end of a loop shares with the end of its round before
_CANDIDATES = 8
_MARKED = re.compile(r'["{}\[\]]')
_DIGITS = re.compile(r"[0-9]")


def loop_begins(text: str, exact: bool = False) -> int | None:
    """Where the repetition begins in which `text` ends; None if it does not end in one.

    Unless it must be `exact`, what differs in its figures alone ("Step 8: ..., Step 9: ...") is repeated too, but not
    in JSON, whose items may be alike. Linear in the length of `text`.
    """
    tail = text[-_LOOKED_AT:]
    begins = _begins(tail)
    if begins is None and not exact and not _MARKED.search(tail, max(len(tail) - 2 * SHORTEST, 0)):
        tail = _DIGITS.sub("0", tail)
        begins = _begins(tail)
    return None if begins is None else len(text) - len(tail) + begins


def _begins(tail: str) -> int | None:
    """Where the loop begins within `tail`, which is short."""
    size = len(tail)
    if size < SHORTEST:
        return None
    end, before = tail[-_END:], size - 1
    for _ in range(_CANDIDATES):
        place = tail.rfind(end, 0, before)
        if place < 0:
            return None
        before = place + _END - 1
        period = size - _END - place
        if period * _ROUNDS > size:
            return None
        if size - (begins := _extent(tail, period)) >= max(SHORTEST, period * _ROUNDS):
            return begins
    return None


def _extent(tail: str, period: int) -> int:
    """From where on every character of `tail` is the one that stands a `period` behind it."""
    low, high = 0, len(tail) - period
    while low < high:
        middle = (low + high) // 2
        if tail[middle:high] == tail[middle + period : high + period]:
            high = middle
        else:
            low = middle + 1
    return high
