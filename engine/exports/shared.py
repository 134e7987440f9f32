"""What exports share: every system's value of every metric, its counts, and safe file names for systems and tasks."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from adjudge.engine.runs.board import Leaderboard, MetricBoard, Standing

__all__ = ["Figure", "figures_of", "place"]

_SAFE = " ()[]{},;:=+@!'&~"
_MAX_BYTES = 200


def place(name: str) -> str:
    """`name` as one part of a path, another for every name: percent-encoded where it could lead elsewhere, or cut."""
    found = name
    if any(char in name for char in "/\\%") or name.startswith(".") or not name.isprintable() or not name:
        found = quote(name, safe=_SAFE, errors="replace").replace(".", "%2E", 1) or "%"
    if len(found.encode("utf-8", "replace")) <= _MAX_BYTES:
        return found
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{found.encode('utf-8', 'replace')[: _MAX_BYTES - 20].decode('utf-8', 'ignore')}~{digest}"


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
