"""The viewer's tables and what is drawn in them: order, filters, pages, ends of bars, counts of verdicts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.viewer.data.index import Verdicts
from adjudge.engine.viewer.data.query import ListQuery
from adjudge.engine.viewer.pages.frame import Column, Ends, Listing, Scatter, differences, natural, writer
from adjudge.scoring.contract.scorecard import MISSING, Evidence, Metric, Outcome, count_kinds

COLUMNS = [Column("task", "id"), Column("value", "value", number=True)]
ROWS = [{"id": str(number), "value": None if number == 3 else number % 5} for number in range(1, 13)]
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def listing(at_once: int = 100, **query: object) -> Listing:
    return Listing.of(
        COLUMNS,
        ROWS,
        "tasks",
        ListQuery(**query),
        at_once=at_once,
        noun="task",
        words=lambda row: f"task {row['id']}",
    )


def ids(found: Listing) -> list[str]:
    return [row["id"] for row in found.rows if not row["hidden"]]


def test_names_with_numbers_are_in_natural_order() -> None:
    names = ["10", "2", "a10", "a9", "B1", "b", "1", "第10题", "第9题", ""]
    assert sorted(names, key=natural) == ["", "1", "2", "10", "a9", "a10", "b", "B1", "第9题", "第10题"]


@given(st.lists(st.text()))
def test_any_names_can_be_put_in_order(names: list[str]) -> None:
    assert sorted(sorted(names, key=natural)) == sorted(names)


def test_first_click_sorts_the_best_first() -> None:
    task, value = listing().heads
    assert (task.to, value.to) == ("tasks?sort=id", "tasks?sort=-value")
    _, value = listing(sort="-value").heads
    assert (value.to, value.state) == ("tasks?sort=value", "descending")


def test_rows_without_a_value_come_last_either_way() -> None:
    for sort in ("value", "-value"):
        found = listing(sort=sort)
        values = [row["value"] for row in found.rows]
        assert values[-1] is None
        assert values[:-1] == sorted(values[:-1], reverse=sort == "-value")
    assert ids(listing(sort="-id")) == [str(number) for number in range(12, 0, -1)]
    assert ids(listing(sort="__class__")) == [row["id"] for row in ROWS]


def test_filter_hides_rows_where_all_fit_on_a_page() -> None:
    found = listing(filter="TASK 1")
    assert ids(found) == ["1", "10", "11", "12"] and len(found.rows) == 12 and found.whole
    assert found.said == "4 of 12 tasks" and found.clear == "tasks"
    assert listing(filter="zebra").found == 0


def test_many_rows_are_cut_into_pages_after_the_filter() -> None:
    found = listing(at_once=3, filter="task 1", page=2)
    assert ids(found) == ["12"] and not found.whole and found.said == "4 to 4 of 4 tasks"
    assert found.steps == (("First", "tasks?filter=task+1", ""), ("Previous", "tasks?filter=task+1", "prev"))
    beyond = listing(at_once=3, page=9)
    assert ids(beyond) == [] and beyond.said == "none of 12 tasks"


def test_counts_are_written_whole_and_others_with_decimals() -> None:
    counts = Metric(name="e_cit", best=None)
    assert writer(counts, [1.0, None, 12_345.0])(12_345.0) == "12,345"
    assert writer(counts, [1.5])(1.0) == "1.00"
    assert writer(Metric(name="c_acc", scale=100.0), [1.0])(0.4133) == "41.33"
    assert writer(counts, [])(None) == "-"


def test_verdicts_are_counted_by_kind() -> None:
    outcomes = [Outcome("supported"), Outcome("unsupported"), Outcome("supported"), Outcome("note")]
    evidence = [*(Evidence(what="x", outcome=one) for one in outcomes),
                Evidence(what="y", outcome=MISSING, reason="judge_timeout")]  # fmt: skip
    found = Verdicts.of(count_kinds(evidence))
    assert found.by_kind == {"supported": 2, "unsupported": 1, "missing": 1}
    assert (found.figure, found.total) == ("2 of 4", 4)
    assert found.said == "2 supported, 1 unsupported, 1 missing"
    assert found.parts == [("supported", 0.0, 50.0), ("unsupported", 50.0, 25.0), ("missing", 75.0, 25.0)]
    assert Verdicts.kinds([found, None]) == [
        ("supported", "supported"),
        ("unsupported", "unsupported"),
        ("missing", "missing"),
    ]
    assert Verdicts.kinds([Verdicts.of({"missing": 3})]) == [] and Verdicts.kinds([]) == []


@given(st.lists(NUMBERS.filter(lambda value: value == 0 or 1e-99 < abs(value) < 1e99), min_size=1))
def test_round_ends_hold_every_value(values: list[float]) -> None:
    ends, ticks = Ends.around(values)
    assert ticks[0] == ends.low < ends.high == ticks[-1] and len(ticks) <= 9
    assert all(0 <= ends.at(value) <= 100 for value in [*values, *ticks])
    slack = 1e-9 * (max(values) - min(values))
    assert ends.low <= min(values) + slack and max(values) - slack <= ends.high


def test_round_ends_are_those_that_people_would_draw() -> None:
    assert Ends.around([0.42, 0.61])[1] == pytest.approx([0.4, 0.5, 0.6, 0.7])
    assert Ends.around([0.0, 100.0])[1] == [0.0, 100.0]


@given(st.lists(st.none() | NUMBERS))
def test_bars_of_differences_start_in_the_middle(values: list[float | None]) -> None:
    for value, bar in zip(values, differences(values), strict=True):
        assert (bar is None) == (value is None)
        if value is not None and bar is not None:
            assert bar.start == 50 if value >= 0 else math.isclose(bar.start + bar.width, 50)
            assert 0 <= bar.width <= 50


def test_points_of_two_runs_leave_out_the_smallest() -> None:
    rows = [
        {"value": 0.5, "other": 0.25, "difference": 0.25, "to": "a", "system": "s", "task_id": "1",
         "value_text": "50.00", "other_text": "25.00"},
        {"value": None, "other": 0.25, "difference": None, "to": "b", "system": "s", "task_id": "2",
         "value_text": "gold_missing", "other_text": "25.00"},
    ]  # fmt: skip
    found = Scatter.of(rows, Metric(name="c_acc", scale=100.0))
    assert [(to, words) for _, _, to, words in found.points] == [("a", "s, 1: 50.00 here, 25.00 there")]
    assert found.left_out == 0 and len(Scatter.of([rows[0]] * 2_001, Metric(name="x")).points) == 2_000
    assert Scatter.of([], Metric(name="x")).points == ()
