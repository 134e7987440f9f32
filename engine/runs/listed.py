"""The runs in a folder, each with what tells it from the others; one that cannot be read is listed with the reason."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from adjudge.engine.config.metrics import headlines
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.run import Run

__all__ = ["Headline", "ListedRun", "runs_in"]


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The best `system` by a metric that ranks: its `value` in displayed units, with so many `decimals`."""

    protocol: str
    metric: str
    system: str
    value: float | None
    decimals: int


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run: `started` and `ended` in seconds since the epoch, who judged, and the `commit` it was started at.

    `state` is running, stopped, finished or unreadable; `why` says of the second and the last how that came.
    """

    folder: str
    state: str
    why: str = ""
    run: str = ""
    started: float | None = None
    ended: float | None = None
    judge: str = ""
    commit: str = ""
    systems: int = 0
    tasks: int = 0
    protocols: tuple[str, ...] = ()
    headlines: tuple[Headline, ...] = ()


def runs_in(folder: str | Path) -> list[ListedRun]:
    """Every run in `folder` and in the folders below it, the newest first. Raises UsageError if there is no folder."""
    top = Path(folder)
    if not top.is_dir():
        raise UsageError(f"{top}: not a folder; pass one that holds runs")
    found = [_listed(one) for one in _folders(top)]
    return sorted(found, key=lambda one: (-(one.started or 0.0), one.folder))


def _folders(top: Path) -> Iterator[Path]:
    """The folders of runs; hidden ones, such as a store's, and what links lead to are left out."""
    for place, below, files in os.walk(top):
        if "run.json" in files:
            yield Path(place)
            below.clear()
        below[:] = sorted(name for name in below if not name.startswith("."))


def _listed(folder: Path) -> ListedRun:
    try:
        run = Run.open(folder)
    except UsageError as error:
        return ListedRun(folder=str(folder), state="unreadable", why=str(error))
    record, board = run.record, run.board
    return ListedRun(
        folder=str(folder),
        state=record.state,
        why=record.why,
        run=record.run,
        started=record.started,
        ended=record.ended,
        judge=record.judging.said,
        commit=record.commit,
        systems=len(record.systems),
        tasks=len(record.tasks),
        protocols=tuple(record.metrics),
        headlines=() if board is None else tuple(_headlines(board)),
    )


def _headlines(board: Leaderboard) -> Iterator[Headline]:
    for protocol in dict.fromkeys(metric.protocol for metric in board.metrics):
        for metric in headlines(one for one in board.metrics if one.protocol == protocol):
            for best in metric.standings[:1]:
                value = None if best.value is None else best.value * metric.scale
                yield Headline(
                    protocol=protocol,
                    metric=metric.metric,
                    system=best.system,
                    value=value,
                    decimals=metric.decimals,
                )
