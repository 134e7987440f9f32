"""`adjudge export`: a run in another form."""

import argparse

from adjudge.engine.cli.exits import DONE
from adjudge.engine.cli.notices import unfinished
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.commands.export_run import ExportResult, export_run

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Write a run in another form."""
    unfinished(options.run_folder)
    print_result(options, export_run(options.run_folder, options.format, options.out), _print_files)
    return DONE


def _print_files(found: ExportResult) -> None:
    """Print where files were written."""
    out().print(f"{len(found.files)} files in {found.out}", markup=False, soft_wrap=True)
