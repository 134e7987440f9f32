"""Tab completion: what argcomplete asks for the shell, answered from the parser and the names of what is installed."""

import argparse
from collections.abc import Iterable
from importlib.metadata import entry_points

import argcomplete
from argcomplete.completers import BaseCompleter, FilesCompleter

from adjudge.engine.exports.forms import BENCHMARKS, FORMS

_FORMATS = {"adjudge import": BENCHMARKS, "adjudge export": FORMS}
_files = FilesCompleter()


def complete(parser: argparse.ArgumentParser) -> None:
    """If a shell asks for completions, answer and end the process; otherwise do nothing."""
    argcomplete.autocomplete(parser, default_completer=_Offered())


class _Offered(BaseCompleter):
    """Completions of a value: installed names if it is one, otherwise files and folders."""

    def __call__(
        self, *, prefix: str, action: argparse.Action, parser: argparse.ArgumentParser, **_: object
    ) -> Iterable[str]:
        if action.dest == "protocol":
            return _installed("adjudge.protocols")
        if action.dest == "format":
            return _FORMATS.get(parser.prog) or _installed("adjudge.formats")
        found: Iterable[str] = _files(prefix)
        return found


def _installed(group: str) -> list[str]:
    """The names of entry points; nothing is loaded for them."""
    return sorted(entry_points(group=group).names)
