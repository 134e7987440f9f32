"""`adjudge fetch`: URLs read into a store."""

import argparse
import sys

from adjudge.engine.cli.exits import DONE, INCOMPLETE
from adjudge.engine.cli.terminal import Terminal
from adjudge.engine.commands.fetch import FetchRow, FetchSummary, fetch_command, fetch_config
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.config.redaction import printable_json

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Read URLs into a store."""
    settings = fetch_config(
        allow=options.allow, extractor=options.extractor, timeout=options.timeout, max_bytes=options.max_bytes
    )
    rows: list[FetchRow] = []
    malformed = 0

    def emit(row: FetchRow) -> None:
        nonlocal malformed
        malformed += row.reason == "citation_malformed"
        if options.json:
            rows.append(row)
        else:
            sys.stdout.write(printable_json(row) + "\n")
            sys.stdout.flush()

    summary = interruptible(fetch_command(options.file, options.store, settings, emit))
    if options.json:
        sys.stdout.write(printable_json(rows) + "\n")
    _print_summary(summary)
    return INCOMPLETE if malformed else DONE


def _print_summary(summary: FetchSummary) -> None:
    """Print what a fetch read, on stderr."""
    Terminal(stderr=True, highlight=False).print(
        f"{summary.read} read, {summary.failed} failed; {summary.from_store} from the store, "
        f"{summary.from_network} from the network"
    )
