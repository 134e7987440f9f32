"""Types of options, and the options that several commands have.

An invalid value is a usage error that says what is expected.
"""

import math
from argparse import ArgumentParser, ArgumentTypeError

__all__ = [
    "add_select",
    "count",
    "port",
    "positive",
    "share",
]


def port(text: str) -> int:
    """A TCP port, 0 for any free one."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65_535):
        raise ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def add_select(command: ArgumentParser) -> None:
    """The options that choose tasks and systems."""
    command.add_argument("--limit", type=count, metavar="N", help="only the first N tasks that are chosen")
    command.add_argument("--task", nargs="+", metavar="ID", help="only these tasks")
    command.add_argument("--system", nargs="+", metavar="NAME", help="only these systems")
    command.add_argument("--language", nargs="+", metavar="LANG", help="only tasks in these languages")
    command.add_argument("--domain", nargs="+", metavar="NAME", help="only tasks of these domains")
