"""`adjudge evaluate`: reports scored, and their leaderboard."""

import argparse
from collections.abc import Callable
from pathlib import Path

from adjudge.engine.cli.configuration import run_config
from adjudge.engine.cli.exits import DONE, INCOMPLETE
from adjudge.engine.cli.following import following
from adjudge.engine.cli.notices import rejected
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.cli.progress import Step, progress_on
from adjudge.engine.cli.standings import print_leaderboard
from adjudge.engine.cli.terminal import Terminal
from adjudge.engine.commands.evaluate import RunResult, evaluate
from adjudge.engine.records.pulse import Reading

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Score reports and print the leaderboard."""
    config, console = run_config(options), Terminal(stderr=True)
    with progress_on(console) as on_start, following(config.out, console, view=options.view) as follow:

        def begin(total: int, reading: Callable[[], Reading]) -> Step:
            follow()
            return on_start(total, reading)

        result = evaluate(config, begin)
    rejected(result.rejected)
    print_result(options, result, _print_run)
    return DONE if result.complete else INCOMPLETE


def _print_run(run: RunResult) -> None:
    """Print a finished run: its leaderboard, and the work it took."""
    print_leaderboard(run.leaderboard, Path(run.out) / "leaderboard.html")
    console = out()
    asked = " (all answered from the store)" if run.from_store and not run.from_judge else ""
    console.print(
        f"{run.scorecards} scorecards, {run.unscored} unscored; judgments: {run.from_judge} asked, "
        f"{run.from_store} from the store{asked}; pages: {run.pages_read} read, {run.pages_from_store} from the store; "
        f"{run.seconds:.1f} s",
        markup=False,
        soft_wrap=True,
    )
