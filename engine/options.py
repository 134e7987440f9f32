"""Kinds of values on the command line; what is none of them is a usage error that says what is expected."""

import math
from argparse import ArgumentTypeError

__all__ = ["positive"]


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return number
