"""Follows an unfinished run: what has been scored, how fast, what failed, and the standings so far.

Reading new rows and computing standings are each followed by a rest of two hundred times their duration, so that
following costs less than 1 % of a processor, however large the run is.
"""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.config.metrics import headlines
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.pulse import Reading, last_pulse
from adjudge.engine.runs.record import Due, RunRecord
from adjudge.engine.runs.scores import state_of
from adjudge.engine.store import Place
from adjudge.engine.store.scorecards import RIVAL, Arrivals
from adjudge.scoring.contract.protocol import Comparing

REST = 200  # times what the last look took
SHORTEST_S = 1.0
BOARD_S = 5.0
RECENT_S = 60.0
WARM_S, WARM = 10.0, 5  # what comes out of the store first says nothing about the rest

_CARD = ["protocol", "system", "task_id", "sample", "repeat"]


class Tally(msgspec.Struct, frozen=True):
    """Scorecards `done` of those that are `due` (0: not known), by protocol in one system, or in all ("")."""

    system: str
    protocol: str
    done: int
    due: int


class Failed(msgspec.Struct, frozen=True):
    """How many scorecards of a protocol have missing scores for a reason."""

    protocol: str
    reason: str
    scorecards: int


class Placed(msgspec.Struct, frozen=True):
    """A system's place: its figures in the units that are displayed."""

    system: str
    place: str
    value: float | None
    low: float | None
    high: float | None


class Standing(msgspec.Struct, frozen=True):
    """The provisional standings of a protocol over the tasks that are done for every system."""

    protocol: str
    metric: str
    tasks: int
    rows: tuple[Placed, ...]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment: figures only. Times are in seconds, None where nothing can be said yet."""

    run: str
    state: str
    said: str
    done: int = 0
    due: int = 0
    unscored: int = 0
    rate: float | None = None
    left_s: float | None = None
    asked: int = 0
    cost: float | None = None
    cost_left: float | None = None
    waiting: bool = False
    tallies: tuple[Tally, ...] = ()
    failures: tuple[Failed, ...] = ()
    standings: tuple[Standing, ...] = ()
    tasks: int = 0


class Following:
    """Follows the run of `record` in `folder`, whose store is at `place`. Look from any thread.

    `version` counts the looks that saw more.
    """

    def __init__(self, folder: Path, record: RunRecord, place: Place) -> None:
        self.version = 0
        self.snapshot: Snapshot | None = None
        self._folder = folder
        self._record = record
        self._arrivals = Arrivals(place, record.run, record.started)
        self._counts = Counts()
        self._pace = Pace(record.started)
        self._board: Leaderboard | None = None
        self._board_version = -1
        self._rest_until = self._board_rest_until = 0.0
        self._looking = threading.Lock()
        self._next: asyncio.Task[Snapshot] | None = None

    def rows(self) -> pa.Table:
        """The score rows so far. Raises StoreError."""
        self.look()
        return self._arrivals.rows

    def board(self) -> Leaderboard:
        """The provisional leaderboard. Raises StoreError."""
        self.look()
        assert self._board is not None
        return self._board

    def look(self) -> Snapshot:
        """The run as it is now, or as it was when it was last looked at, a moment ago. Raises StoreError."""
        with self._looking:
            if self.snapshot is None or time.monotonic() >= self._rest_until:
                began = time.process_time()
                self._take_in()
                self._rest_until = _rested(began, SHORTEST_S)
                board = self._board
                if board is None or self._board_is_due():
                    board = self._make_board()
                self.snapshot = self._snapshot(board)
            return self.snapshot

    async def next(self, within_s: float) -> Snapshot | None:
        """The run at the next look, which all that wait share; None if it is not due within that time, or never.

        Raises StoreError.
        """
        if self._next is None or self._next.done():
            self._next = asyncio.ensure_future(self._later())
        looking = self._next
        await asyncio.wait((looking,), timeout=within_s)
        return looking.result() if looking.done() and not looking.cancelled() else None

    async def _later(self) -> Snapshot:
        await asyncio.sleep(max(0.0, self._rest_until - time.monotonic()))
        return await asyncio.to_thread(self.look)

    async def close(self) -> None:
        """Look no more."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)

    def _board_is_due(self) -> bool:
        return self._board_version < self.version and time.monotonic() >= self._board_rest_until

    def _make_board(self) -> Leaderboard:
        # Only a run at work needs what computes a board.
        from adjudge.engine.statistics.build import leaderboard_so_far
        from adjudge.engine.statistics.placement import Statistics

        began = time.process_time()
        self._board = leaderboard_so_far(self._record, self._arrivals.rows, Statistics())
        # The first one in a process also loads what computes it.
        self._board_rest_until = _rested(began if self._board_version >= 0 else time.process_time(), BOARD_S)
        self._board_version = self.version
        return self._board

    def _take_in(self) -> None:
        if self._record.state == "stopped":
            if self.version:
                return
            rows = None
            self._arrivals.whole()
        else:
            rows = self._arrivals.take_in()
        if rows is None:
            self._counts = Counts()
        fresh = self._arrivals.rows if rows is None else rows
        if len(fresh):
            self._counts.add(fresh)
            self.version += 1

    def _snapshot(self, board: Leaderboard) -> Snapshot:
        record, counts = self._record, self._counts
        assert record.due is not None
        pulse = last_pulse(self._folder)
        reading = Reading() if pulse is None else pulse.reading
        rate, cost_rate = self._pace.at(time.time(), counts.done, reading.cost)
        left = max(0, record.due.scorecards - counts.done)
        is_warm = record.state == "running" and counts.done >= WARM and time.time() - record.started >= WARM_S
        return Snapshot(
            run=record.run,
            state=record.state,
            said=state_of(record),
            done=counts.done,
            due=record.due.scorecards,
            unscored=counts.unscored,
            rate=rate if record.state == "running" else None,
            left_s=left / rate if is_warm and rate else None,
            asked=reading.asked,
            cost=reading.cost,
            cost_left=cost_rate * left if is_warm and cost_rate is not None else None,
            waiting=reading.waiting,
            tallies=tuple(_tallies(record, record.due, counts.cards)),
            failures=tuple(Failed(*name, count) for name, count in sorted(counts.failed.items())),
            standings=tuple(_standings(board)),
            tasks=len(record.tasks),
        )


