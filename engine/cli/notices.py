"""What is said on stderr beside a result: lines that were left out, and how far an unfinished run is."""

import logging
from collections.abc import Sequence
from pathlib import Path

from adjudge.engine.cli.terminal import Terminal
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.records.matrices import read_scores
from adjudge.engine.records.record import RunRecord, is_finished
from adjudge.engine.records.so_far import provisional
from adjudge.engine.telemetry.logs import event, is_json

__all__ = ["rejected", "unfinished"]

_log = logging.getLogger(__name__)

_SHOWN_REJECTED = 20


def rejected(lines: Sequence[Rejected]) -> None:
    """Print the lines that were left out, on stderr."""
    if is_json():
        for line in lines[:_SHOWN_REJECTED]:
            event(_log, "line left out", logging.WARNING, why=str(line))
        return
    console = Terminal(stderr=True, soft_wrap=True, highlight=False)
    for line in lines[:_SHOWN_REJECTED]:
        console.print(f"left out: {line}", style="yellow", markup=False)
    if len(lines) > _SHOWN_REJECTED:
        console.print(f"left out: {len(lines) - _SHOWN_REJECTED} more lines", style="yellow")


def unfinished(folder: str) -> None:
    """Say on stderr how far the run in `folder` is, if it has not finished. Raises UsageError, StoreError."""
    if is_finished(Path(folder)):
        return
    said = provisional(RunRecord.read(Path(folder)), read_scores([Path(folder)]))
    if is_json():
        event(_log, "run unfinished", logging.WARNING, why=said)
    elif said:
        Terminal(stderr=True, soft_wrap=True, highlight=False).print(said, style="yellow", markup=False)
