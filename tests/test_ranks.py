"""Ranks that nobody can steer by failing: the number shown ranks, over all selected tasks."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.runs.board import Leaderboard, Standing
from adjudge.engine.runs.record import TaskRecord
from adjudge.engine.statistics.build import leaderboard_of
from adjudge.engine.tables.standings import Ranking, standings
from adjudge.scoring.contract.scorecard import Metric
from tests.nightly import quick_or_whole
from tests.ranked import (
    METRICS,
    SYSTEMS,
    Few,
    Rows,
    board,
    failures,
    flat,
    record,
    reports,
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


@settings(max_examples=quick_or_whole(20, 60))
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


@settings(max_examples=quick_or_whole(15, 40))
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


@settings(max_examples=quick_or_whole(15, 40))
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


@settings(max_examples=quick_or_whole(15, 40))
@given(worlds(), st.integers(1, 3))
def test_sending_every_report_again_changes_no_number(world: tuple[int, Rows, Rows, str], times: int) -> None:
    """The same reports as further samples are no more of anything: not of the number, its bounds, or coverage."""
    tasks, _, after, system = world
    again = {
        (name, task, sample + 10 * time): row
        for (name, task, sample), row in after.items()
        if name == system
        for time in range(times + 1)
    }
    was = {(name, row.system): row for name, _, row in every(board(after, tasks))}
    for name, _, row in every(board({**after, **again}, tasks)):
        old = was[name, row.system]
        for one in ("value", "bound_low", "bound_high", "as_published", "coverage", "rank"):
            assert getattr(row, one) == pytest.approx(getattr(old, one), abs=1e-12), (name, one)


@settings(max_examples=quick_or_whole(15, 40))
@given(worlds(), st.sampled_from(["aaron", "zulu", "Baker ", "baker2"]))
def test_another_name_changes_no_number(world: tuple[int, Rows, Rows, str], new: str) -> None:
    tasks, _, after, system = world
    named = {name: new if name == system else name for name in SYSTEMS}
    made = msgspec.structs.replace(record(tasks), systems=[*named.values()])
    rows = {(named[name], task, sample): row for (name, task, sample), row in after.items()}
    was = {(name, row.system): row for name, _, row in every(board(after, tasks))}
    found = {(name, row.system): row for name, _, row in every(leaderboard_of([made], flat(rows), Few()))}
    for (name, old), row in was.items():
        same = found[name, named[old]]
        for one in ("value", "bound_low", "bound_high", "as_published", "coverage", "rank", "tier"):
            assert getattr(same, one) == pytest.approx(getattr(row, one), abs=1e-9), (name, one)


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
    assert ranks(found) == {"able": 2, "charlie": None, "baker": None}


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
    found = leaderboard_of([made], flat(rows), Few())
    assert {row.system: row.value for _, _, row in every(found)} == {
        "able": -0.75,
        "baker": -0.5,
        "charlie": -0.5,
    }


def test_a_task_is_due_once_whatever_the_samples_of_others() -> None:
    rows: Rows = {("able", "0", sample): {"score": scored(float(sample == 0))} for sample in range(4)}
    rows |= {("able", "1", sample): {"score": scored(1.0)} for sample in range(2)}
    (metric,) = board(rows, 2).metrics
    able = metric.standings[0]
    assert (able.system, able.n_total, able.n_scored) == ("able", 6, 6)
    assert (able.value, able.coverage) == (pytest.approx((0.25 + 1.0) / 2), 1.0)


def test_samples_that_are_declared_are_due() -> None:
    rows: Rows = {
        ("able", str(task), sample): {"score": scored(0.8)} for task in range(2) for sample in range(2)
    }
    del rows["able", "1", 1]
    config = msgspec.structs.replace(record(2).config, samples=2)
    made = msgspec.structs.replace(record(2), config=config)
    (metric,) = leaderboard_of([made], flat(rows), Few()).metrics
    able = metric.standings[0]
    assert (able.n_total, able.n_scored, able.unscored) == (4, 3, {"not_submitted": 1})
    assert (able.value, able.coverage, able.flagged) == (pytest.approx(0.8), 0.75, True)


def test_low_number_ranks_and_the_published_one_stands_beside() -> None:
    """A report that hides most of its parts: what is left of them is all right."""
    hiding = {**scored(1.0), "low": 0.2, "high": 1.0, "answered": 10, "parts": 10}
    rows: Rows = {("able", str(task), 0): {"score": hiding} for task in range(20)}
    rows |= {("baker", str(task), 0): {"score": scored(0.8)} for task in range(20)}
    found = board(rows, 20)
    (metric,) = found.metrics
    baker, able, charlie = metric.standings
    assert (able.system, able.value, able.as_published, able.rank) == ("able", pytest.approx(0.2), 1.0, 2)
    assert (baker.value, baker.as_published, baker.rank) == (pytest.approx(0.8), pytest.approx(0.8), 1)
    assert charlie.rank is None
    head = standings(Ranking.alone(metric))
    column = [one.name for one in head.columns].index("as published")
    assert [row[column].text for row in head.rows][:2] == ["0.80", "1.00"]


@pytest.mark.parametrize(("answered", "ranked"), [(96, True), (95, True), (94, False)])
def test_parts_that_are_missing_count_in_coverage(answered: int, ranked: bool) -> None:
    partly = {**scored(0.9), "low": 0.85, "high": 0.95, "answered": answered, "parts": 100}
    rows: Rows = {("able", str(task), 0): {"score": partly} for task in range(4)}
    (metric,) = board(rows, 4).metrics
    able = metric.standings[0]
    assert able.coverage == pytest.approx(answered / 100)
    assert (able.rank is not None, able.bound_high) == (ranked, pytest.approx(0.95))


def test_counts_and_resources_are_means_over_what_is_known() -> None:
    kinds = (Metric(name="score", headline=True), Metric(name="words", best=None, kind="resource"))
    rows: Rows = {
        ("able", str(task), 0): {"score": scored(1.0), **({"words": scored(3.0)} if task else {})}
        for task in range(3)
    }
    made = msgspec.structs.replace(record(3), metrics={"made": kinds})
    found = {one.metric: one for one in leaderboard_of([made], flat(rows), Few()).metrics}
    able = found["words"].standings[0]
    assert (able.system, able.value, able.n_scored, able.n_total) == ("able", 3.0, 2, 3)
    assert not able.flagged and not able.open


def test_a_metric_is_due_on_the_tasks_that_have_its_gold() -> None:
    kinds = (Metric(name="plan", headline=True, table="a", gold="plan"),
             Metric(name="works", headline=True, table="b", gold="references"))  # fmt: skip
    rows: Rows = {
        (system, str(task), 0): {
            "plan": scored(1.0),
            "works": scored(0.5) if task < 2 else unscored(0.0, 1.0, "gold_missing"),
        }
        for system in SYSTEMS
        for task in range(3)
    }
    lacks = TaskRecord("en", "", undue={"made": ("works",)})
    tasks = {"0": TaskRecord("en", ""), "1": TaskRecord("en", ""), "2": lacks, "3": lacks}
    made = msgspec.structs.replace(record(0), metrics={"made": kinds}, tasks=tasks)
    found = {one.metric: one for one in leaderboard_of([made], flat(rows), Few()).metrics}
    assert {name: (one.n_tasks, one.n_without_gold) for name, one in found.items()} == {
        "plan": (4, 0),
        "works": (2, 2),
    }
    assert found["plan"].standings[0].value == 0.75 and found["works"].standings[0].value == 0.5
    none = {key: {**row, "works": unscored(0.0, 1.0, "gold_missing")} for key, row in rows.items()}
    board_ = leaderboard_of([made], flat(none), Few())
    assert [one.metric for one in board_.metrics] == ["plan"]
    assert "made b: left out: no task has the gold for it (references)" in board_.notes


def test_equals_share_the_best_rank_and_show_it() -> None:
    found = simple({"able": [1.0] * 20, "baker": [1.0] * 20, "charlie": [0.0] * 20})
    rows = found.metrics[0].standings
    assert [(row.rank, row.midrank, row.place) for row in rows] == [
        (1, 1.5, "1="),
        (1, 1.5, "1="),
        (3, 3, "3"),
    ]


def test_two_tasks_claim_nothing_anywhere() -> None:
    found = simple({"able": [1.0] * 2, "baker": [0.5] * 2, "charlie": [0.0, 0.01]}, tasks=2)
    (metric,) = found.metrics
    assert {row.tier for row in metric.standings} == {1}
    assert {(row.rank_low, row.rank_high) for row in metric.standings} == {(1, 3)}
    assert metric.detail is not None
    assert all(pair.p == 0.5 and pair.low is None for pair in metric.detail.pairs)
    assert metric.standings[0].low is None  # equal scores say nothing of their spread


@settings(max_examples=quick_or_whole(15, 40))
@given(worlds(), st.data())
def test_adding_a_system_changes_nobody_elses_figures(
    world: tuple[int, Rows, Rows, str], data: st.DataObject
) -> None:
    tasks, _, after, _ = world
    added: Rows = {
        ("delta", str(task), sample): data.draw(reports())
        for task in range(tasks)
        for sample in range(data.draw(st.integers(0, 3)))
    }
    changing = {"rank", "midrank", "rank_low", "rank_high", "tier"}
    figures = [name for name in Standing.__struct_fields__ if name not in changing]
    was = {(name, row.system): row for name, _, row in every(board(after, tasks))}
    for name, _, row in every(board({**added, **after}, tasks)):
        if row.system != "delta":
            old = was[name, row.system]
            for one in figures:
                # Resamples are sums on a grid that is fine enough for all systems: only its rounding may differ.
                same = getattr(old, one)
                assert getattr(row, one) == (
                    pytest.approx(same, abs=1e-9) if isinstance(same, float) else same
                )
