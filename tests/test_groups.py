"""A leaderboard by an attribute of tasks: every group's board, the mean over groups, and where they are shown."""

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from rich.console import Console

from adjudge.engine.runs.board import Grouping, Leaderboard, MetricBoard, Standing
from adjudge.engine.runs.record import RunRecord, TaskRecord
from adjudge.engine.statistics.build import build_leaderboard, leaderboard_of
from adjudge.engine.store.scorecards import SCORE_TYPES
from adjudge.engine.tables.standings import by_group, rankings
from adjudge.engine.tables.terminal import on_terminal
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.drmi_bench.drmi import DrMi
from adjudge.scoring.kernels.resampling.bootstrap import bootstrap, bootstrap_part, mean_of, merge
from adjudge.scoring.livedrbench.livedr import LiveDR
from tests.boards import folded, tables
from tests.commands import one_line, run
from tests.made_record import made_record
from tests.made_runs import made_run
from tests.nightly import quick_or_whole
from tests.ranked import METRICS, SYSTEMS, Few, Rows, board, flat, record, worlds
from tests.shared_data import GOLDEN

Value = dict[str, float]


def written(
    folder: Path, protocol: str, metrics: tuple[Metric, ...], tasks: dict[str, dict[str, str]], values: Any
) -> Path:
    """A run folder: `values` are (system, task, metric, value), `tasks` the attributes of each."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "protocol": protocol,
            "system": system,
            "task_id": task,
            "sample": 0,
            "repeat": 0,
            "metric": metric,
            "value": value,
            "low": value,
            "high": value,
            "answered": 1,
            "parts": 1,
            "status": "scored",
            "reason": None,
        }
        for system, task, metric, value in values
    ]
    pq.write_table(
        pa.Table.from_pylist(rows, pa.schema(list(SCORE_TYPES.items()))), folder / "scores.parquet"
    )
    made_record(
        {protocol: metrics},
        {name: TaskRecord("en", "", attributes=attributes) for name, attributes in tasks.items()},
        sorted({row["system"] for row in rows}),
    ).write(folder)
    return folder


def grouping(found: Leaderboard, attribute: str) -> Grouping:
    (one,) = [one for one in found.groupings if one.attribute == attribute]
    return one


def named(boards: tuple[MetricBoard, ...], metric: str) -> MetricBoard:
    (one,) = [one for one in boards if one.metric == metric]
    return one


def row_of(board: MetricBoard, system: str) -> Standing:
    return next(row for row in board.standings if row.system == system)


# The numbers


def test_groups_against_the_table_of_livedrbench(tmp_path: Path) -> None:
    """P, R and F1 of each category, the mean over the categories and the one over the questions, as published."""
    table = json.loads((GOLDEN / "livedrbench/paper_table2_openai_dr.json").read_text())
    names = ("precision", "recall", "f1")
    tasks = {
        f"{category} {at}": {"category": category}
        for category, count in table["n_questions"].items()
        for at in range(count)
    }
    values = [
        ("openai", task, metric, table["prec_rec_f1"][of["category"]][place])
        for task, of in tasks.items()
        for place, metric in enumerate(names)
    ]
    folder = written(tmp_path, "livedr", LiveDR().metrics, tasks, values)
    found = build_leaderboard([folder], by="category")
    groups = grouping(found, "category")
    for place, metric in enumerate(names):
        for group in groups.groups:
            board = named(group.metrics, metric)
            assert board.n_tasks == table["n_questions"][group.name]
            assert row_of(board, "openai").value == pytest.approx(table["prec_rec_f1"][group.name][place])
        over_groups = row_of(named(groups.mean, metric), "openai").value
        over_tasks = row_of(named(found.metrics, metric), "openai").value
        assert over_groups == pytest.approx(table["published_average"][place], abs=6e-4)
        assert over_tasks == pytest.approx(table["published_weighted_average"][place], abs=6e-4)


def parted(tasks: int, rows: Rows, chosen: tuple[str, ...] | None = None) -> Leaderboard:
    """The board of `rows` with every third task in another group; of the `chosen` tasks alone, if any are named."""
    kept = {key: row for key, row in rows.items() if chosen is None or key[1] in chosen}
    attributes = {
        str(task): TaskRecord("en", "", attributes={"kind": "abc"[task % 3]})
        for task in range(tasks)
        if chosen is None or str(task) in chosen
    }
    made = record(tasks)
    made = RunRecord(**{name: getattr(made, name) for name in made.__struct_fields__} | {"tasks": attributes})
    return leaderboard_of([made], flat(kept), Few(), by="kind")


@pytest.mark.nightly
@settings(max_examples=quick_or_whole(6, 40))
@given(worlds())
def test_group_is_the_board_of_its_tasks(world: tuple[int, Rows, Rows, str]) -> None:
    tasks, _, rows, _ = world
    # As many samples are due in a group as a system has for any task: those of the first sample alone.
    rows = {key: row for key, row in rows.items() if key[2] == 0}
    found = parted(tasks, rows)
    for group in grouping(found, "kind").groups:
        chosen = tuple(str(task) for task in range(tasks) if "abc"[task % 3] == group.name)
        if not any(key[1] in chosen for key in rows):
            continue
        alone = {one.metric: one for one in parted(tasks, rows, chosen).metrics}
        for metric in group.metrics:
            if metric.metric not in alone:
                continue
            others = {row.system: row for row in alone[metric.metric].standings}
            for row in metric.standings:
                other = others.get(row.system, row)
                figures = [
                    (one.value, one.bound_low, one.bound_high, one.rank, one.coverage) for one in (row, other)
                ]
                assert figures[0] == pytest.approx(figures[1])
                assert (row.unscored, row.flagged) == (other.unscored, other.flagged)


@pytest.mark.nightly
@settings(max_examples=quick_or_whole(6, 40))
@given(worlds())
def test_mean_over_groups_ranks_by_the_number_shown(world: tuple[int, Rows, Rows, str]) -> None:
    tasks, _, rows, _ = world
    found = parted(tasks, rows)
    groups = grouping(found, "kind")
    for metric in (*groups.mean, *(one for group in groups.groups for one in group.metrics)):
        sign = -1.0 if metric.lower_is_better else 1.0
        ranked = [row for row in metric.standings if row.rank is not None]
        assert ranked == list(metric.standings)[: len(ranked)]
        assert all(row.coverage >= 0.95 - 1e-9 for row in ranked)
        numbers = [sign * row.value for row in ranked]
        assert numbers == sorted(numbers, reverse=True)
        for row in ranked:
            assert row.rank_low <= row.rank <= row.rank_high
            assert row.bound_low is None or row.bound_low <= row.value + 1e-9
            assert row.bound_high is None or row.bound_high >= row.value - 1e-9
    for metric in groups.mean:
        parts = [named(group.metrics, metric.metric) for group in groups.groups]
        for row in metric.standings:
            values = [row_of(part, row.system).value for part in parts]
            if all(value is not None for value in values):
                assert row.value == pytest.approx(np.mean(values))
            pooled = next(one for one in METRICS if one.name == metric.metric).ratio is not None
            whole = row_of(named(found.metrics, metric.metric), row.system)
            if not pooled and row.value is not None:
                sizes = [part.n_tasks for part in parts]
                assert np.dot(sizes, values) / sum(sizes) == pytest.approx(whole.value)


def test_failing_in_a_group_never_raises_its_system_there() -> None:
    scored = {"value": 0.5, "low": 0.5, "high": 0.5, "answered": 1, "parts": 1, "reason": None}
    lost = {**scored, "value": None, "low": 0.0, "high": 1.0, "answered": 0, "reason": "judge_timeout"}
    rows: Rows = {
        (system, str(task), 0): {"score": lost if system == SYSTEMS[0] and task % 3 == 1 else scored}
        for system in SYSTEMS
        for task in range(12)
    }
    groups = grouping(parted(12, rows), "kind")
    one = named(groups.groups[1].metrics, "score")
    failed = row_of(one, SYSTEMS[0])
    assert (failed.value, failed.bound_high, failed.rank, failed.flagged) == (0.0, 1.0, None, True)
    assert failed.unscored == {"judge_timeout": 4}
    mean = row_of(named(groups.mean, "score"), SYSTEMS[0])
    assert (mean.value, mean.coverage, mean.rank) == (pytest.approx(1 / 3), pytest.approx(2 / 3), None)


def test_fewer_samples_in_a_group_are_no_missing_reports_there() -> None:
    scored = {"value": 1.0, "low": 1.0, "high": 1.0, "answered": 1, "parts": 1, "reason": None}
    rows: Rows = {("able", str(task), sample): {"score": scored} for task in range(6) for sample in range(2)}
    rows = {key: row for key, row in rows.items() if not (key[2] == 1 and int(key[1]) % 3 == 2)}
    for system in SYSTEMS[1:]:
        rows |= {(system, str(task), 0): {"score": scored} for task in range(6)}
    groups = grouping(parted(6, rows), "kind")
    values = [row_of(named(group.metrics, "score"), "able").value for group in groups.groups]
    assert values == [1.0, 1.0, 1.0]
    assert row_of(named(board(rows, 6).metrics, "score"), "able").value == 1.0


def test_interval_of_the_mean_against_a_stratified_bootstrap() -> None:
    rng = np.random.default_rng(3)
    groups = [rng.normal(place, 1.0, (2, size)) for place, size in ((0.0, 5), (10.0, 20), (20.0, 60))]
    parts = [
        bootstrap_part(values, first=0, count=10_000, seed=seed) for seed, values in enumerate(groups, 1)
    ]
    mine = merge([mean_of(parts, sum(part.means for part in parts))])
    weights = np.concatenate([np.full(values.shape[1], 1 / values.shape[1]) for values in groups])
    strata = np.concatenate([np.full(values.shape[1], place) for place, values in enumerate(groups)])
    theirs = bootstrap(
        np.hstack(groups) * weights, denominators=np.tile(weights, (2, 1)), strata=strata, seed=9
    )
    assert mine.estimate == pytest.approx(theirs.estimate)
    assert mine.percentile == pytest.approx(theirs.percentile, abs=0.02)
    assert mine.standard_error == pytest.approx(
        np.sqrt(sum(values.var(axis=1) / values.shape[1] for values in groups)) / 3, rel=0.05
    )


def test_group_of_one_task_leaves_the_mean_without_an_interval(tmp_path: Path) -> None:
    tasks = {"1": {"kind": "a"}, "2": {"kind": "b"}, "3": {"kind": "b"}}
    values = [("one", task, "score", float(task) / 10) for task in tasks]
    folder = written(tmp_path, "made", (Metric(name="score", headline=True),), tasks, values)
    groups = grouping(build_leaderboard([folder], by="kind"), "kind")
    (mean,) = groups.mean[0].standings
    assert (mean.value, mean.low, mean.high) == (pytest.approx(0.175), None, None)
    assert [group.metrics[0].standings[0].low is None for group in groups.groups] == [True, False]


# Where they are shown


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """A run of Dr.Mi-Bench: research papers and reviews of three sizes."""
    rng = np.random.default_rng(0)
    sizes = ("512k", "64k", "128k")
    tasks = {str(at): {"kind": ("research", "review")[at % 2], "size": sizes[at % 3]} for at in range(12)} | {
        "x": {}
    }
    values = [
        (system, task, metric.name, float(rng.uniform(0.2, 0.8)))
        for system in ("a-rather-long-name-of-a-system-2026-11-23", "short")
        for task in tasks
        for metric in DrMi().metrics
    ]
    return written(tmp_path / "run", "drmi", DrMi().metrics, tasks, values)


def test_by_prints_the_paper_columns_of_every_table(papers: Path, capsys: Any) -> None:
    code, out, _ = run(capsys, "leaderboard", papers, "--by", "kind")
    assert code == 0
    heads = [line.split("┃")[1:-1] for line in out.splitlines() if line.startswith("┃")]
    columns = [[cell.strip() for cell in head] for head in heads]
    assert [head[3:-2] for head in columns] == [
        ["plan_accuracy_tables", "plan_precision", "plan_recall", "plan_f1"],
        ["retrieval_accuracy", "retrieval_precision", "retrieval_recall", "retrieval_f1"],
        ["reasoning_accuracy", "reasoning_precision_macro", "reasoning_recall_macro", "reasoning_f1_macro"],
    ]
    assert all(head[0] == "kind" for head in columns)
    for group in ("research (6 tasks)", "review (6 tasks)", "none (1 task)", "mean over 3 groups"):
        assert out.count(f"│ {group} ") == 3
    assert "drmi planning by kind (judge: made-up; ranked by plan_f1" in out
    assert "drmi retrieval: more metrics on the page, or with adjudge leaderboard --metric NAME:" in out


def test_groups_are_ordered_by_the_numbers_in_their_names(papers: Path) -> None:
    found = grouping(build_leaderboard([papers]), "size")
    assert [group.name for group in found.groups] == ["64k", "128k", "512k", ""]
    assert {one.metric for one in found.mean} == {"plan_f1", "retrieval_accuracy", "reasoning_accuracy"}


def test_page_markdown_json_and_parquet_hold_all_groups(papers: Path, tmp_path: Path, capsys: Any) -> None:
    assert run(capsys, "leaderboard", papers, "--by", "kind", "--out", tmp_path)[0] == 0
    table = pq.read_table(tmp_path / "leaderboard.parquet").to_pylist()
    metrics = {metric.name for metric in DrMi().metrics}
    for over, group in (("group", "research"), ("group", "review"), ("group", ""), ("mean over groups", "")):
        rows = [
            row for row in table if (row["over"], row["attribute"], row["group"]) == (over, "kind", group)
        ]
        assert {row["metric"] for row in rows} == metrics and len(rows) == 2 * len(metrics)
    assert {row["metric"] for row in table if row["attribute"] == "size"} == {
        "plan_f1",
        "retrieval_accuracy",
        "reasoning_accuracy",
    }
    whole = json.loads((tmp_path / "leaderboard.json").read_text())
    assert whole["by"] == "kind" and whole["groupings"][0]["attribute"] == "kind"
    page = (tmp_path / "leaderboard.html").read_text()
    markdown = (tmp_path / "leaderboard.md").read_text().replace("\\", "")
    for metric in metrics:
        assert f"{metric} by kind" in page and f"### {metric} by kind" in markdown
    assert "plan_f1 by size" in page and "plan_recall by size" not in page
    shown = {
        (row["metric"], row["system"]): f"{100 * row['value']:.2f}"
        for row in table
        if row["over"] == "mean over groups" and row["attribute"] == "kind"
    }
    by_kind = [rows for rows in tables(markdown) if rows[0][0] == "kind" and "plan_f1" in rows[0]]
    columns = by_kind[0][0]
    means = [row for row in by_kind[0][2:] if row[0] == "mean over 3 groups"]
    assert {row[columns.index("system")]: row[columns.index("plan_f1")] for row in means} == {
        system: value for (metric, system), value in shown.items() if metric == "plan_f1"
    }


@pytest.mark.parametrize("width", [80, 120])
def test_narrow_terminal_cuts_no_name_and_no_interval(papers: Path, width: int) -> None:
    found = build_leaderboard([papers], by="kind")
    console = Console(width=width, file=io.StringIO(), highlight=False)
    cut = re.compile("…")
    for ranking in rankings(found.metrics):
        standings = by_group(ranking, grouping(found, "kind")).without("tier")
        console.print(on_terminal(standings, width))
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert not cut.search(text) and max(map(len, text.splitlines())) <= width
        for metric in ranking.shown:
            assert metric.metric in text
        for row in ranking.head.standings:
            assert row.system in folded(text)
            assert f"[{100 * row.low:.2f}, {100 * row.high:.2f}]" in text


def test_metric_chooses_the_columns(papers: Path, capsys: Any) -> None:
    code, out, _ = run(capsys, "leaderboard", papers, "--metric", "plan_f1_many", "drmi.plan_accuracy")
    assert code == 0
    (head,) = [line for line in out.splitlines() if line.startswith("┃") and "plan_f1" in line]
    assert re.findall(r"plan_\w+", head) == ["plan_f1", "plan_accuracy", "plan_f1_many"]


def test_unknown_attribute_or_metric_names_those_there_are(papers: Path, capsys: Any) -> None:
    code, _, error = run(capsys, "leaderboard", papers, "--by", "colour")
    assert code == 2 and "by: unknown attribute 'colour'; use 'language' or 'kind' or 'size'" in one_line(
        error
    )
    code, _, error = run(capsys, "leaderboard", papers, "--metric", "speed")
    assert code == 2 and "metric: unknown metric 'speed'; there are 27 others" in one_line(error)


def test_attribute_of_many_values_is_grouped_only_on_request(tmp_path: Path) -> None:
    tasks = {str(at): {"date": f"2026-{at}"} for at in range(40)}
    values = [("one", task, "score", 0.5) for task in tasks]
    folder = written(tmp_path, "made", (Metric(name="score", headline=True),), tasks, values)
    assert build_leaderboard([folder]).groupings == ()
    assert len(grouping(build_leaderboard([folder], by="date"), "date").groups) == 40


def test_runs_without_attributes_are_grouped_by_language(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", ["one", "two"], 14)
    found = build_leaderboard([folder], by="language")
    assert [group.name for group in grouping(found, "language").groups] == ["en", "zh"]
    assert {one.metric for one in grouping(found, "language").mean} == {one.metric for one in found.metrics}
