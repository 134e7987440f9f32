"""The best of several samples, against every choice of them, and on the leaderboard."""

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.statistics.analysis import best_of_samples
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.tables.sections import detail_tables
from tests.made_runs import made_run

Row = tuple[str, str, int, float | None]


def table(*rows: Row) -> pa.Table:
    system, task, sample, value = zip(*rows, strict=True)
    return pa.table(
        {
            "protocol": ["p"] * len(rows),
            "metric": ["m"] * len(rows),
            "system": system,
            "task_id": task,
            "sample": sample,
            "value": pa.array(value, pa.float64()),
        }
    )


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=9), st.booleans())
def test_best_of_samples_against_all_choices(values: list[float], lower: bool) -> None:
    found = best_of_samples(
        table(*(("a", "t", 7 * place, value) for place, value in enumerate(values))), "p", "m", lower
    )
    assert [one.k for one in found] == sorted({k for k in (2, 4, 8) if k <= len(values)} | {len(values)})
    for one in found:
        best = [(min if lower else max)(choice) for choice in combinations(values, one.k)]
        assert one.value == pytest.approx(sum(best) / len(best))
        assert (one.n_scored, one.n_tasks) == (1, 1)


def test_repeats_are_averaged_and_small_tasks_counted() -> None:
    rows: list[Row] = [
        ("a", "t", 0, 0.0),
        ("a", "t", 0, 1.0),
        ("a", "t", 3, 0.25),
        ("a", "u", 0, 1.0),
        ("a", "u", 1, None),
        ("b", "t", 0, 0.125),
    ]
    a, b = best_of_samples(table(*rows), "p", "m")
    assert (a.system, a.k, a.value, a.n_scored, a.n_tasks) == ("a", 2, 0.5, 1, 2)
    assert (b.system, b.value, b.n_scored, b.n_tasks) == ("b", None, 0, 1)


def test_one_sample_each_gives_no_result() -> None:
    assert best_of_samples(table(("a", "t", 0, 0.5), ("b", "t", 4, 0.5)), "p", "m") == ()
    assert best_of_samples(table(("a", "t", 0, 0.5), ("a", "t", 1, 0.5)), "p", "other") == ()


def test_leaderboard_shows_best_of_samples(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", ("able", "baker"), 10, missing=0)
    (race,) = [one for one in build_leaderboard([run]).metrics if one.metric == "overall"]
    assert race.detail is not None and race.detail.best_of == ()
    rows = pq.read_table(run / "scores.parquet")
    place = rows.column_names.index("sample")
    again = rows.set_column(place, "sample", pa.array([1] * rows.num_rows, rows["sample"].type))
    better = again.set_column(
        rows.column_names.index("value"), "value", pa.array([1.0] * rows.num_rows, pa.float64())
    )
    pq.write_table(pa.concat_tables([rows, better]), run / "scores.parquet")
    board = build_leaderboard([run])
    (race,) = [one for one in board.metrics if one.metric == "overall"]
    assert race.detail is not None
    assert {(one.system, one.k, one.value) for one in race.detail.best_of} == {
        ("able", 2, 1.0),
        ("baker", 2, 1.0),
    }
    (shown,) = [one for one in detail_tables(race, board) if one.kind == "samples"]
    assert [row[2].text for row in shown.rows] == ["100.00", "100.00"]