class Counts:
    """Counts scorecards as their rows arrive: by protocol and system, and by reasons of missing scores."""

    def __init__(self) -> None:
        self.done = self.unscored = 0
        self.cards: Counter[tuple[str, str]] = Counter()
        self.failed: Counter[tuple[str, str]] = Counter()

    def add(self, rows: pa.Table) -> None:
        """Count the scorecards of `rows`, each of which has all its rows here."""
        names = [*_CARD, *([RIVAL] if RIVAL in rows.column_names else [])]
        cards = rows.group_by(names).aggregate([])
        for card in cards.group_by(["protocol", "system"]).aggregate([([], "count_all")]).to_pylist():
            self.cards[card["protocol"], card["system"]] += card["count_all"]
        self.done += len(cards)
        missing = rows.filter(pc.is_null(rows["value"]))
        self.unscored += len(missing.group_by(names).aggregate([]))
        lacking = missing.group_by([*names, "reason"]).aggregate([]).group_by(["protocol", "reason"])
        for one in lacking.aggregate([([], "count_all")]).to_pylist():
            self.failed[one["protocol"], one["reason"] or ""] += one["count_all"]


class Pace:
    """How fast scorecards come and what one costs, over the last minute or so; since `began` at first."""

    def __init__(self, began: float) -> None:
        self._past: deque[tuple[float, int, float]] = deque([(began, 0, 0.0)])

    def at(self, now: float, done: int, cost: float | None) -> tuple[float | None, float | None]:
        """(scorecards a second, cost of one), None where nothing can be said."""
        self._past.append((now, done, cost or 0.0))
        while len(self._past) > 2 and now - self._past[1][0] > RECENT_S:
            self._past.popleft()
        began, before, spent = self._past[0]
        made = done - before
        rate = made / (now - began) if now > began else None
        return rate, (cost - spent) / made if cost is not None and made else None


def _rested(began: float, shortest_s: float) -> float:
    """When to look again after a look that began then, in this process's own time, and ends now."""
    return time.monotonic() + max(shortest_s, REST * (time.process_time() - began))


def _tallies(record: RunRecord, due: Due, done: Counter[tuple[str, str]]) -> Iterator[Tally]:
    """Every protocol in all systems, then in each. Comparisons are due in all, not by system."""
    alone = {one.name: not isinstance(one, Comparing) for one in record.config.resolved.protocols}
    each = {system: count * record.config.repeats for system, count in due.systems.items()}
    reports = sum(each.values())
    compared = due.scorecards - reports * sum(alone.values())
    for protocol, is_alone in alone.items():
        every = sum(count for (name, _), count in done.items() if name == protocol)
        yield Tally("", protocol, every, reports if is_alone else compared)
    for system in record.systems:
        for protocol, is_alone in alone.items():
            yield Tally(system, protocol, done[protocol, system], each.get(system, 0) if is_alone else 0)


def _standings(board: Leaderboard) -> Iterator[Standing]:
    for protocol in dict.fromkeys(one.protocol for one in board.metrics):
        for one in headlines(one for one in board.metrics if one.protocol == protocol):
            rows = tuple(
                Placed(
                    row.system,
                    row.place,
                    *(_scaled(value, one.scale) for value in (row.value, row.low, row.high)),
                )
                for row in one.standings
            )
            yield Standing(one.protocol, one.metric, one.n_tasks, rows)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
