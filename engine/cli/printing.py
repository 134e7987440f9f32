"""How results are printed: for people, as one JSON document, or as Markdown."""

import argparse
import sys
from collections.abc import Callable
from typing import TypeVar

from adjudge.engine.cli.sheet import Sheet
from adjudge.engine.cli.terminal import Terminal
from adjudge.engine.config.redaction import printable, printable_json
from adjudge.engine.rendering.markdown_tables import rich_markdown

__all__ = ["out", "print_result", "print_sheet", "print_table"]

_PIPE_WIDTH = 400

T = TypeVar("T")


def out() -> Terminal:
    """Stdout; what is not a terminal is given long lines."""
    console = Terminal(highlight=False)
    return console if console.is_terminal else Terminal(highlight=False, width=_PIPE_WIDTH)


def print_result(options: argparse.Namespace, result: object, people: Callable[..., None]) -> None:
    """Print a result by `people`, or as JSON where that was asked for."""
    if options.json:
        sys.stdout.write(printable_json(result) + "\n")
    else:
        people(result)


def print_sheet(
    options: argparse.Namespace,
    result: T,
    people: Callable[[T], Sheet],
    sentence: Callable[[T], str] = lambda _: "",
) -> None:
    """Print a result as a table with a sentence, as Markdown or as JSON."""
    if options.markdown:
        sys.stdout.write(printable(rich_markdown(people(result).table(), sentence(result))))
    else:
        print_result(options, result, lambda found: print_table(people(found), sentence(found)))


def print_table(found: Sheet, said: str = "") -> None:
    """Print a table, and a sentence underneath."""
    console = out()
    console.print(found.table(console.width))
    if said:
        console.print(said, markup=False, soft_wrap=True)
