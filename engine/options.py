"""Kinds of values on the command line; what is none of them is a usage error that says what is expected."""

import math
from argparse import ArgumentTypeError

__all__ = ["port", "positive"]


def port(text: str) -> int:
    """A TCP port, 0 for any that is free."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65_535):
        raise ArgumentTypeError(f"{text!r} is no port, 0 to 65535")
    return int(text)


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return number
