"""The runs in a folder, each with what tells it from the others; one that cannot be read is listed with the reason."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from adjudge.engine.config.metrics import headlines
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.board import Leaderboard, MetricBoard
from adjudge.engine.runs.run import Run

__all__ = ["Headline", "ListedRun", "has_runs", "run_folders", "runs_in"]


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """What a `system` reached by a metric that ranks: its `value` and interval in displayed units, and its `rank`.

    A system without enough that is scored has no rank.
    """

    protocol: str
    metric: str
    system: str
    value: float | None
    low: float | None
    high: float | None
    decimals: int
    rank: float | None

    @property
    def full(self) -> str:
        """The metric with its protocol."""
        return f"{self.protocol}.{self.metric}"


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run: `started` and `ended` in seconds since the epoch, who judged, and the `commit` it was started at.

    `state` is running, stopped, finished or unreadable; `why` says of the second and the last how that came. `cost` is
    that of the judges, None without prices. `headlines` has every system under each metric that ranks, the best first.
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
    cost: float | None = None
    headlines: tuple[Headline, ...] = ()


def has_runs(folder: str | Path) -> bool:
    """Whether `folder` is no run itself, but holds one."""
    return not (Path(folder) / "run.json").exists() and any(True for _ in run_folders(folder))


def runs_in(folder: str | Path) -> list[ListedRun]:
    """Every run in `folder` and in the folders below it, the newest first. Raises UsageError if there is no folder."""
    top = Path(folder)
    if not top.is_dir():
        raise UsageError(f"{top}: not a folder; pass one that holds runs")
    found = [_listed(one) for one in run_folders(top)]
    return sorted(found, key=lambda one: (-(one.started or 0.0), one.folder))


def run_folders(top: str | Path) -> Iterator[Path]:
    """The folders of runs in `top`; hidden ones, such as a store's, and what links lead to are left out."""
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
        cost=record.cost,
        headlines=() if board is None else tuple(_headlines(board)),
    )


def _ranked(board: Leaderboard) -> Iterator[MetricBoard]:
    """The metrics that rank, by protocol."""
    for protocol in dict.fromkeys(metric.protocol for metric in board.metrics):
        yield from headlines(one for one in board.metrics if one.protocol == protocol)


def _headlines(board: Leaderboard) -> Iterator[Headline]:
    for metric in _ranked(board):
        for one in metric.standings:
            yield Headline(
                protocol=metric.protocol,
                metric=metric.metric,
                system=one.system,
                value=_shown(one.value, metric),
                low=_shown(one.low, metric),
                high=_shown(one.high, metric),
                decimals=metric.decimals,
                rank=one.rank,
            )


def _shown(value: float | None, metric: MetricBoard) -> float | None:
    return None if value is None else value * metric.scale
