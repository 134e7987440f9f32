"""Raised text as plain text: `10^6` where a reader sees a power, `[3]` where a reader sees the mark of a note."""

import re

_NUMBER = re.compile(r"[+\u2212\u2013-]?\d+(?:[.,]\d+)?[+\u2212-]?|[a-z]|[+\u2212*-]")
_EXPRESSION = re.compile(r"[\w.,]*\d[\w.,]*(?:[+\u2212*/-][\w.,]+)*|\w+(?:[+\u2212*/-][\w.,]+)+")
# Of one letter: 3e siècle, Me Dupont, 1o, 2a, 5h, 7r, 4d, 6c.
_ORDINALS = frozenset("aeocdhr")
_PRICE = re.compile(r"[$\u20ac\u00a3\u00a5]\s?\d[\d,.]*\Z")
_LONGEST = 20
_CENTS = re.compile(r"\d\d")


def raised(before: str, text: str, *, is_note: bool = False) -> str:
    """How `text` is written behind the last characters `before` of its line. A note's mark is said to be one.

    Words and ordinals (1st) stay as they are, and so does what begins a line.
    """
    text = text.strip()
    if not text or not before or before[-1].isspace():
        return text
    if is_note:
        return text if text.startswith(("[", "(")) else f"[{text}]"
    if _CENTS.fullmatch(text) and _PRICE.search(before):
        return f".{text}"
    if not (before[-1].isalnum() or before[-1] in ")]}"):
        return text
    if _NUMBER.fullmatch(text):
        return text if text in _ORDINALS else f"^{text}"
    return f"^({text})" if len(text) <= _LONGEST and _EXPRESSION.fullmatch(text) else text
