"""Ranks that nobody can steer by failing: the number shown ranks, over all selected tasks."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.runs.board import Leaderboard, Standing
from adjudge.engine.runs.record import TaskRecord
from adjudge.engine.statistics.build import leaderboard_of
from adjudge.engine.store.scorecards import SCORE_TYPES
from tests.ranked import (
    METRICS,
    SYSTEMS,
    Few,
    Rows,
    board,
    failures,
    record,
    scored,
    unscored,
    worlds,
)

OWN = [metric.name for metric in METRICS if metric.ratio is None]


def every(found: Leaderboard) -> Iterator[tuple[str, float, Standing]]:
    for metric in found.metrics:
        for row in metric.standings:
            yield metric.metric, -1.0 if metric.lower_is_better else 1.0, row


def simple(values: dict[str, list[float | None]], tasks: int = 20) -> Leaderboard:
    """A board of one metric: a value, None for an unscored row, or nothing past the end of a list."""
    return board(
        {
            (system, str(task), 0): {
                "score": unscored(None, None, "page_timeout") if value is None else scored(value)
            }
            for system, row in values.items()
            for task, value in enumerate(row)
        },
        tasks,
    )


def ranks(found: Leaderboard, metric: str = "score") -> dict[str, float | None]:
    (one,) = [one for one in found.metrics if one.metric == metric]
    return {row.system: row.rank for row in one.standings}


def good(row: Standing, sign: float) -> float:
    return -np.inf if row.value is None else sign * row.value


@settings(max_examples=60)
@given(worlds())
def test_failing_never_raises_oneself_nor_lowers_others(world: tuple[int, Rows, Rows, str]) -> None:
    tasks, before, after, system = world
    was = {(name, row.system): row for name, _, row in every(board(before, tasks))}
    for name, sign, row in every(board(after, tasks)):
        old = was[name, row.system]
        if row.system == system:
            assert good(row, sign) <= good(old, sign) + 1e-12
            assert row.rank is None or (old.rank is not None and row.rank >= old.rank)
        else:
            assert good(row, sign) == pytest.approx(good(old, sign), abs=1e-12)
            assert old.rank is None or (row.rank is not None and row.rank <= old.rank)


@settings(max_examples=40)
@given(worlds())
def test_ranks_follow_the_number_shown_within_their_bounds(world: tuple[int, Rows, Rows, str]) -> None:
    tasks, _, after, _ = world
    found = board(after, tasks)
    for metric in found.metrics:
        sign = -1.0 if metric.lower_is_better else 1.0
        ranked = [row for row in metric.standings if row.rank is not None]
        assert ranked == list(metric.standings)[: len(ranked)]
        assert all(row.coverage >= 0.95 - 1e-9 for row in ranked)
        numbers = [good(row, sign) for row in ranked]
        assert numbers == sorted(numbers, reverse=True)
        for row in ranked:
            assert row.rank_low <= row.rank <= row.rank_high
            assert row.bound_low is None or row.bound_low <= row.value + 1e-12
            assert row.bound_high is None or row.bound_high >= row.value - 1e-12


@settings(max_examples=40)
@given(worlds(), st.data())
def test_bounds_hold_what_full_answers_give(world: tuple[int, Rows, Rows, str], data: st.DataObject) -> None:
    tasks, before, _, system = world
    full = {key: row for key, row in before.items() if all(one["value"] is not None for one in row.values())}
    after = {key: data.draw(failures(row)) if key[0] == system else row for key, row in full.items()}
    if not after:
        return
    was = {(name, row.system): row for name, _, row in every(board(full, tasks))}
    for name, _, row in every(board(after, tasks)):
        value = was[name, row.system].value
        if value is not None:
            assert row.bound_low is None or row.bound_low <= value + 1e-9
            assert row.bound_high is None or row.bound_high >= value - 1e-9


def test_system_below_coverage_is_listed_underneath_unranked() -> None:
    found = simple({"able": [1.0] * 18, "baker": [0.5] * 20, "charlie": [0.4] * 19 + [None]})
    assert ranks(found) == {"baker": 1.0, "charlie": 2.0, "able": None}
    (metric,) = found.metrics
    able, charlie = metric.standings[2], metric.standings[1]
    assert (able.value, able.bound_low, able.bound_high) == (0.9, 0.9, 1.0)
    assert (able.n_total, able.n_scored, able.unscored) == (20, 18, {"not_submitted": 2})
    assert (charlie.value, charlie.bound_high) == (pytest.approx(0.38), pytest.approx(0.43))
    assert (charlie.rank_low, charlie.rank_high) == (2.0, 3.0)  # able could still come between


def test_unscored_others_make_no_minimum_the_first() -> None:
    """Reports without citations are scored 0 without a page; empty ones take the minimum without a judge."""
    found = simple({"able": [0.0] * 20, "baker": [None] * 20, "charlie": [1.0] + [None] * 19})
    assert ranks(found) == {"able": 2.5, "charlie": None, "baker": None}


def test_no_ranking_says_why() -> None:
    found = simple({"able": [1.0] * 10, "baker": [0.5] * 3})
    assert set(ranks(found).values()) == {None}
    assert found.metrics[0].no_ranking == "every system has less than 95% scored"
    assert "made score: no ranking: every system has less than 95% scored" in found.notes
    nothing = simple({"able": [None] * 20})
    assert nothing.metrics[0].no_ranking == "nothing was scored"


def test_tasks_without_gold_are_selected_for_nobody() -> None:
    rows: Rows = {(system, str(task), 0): {"score": scored(0.5)} for system in SYSTEMS for task in range(3)}
    rows["able", "2", 0] = {"score": unscored(0.0, 1.0, "gold_missing")}
    rows["baker", "2", 0] = {"score": scored(0.0)}  # an empty report takes the minimum all the same
    del rows["charlie", "2", 0]
    (metric,) = board(rows, 3).metrics
    assert {row.value for row in metric.standings} == {0.5} and {row.n_total for row in metric.standings} == {
        2
    }
    assert (metric.n_tasks, metric.n_without_gold) == (2, 1)


def test_missing_report_counts_as_the_worst_of_its_task() -> None:
    """Penalties make a task's worst lower than the protocol's."""
    rows: Rows = {(system, str(task), 0): {"score": scored(-0.5)} for system in SYSTEMS for task in range(2)}
    del rows["able", "1", 0]
    penalised = TaskRecord("en", "", worst={"made": {"score": -1.0}})
    made = msgspec.structs.replace(record(2), tasks={"0": penalised, "1": penalised})
    table = board(rows, 2)
    assert {row.system: row.value for _, _, row in every(table)}["able"] == -0.25
    flat = pa.Table.from_pylist(
        [
            {"protocol": "made", "system": key[0], "task_id": key[1], "sample": 0, "repeat": 0, "metric": "score",
             "status": "scored", **row["score"]}
            for key, row in rows.items()
        ],
        schema=pa.schema(list(SCORE_TYPES.items())),
    )  # fmt: skip
    found = leaderboard_of([made], flat, Few())
    assert {row.system: row.value for _, _, row in every(found)} == {
        "able": -0.75,
        "baker": -0.5,
        "charlie": -0.5,
    }


def test_missing_sample_counts_as_the_worst() -> None:
    rows: Rows = {
        ("able", str(task), sample): {"score": scored(0.8)} for task in range(2) for sample in range(2)
    }
    del rows["able", "1", 1]
    (metric,) = board(rows, 2).metrics
    able = metric.standings[0]
    assert (able.system, able.n_total, able.n_scored) == ("able", 4, 3)
    assert (able.value, able.coverage) == (pytest.approx(0.6), 0.75)
