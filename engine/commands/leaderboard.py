"""`adjudge leaderboard`: the standings of one or more runs."""

import argparse
import sys
from functools import partial

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.notices import print_leaderboard
from adjudge.engine.commands.output import print_result, select_section
from adjudge.engine.config.redaction import printable
from adjudge.engine.config.run import Select
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.statistics.published import read_published
from adjudge.engine.tables.files import write_own_leaderboard
from adjudge.engine.tables.markdown import leaderboard_markdown


def run(options: argparse.Namespace) -> int:
    """Print the leaderboard of runs, and write its files where `--out` says."""
    board = _built(options)
    written = None if options.out is None else write_own_leaderboard(board, options.out)
    if options.markdown:
        sys.stdout.write(printable(leaderboard_markdown(board)))
    else:
        print_result(options, board, lambda found: print_leaderboard(found, written))
    return DONE


def _built(options: argparse.Namespace) -> Leaderboard:
    build = partial(
        build_leaderboard,
        options.runs,
        published=() if options.published is None else read_published(options.published),
        human=options.human,
        labels=options.labels,
        select=Select(**select_section(options)),
        by=options.by,
        metrics=options.metric,
    )
    if options.cluster == "none":
        return build()
    from adjudge.engine.statistics.on_ray import statistics_on

    with statistics_on(options.cluster) as statistics:
        return build(statistics=statistics)
