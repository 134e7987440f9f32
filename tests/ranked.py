"""Made-up scores and their leaderboards, drawn at random."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import strategies as st

from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord, TaskRecord
from adjudge.engine.statistics.build import leaderboard_of
from adjudge.engine.statistics.placement import Statistics
from adjudge.engine.store.scorecards import SCORE_TYPES
from adjudge.scoring.contract.scorecard import Metric, Scorecard
from tests.made_record import made_record

SYSTEMS = ("able", "baker", "charlie")
METRICS = (
    Metric(name="score", headline=True),
    Metric(name="drift", worst=1.0, best=0.0, lower_is_better=True),
    Metric(name="hits", best=None),
    Metric(name="seen", best=None),
    Metric(name="errors", best=None, lower_is_better=True),
    Metric(name="rate", ratio=("hits", "seen")),
)


Row = dict[str, Any]
Rows = dict[tuple[str, str, int], dict[str, Row]]


class Few(Statistics):
    """Statistics of few resamples: the number and the rank need none."""

    resamples = 20


def record(tasks: int, **more: Any) -> RunRecord:
    return made_record(
        {"made": METRICS}, {str(task): TaskRecord("en", "") for task in range(tasks)}, list(SYSTEMS), **more
    )


def board_of(
    metrics: Iterable[Metric], cards: Mapping[str, Scorecard | None], task: TaskRecord | None = None
) -> Leaderboard:
    """The board of systems of which it knows one report each, or none, on one task."""
    own, there = tuple(metrics), {system: card for system, card in cards.items() if card is not None}
    name = next(iter(there.values())).protocol
    rows = [
        {
            "protocol": name,
            "system": system,
            "task_id": "1",
            "sample": 0,
            "repeat": 0,
            "metric": metric.name,
            "value": card.scores[metric.name],
            "status": "unscored" if card.scores[metric.name] is None else "scored",
            "reason": card.reasons.get(metric.name),
            **msgspec.structs.asdict(card.bounds_of(metric)),
        }
        for system, card in there.items()
        for metric in own
        if metric.name in card.scores
    ]
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(SCORE_TYPES.items())))
    record = made_record({name: own}, {"1": task or TaskRecord("en", "")}, cards)
    return leaderboard_of([record], table, Few())


def scored(value: float) -> Row:
    return {"value": value, "low": value, "high": value, "answered": 1, "parts": 1, "reason": None}


def unscored(low: float | None, high: float | None, reason: str = "judge_timeout") -> Row:
    return {"value": None, "low": low, "high": high, "answered": 0, "parts": 1, "reason": reason}


def board(rows: Rows, tasks: int, **more: Any) -> Leaderboard:
    return leaderboard_of([record(tasks, **more)], flat(rows), Few())


def flat(rows: Rows) -> pa.Table:
    """The rows of scores.parquet."""
    made = [
        {
            "protocol": "made",
            "system": system,
            "task_id": task,
            "sample": sample,
            "repeat": 0,
            "metric": metric,
            "status": "scored" if row["reason"] is None else "unscored",
            **row,
        }
        for (system, task, sample), metrics in rows.items()
        for metric, row in metrics.items()
    ]
    return pa.Table.from_pylist(made, schema=pa.schema(list(SCORE_TYPES.items())))


shares = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


counts = st.sampled_from([0.0, 1.0, 2.0, 8.0])


@st.composite
def reports(draw: st.DrawFn) -> dict[str, Row]:
    seen = draw(counts)
    return {
        "score": scored(draw(shares)),
        "drift": scored(draw(shares)),
        "hits": scored(min(seen, draw(counts))),
        "seen": scored(seen),
        "errors": scored(draw(counts)),
    }


@st.composite
def failures(draw: st.DrawFn, report: dict[str, Row]) -> dict[str, Row]:
    """`report` with some metrics unscored, bounded on both sides of what they were."""
    failed = {}
    for name, row in report.items():
        value = row["value"]
        if value is None or not draw(st.booleans()):
            failed[name] = row
            continue
        most = draw(st.sampled_from([value, 1.0 if name in ("score", "drift") else value + 3.0, None]))
        failed[name] = unscored(draw(st.sampled_from([0.0, value / 2, value, None])), most)
    return failed


@st.composite
def worlds(draw: st.DrawFn) -> tuple[int, Rows, Rows, str]:
    """Tasks, rows, the rows after one system failed at some of its tasks, and the system."""
    tasks = draw(st.sampled_from([1, 3, 20, 21]))
    samples = {system: draw(st.integers(1, 2)) for system in SYSTEMS}
    rows: Rows = {}
    for system in SYSTEMS:
        usual = draw(reports())
        odd = draw(st.sets(st.integers(0, tasks - 1), max_size=3))
        for task in range(tasks):
            for sample in range(samples[system]):
                rows[system, str(task), sample] = draw(reports()) if task in odd else usual
    spoilt, _ = draw(failing(rows, tasks))
    before = spoilt if draw(st.booleans()) else rows
    after, system = draw(failing(before, tasks))
    return tasks, before, after, system


@st.composite
def failing(draw: st.DrawFn, rows: Rows, tasks: int) -> tuple[Rows, str]:
    system = draw(st.sampled_from(SYSTEMS))
    after = dict(rows)
    for task in draw(st.sets(st.integers(0, tasks - 1), min_size=1, max_size=4)):
        gone = draw(st.booleans())
        for key in [key for key in after if key[:2] == (system, str(task))]:
            if gone:
                del after[key]
            else:
                after[key] = draw(failures(after[key]))
    return (after, system) if after else (rows, system)
