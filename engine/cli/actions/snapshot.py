"""`adjudge snapshot`: the pages of a run or a web archive as a folder."""

import argparse

from adjudge.engine.cli.exits import DONE
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.commands.snapshot import SnapshotResult, snapshot

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Write the pages of a run or a web archive as a snapshot."""
    print_result(options, snapshot(options.source, options.out, warc=options.warc), _print_pages)
    return DONE


def _print_pages(found: SnapshotResult) -> None:
    """Print where pages were written."""
    beside = f", and as {found.warc}" if found.warc else ""
    out().print(f"{found.pages} pages in {found.out}{beside}", markup=False, soft_wrap=True)
