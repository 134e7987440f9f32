"""The best of several samples, against every choice of them, how samples scatter, and both on the leaderboard."""

from itertools import combinations
from pathlib import Path
from statistics import stdev

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.runs.scores import MetricRows, metric_rows
from adjudge.engine.statistics.analysis import samples_of
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.store.scorecards import with_bounds
from adjudge.engine.tables.sections import detail_tables
from adjudge.scoring.contract.scorecard import Metric
from tests.made_runs import made_run

Row = tuple[str, str, int, int, float | None]
SCORE, LOWER = Metric(name="m"), Metric(name="m", lower_is_better=True)


def table(*rows: Row) -> MetricRows:
    system, task, sample, repeat, value = zip(*rows, strict=True)
    made = pa.table(
        {
            "protocol": ["p"] * len(rows),
            "system": system,
            "task_id": task,
            "sample": sample,
            "repeat": repeat,
            "metric": ["m"] * len(rows),
            "value": pa.array(value, pa.float64()),
            "status": ["scored"] * len(rows),
            "reason": pa.nulls(len(rows), pa.string()),
        }
    )
    (found,) = metric_rows(with_bounds(made))
    return found


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=9), st.booleans())
def test_best_of_samples_against_all_choices(values: list[float], lower: bool) -> None:
    rows = table(*(("a", "t", 7 * place, 0, value) for place, value in enumerate(values)))
    found = samples_of(rows, LOWER if lower else SCORE, {})
    best = min if lower else max
    assert [one.k for one in found.best_of] == list(range(1, len(values) + 1))
    for one in found.best_of:
        every = [best(choice) for choice in combinations(values, one.k)]
        assert one.value == pytest.approx(sum(every) / len(every))
        assert one.first == best(values[: one.k])
        assert (one.n_scored, one.n_tasks) == (1, 1)
    (scatter,) = found.scatter
    assert (scatter.samples, scatter.repeats) == (pytest.approx(stdev(values)), None)


def test_every_k_is_over_the_same_tasks() -> None:
    rows = [("a", "t", sample, 0, float(sample == 0)) for sample in range(4)]
    rows += [("a", "u", sample, 0, float(sample < 2)) for sample in range(4)] + [("a", "v", 0, 0, 1.0)]
    found = {one.k: one for one in samples_of(table(*rows), SCORE, {}).best_of}
    assert {one.n_scored for one in found.values()} == {2}
    assert (found[1].value, found[4].value) == (0.375, 1.0)
    declared = samples_of(table(*rows), SCORE, {"a": 2}).best_of
    assert [(one.k, one.n_scored) for one in declared] == [(1, 2), (2, 2)]


def test_repeats_are_averaged_and_small_tasks_counted() -> None:
    a, b = [], []
    for row in samples_of(
        table(
            ("a", "t", 0, 0, 0.0),
            ("a", "t", 0, 1, 1.0),
            ("a", "t", 3, 0, 0.25),
            ("a", "u", 0, 0, 1.0),
            ("b", "t", 0, 0, 0.125),
        ),
        SCORE,
        {},
    ).best_of:
        (a if row.system == "a" else b).append(row)
    assert [(one.k, one.value, one.n_scored, one.n_tasks) for one in a] == [(1, 0.375, 1, 2), (2, 0.5, 1, 2)]
    assert b == []


def test_one_sample_each_gives_no_result() -> None:
    found = samples_of(table(("a", "t", 0, 0, 0.5), ("b", "t", 4, 0, 0.5)), SCORE, {})
    assert (found.best_of, found.scatter) == ((), ())


def test_samples_and_repeats_scatter_apart() -> None:
    """Two samples, 0.2 and 0.6, whose repeats are 0.1 to either side."""
    rows = [("a", "t", n, r, x + d) for n, x in enumerate((0.2, 0.6)) for r, d in enumerate((-0.1, 0.1))]
    (scatter,) = samples_of(table(*rows), SCORE, {}).scatter
    assert scatter.samples == pytest.approx(stdev((0.2, 0.6)))
    assert scatter.repeats == pytest.approx(stdev((-0.1, 0.1)))


