"""The figures of a leaderboard that other tools show: each system's value of each metric, and its standing."""

from collections.abc import Iterator
from typing import NamedTuple

from adjudge.engine.runs.board import Leaderboard, MetricBoard, Standing


class Figure(NamedTuple):
    """A system's value of one metric, in the units that tables show, with its interval."""

    board: MetricBoard
    row: Standing
    value: float
    low: float | None
    high: float | None

    @property
    def name(self) -> str:
        """PROTOCOL.METRIC."""
        return f"{self.board.protocol}.{self.board.metric}"


def figures_of(board: Leaderboard) -> Iterator[tuple[str, list[Figure]]]:
    """Every system, in order of name, with its figures; without those that have too little coverage for a rank."""
    systems = sorted({row.system for metric in board.metrics for row in metric.standings})
    for system in systems:
        found = [
            Figure(metric, row, row.value * metric.scale, _scaled(row.low, metric), _scaled(row.high, metric))
            for metric in board.metrics
            for row in metric.standings
            if row.system == system and row.value is not None and not row.flagged
        ]
        if found:
            yield system, found


def _scaled(value: float | None, metric: MetricBoard) -> float | None:
    return None if value is None else value * metric.scale
