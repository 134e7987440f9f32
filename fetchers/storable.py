"""Strings from outside as every table and message can hold them."""

import re

__all__ = ["storable"]

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate, which UTF-8 cannot encode, and without NUL characters."""
    return _UNSTORABLE.sub(lambda found: "" if found[0] == "\0" else "\ufffd", text)