def test_totals_deviate_from_run_to_run(tmp_path: Path) -> None:
    """Over samples where there are several, else over repeats, on the tasks that have all; in groups too."""
    run = made_run(tmp_path / "run", ("able", "baker"), 10, missing=0)
    rows = pq.read_table(run / "scores.parquet")

    def another(column: str, shift: float) -> pa.Table:
        place, old = rows.column_names.index(column), rows[column]
        moved = rows.set_column(place, column, pa.array([1] * rows.num_rows, old.type))
        for name in ("value", "low", "high"):
            if name in moved.column_names:
                at = moved.column_names.index(name)
                moved = moved.set_column(at, name, pc.add(moved[name], shift))
        return moved

    for column in ("sample", "repeat"):
        pq.write_table(pa.concat_tables([rows, another(column, -0.25)]), run / "scores.parquet")
        (race,) = [one for one in build_leaderboard([run]).metrics if one.metric == "overall"]
        found = {row.system: row.deviation for row in race.standings}
        assert found == pytest.approx(dict.fromkeys(("able", "baker"), stdev((0.0, 0.25))))
    cut = another("sample", -0.25).slice(0, rows.num_rows // 2)
    pq.write_table(pa.concat_tables([rows, cut]), run / "scores.parquet")
    (race,) = [one for one in build_leaderboard([run]).metrics if one.metric == "overall"]
    told = [row.deviation for row in race.standings if row.deviation is not None]
    assert told == pytest.approx([stdev((0.0, 0.25))] * len(told)) and told
    pq.write_table(rows, run / "scores.parquet")
    (race,) = [one for one in build_leaderboard([run]).metrics if one.metric == "overall"]
    assert {row.deviation for row in race.standings} == {None}


def test_leaderboard_shows_best_of_samples(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", ("able", "baker"), 10, missing=0)
    (race,) = [one for one in build_leaderboard([run]).metrics if one.metric == "overall"]
    assert race.detail is not None and race.detail.best_of == ()
    rows = pq.read_table(run / "scores.parquet")
    place = rows.column_names.index("sample")
    again = rows.set_column(place, "sample", pa.array([1] * rows.num_rows, rows["sample"].type))
    best = pa.array([1.0] * rows.num_rows, pa.float64())
    better = again.set_column(rows.column_names.index("value"), "value", best)
    pq.write_table(pa.concat_tables([rows, better]), run / "scores.parquet")
    board = build_leaderboard([run])
    (race,) = [one for one in board.metrics if one.metric == "overall"]
    assert race.detail is not None
    assert {(one.system, one.k, one.value) for one in race.detail.best_of if one.k > 1} == {
        ("able", 2, 1.0),
        ("baker", 2, 1.0),
    }
    (shown,) = [one for one in detail_tables(race, board) if one.kind == "samples"]
    assert [one.name for one in shown.columns][:4] == ["system", "tasks", "pass@1", "pass@2"]
    assert [row[3].text for row in shown.rows] == ["100.00 (100.00)", "100.00 (100.00)"]
    by = {one.columns[0].name: one for one in detail_tables(race, board) if one.kind == "samples by"}
    assert [(row[0].text, row[2].text, row[4].text) for row in by["language"].rows] == [
        (name, "5 of 5", "100.00 (100.00)") for name in ("en", "en", "zh", "zh")
    ]


def test_groups_have_the_samples_of_their_own_tasks(tmp_path: Path) -> None:
    """Only tasks with two samples count, in their group alone; a group without any shows none."""
    run = made_run(tmp_path / "run", ("able", "baker"), 10, missing=0)
    rows = pq.read_table(run / "scores.parquet")
    place = rows.column_names.index("sample")
    again = rows.set_column(place, "sample", pa.array([1] * rows.num_rows, rows["sample"].type))
    some = again.filter(pc.is_in(again["task_id"].cast(pa.string()), pa.array(["0", "2"])))  # both in English
    pq.write_table(pa.concat_tables([rows, some]), run / "scores.parquet")
    (language,) = [one for one in build_leaderboard([run]).groupings if one.attribute == "language"]
    found = {
        group.name: [
            (one.k, one.n_scored, one.n_tasks)
            for board in group.metrics
            if board.metric == "overall" and board.detail is not None
            for one in board.detail.best_of
            if one.system == "able"
        ]
        for group in language.groups
    }
    assert found == {"en": [(1, 2, 5), (2, 2, 5)], "zh": []}
