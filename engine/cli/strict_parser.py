"""A parser of arguments whose mistakes are usage errors, in one line and with what is nearest."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from adjudge.engine.errors import UsageError, nearest

__all__ = ["StrictParser", "Version"]


class StrictParser(argparse.ArgumentParser):
    """Raises UsageError for whatever it does not know."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError, in one line."""
        said = " ".join(message.removeprefix("argument ").split())
        raise UsageError(f"{said}; `{self.prog} --help` lists what there is")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What argparse finds. Raises UsageError for whatever it does not know, with the nearest options."""
        found, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            name = word.partition("=")[0]
            if name.startswith("-"):
                self.error(f"{name}: unknown option; {nearest(name, sorted(self._option_string_actions))}")
            self.error(f"{word}: one argument too many; leave it out, or write the option before it")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError for a value outside an option's choices, with the nearest of them."""
        if action.choices is not None and value not in action.choices:
            offer = nearest(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"unknown value {value!r}; {offer}")


class Version(argparse.Action):
    """Print the version, and end. It is read from the package's metadata, whose readers take long to import."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        told = "show program's version number and exit"  # argparse's own words
        super().__init__(
            option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, help=told
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it."""
        from importlib.metadata import version

        sys.stdout.write(f"adjudge {version('adjudge')}\n")
        parser.exit()
