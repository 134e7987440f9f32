"""`adjudge import`: recorded results as a run."""

import argparse
from pathlib import Path

from adjudge.engine.cli.exits import DONE, INCOMPLETE
from adjudge.engine.cli.notices import rejected
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.cli.standings import print_leaderboard
from adjudge.engine.commands.import_results import PAGES, ImportResult, import_results

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Write recorded results as a run and print its leaderboard."""
    found = import_results(
        options.folder, options.format, options.out, judge=options.judge, system=options.system
    )
    rejected(found.rejected)
    print_result(options, found, _print_run)
    return INCOMPLETE if found.rejected or found.unscored else DONE


def _print_run(run: ImportResult) -> None:
    """Print an imported run: its leaderboard, and what was read."""
    print_leaderboard(run.leaderboard, Path(run.out) / "leaderboard.html")
    pages = f"; pages: {run.pages} recorded, in {Path(run.out) / PAGES}" if run.pages else ""
    out().print(
        f"{run.scorecards} recorded scorecards, {run.unscored} unscored{pages}", markup=False, soft_wrap=True
    )
