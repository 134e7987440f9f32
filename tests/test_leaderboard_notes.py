"""The notes of a leaderboard: runs that differ, missing reports, incomplete figures."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import Price, RunConfig
from adjudge.engine.runs.record import Effort, RunRecord, TaskRecord
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.scoring.contract.case import Task
from tests.guide import judge
from tests.made_runs import made_run
from tests.worlds import world

SYSTEMS = ("able", "baker", "charlie")


def rewritten(run: Path, keep: Callable[[pa.Table], pa.Table]) -> Path:
    """`run` with other score rows."""
    pq.write_table(keep(pq.read_table(run / "scores.parquet")), run / "scores.parquet")
    return run


def notes(*runs: Path) -> str:
    return "\n".join(build_leaderboard(runs).notes)


def task(gold: str, prompt: str = "Why?") -> TaskRecord:
    return TaskRecord.of(Task(id="3", prompt=prompt, gold={"rubrics": msgspec.Raw(gold.encode())}))


def test_task_identity_ignores_the_spelling_of_its_gold() -> None:
    same = task('{"a": 1, "b": [2.0]}')
    assert same == task('{"b":[2.0],"a":1}') != task('{"a": 1, "b": [3.0]}')
    assert same != task('{"a": 1, "b": [2.0]}', "Why not?")


@pytest.mark.parametrize("what", ["gold", "criteria"])
def test_runs_with_different_gold_or_criteria_are_noted(tmp_path: Path, what: str) -> None:
    one, other = (made_run(tmp_path / name, SYSTEMS, 10) for name in "ab")
    assert "differ" not in notes(one, other)
    for run, value in ((one, "1"), (other, "2")):
        record = RunRecord.read(run)
        changed = {"tasks": {**record.tasks, "3": task(value)}} if what == "gold" else {"criteria": (value,)}
        msgspec.structs.replace(record, **changed).write(run)
    said = {"gold": "differ in the prompt or gold of 1 task:", "criteria": "differ in their criteria"}
    assert said[what] in notes(one, other)
    assert "differ" not in notes(other)


def test_only_prompts_that_were_used_are_compared(tmp_path: Path) -> None:
    """A run of another version has other prompts of protocols that neither run uses."""
    one, other = (made_run(tmp_path / name, SYSTEMS, 10) for name in "ab")

    def with_prompts(**changed: str) -> None:
        prompts = {f"{name}.en.md": "1" for name in ("preamble", "race_pair", "fact_support", "dr3_met")}
        for run, more in ((one, {}), (other, {f"{name}.en.md": digest for name, digest in changed.items()})):
            record = msgspec.structs.replace(RunRecord.read(run), prompts=prompts | more)
            record.write(run)

    with_prompts(dr3_met="2", probe="2", dr3_new="2")
    assert "differ" not in notes(one, other)
    for used in ("preamble", "race_pair", "fact_support"):
        with_prompts(**{used: "2"})
        assert "these runs differ in their prompts" in notes(one, other)


def test_system_without_some_reports_is_named(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", SYSTEMS, 10, missing=0)
    assert "not_submitted" not in notes(run)
    rewritten(
        run,
        lambda rows: rows.filter(
            pc.or_(pc.not_equal(rows["system"], "baker"), pc.equal(rows["task_id"], "3"))
        ),
    )
    assert "race overall: not ranked, under 95% scored: baker (*)" in notes(run)
    assert (
        "race overall: 9 unscored, not_submitted (input): such as baker on 0, baker on 1, baker on 2; add"
        in notes(run)
    )
    rewritten(run, lambda rows: rows.filter(pc.not_equal(rows["task_id"], "7")))
    assert "race overall: 11 unscored, not_submitted" in notes(run)


def test_system_without_scores_is_unranked_and_takes_no_task(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", SYSTEMS, 10, missing=0)

    def without(rows: pa.Table) -> pa.Table:
        gone = pc.equal(rows["system"], "baker")
        value = pc.if_else(gone, pa.scalar(None, pa.float64()), rows["value"])
        return rows.set_column(rows.column_names.index("value"), "value", value)

    before = {row.system: row for row in build_leaderboard([run]).metrics[0].standings}
    board = build_leaderboard([rewritten(run, without)]).metrics[0]
    assert board.basis == "ranked by overall; 10 tasks"
    after = {row.system: row for row in board.standings}
    assert [row.system for row in board.standings] == ["able", "charlie", "baker"]
    assert (after["baker"].rank, after["baker"].value, after["baker"].bound_high) == (None, 0.0, 1.0)
    for name in ("able", "charlie"):
        assert (after[name].value, after[name].n_total) == (before[name].value, 10)


def test_pooled_metric_counts_tasks_with_both_parts(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", SYSTEMS, 10, missing=0)

    def without(rows: pa.Table) -> pa.Table:
        gone = pc.and_(pc.equal(rows["metric"], "judged"), pc.less(rows["task_id"], "4"))
        value = pc.if_else(gone, pa.scalar(None, pa.float64()), rows["value"])
        reason = pc.if_else(gone, "page_timeout", rows["reason"])
        rows = rows.set_column(rows.column_names.index("value"), "value", value)
        return rows.set_column(rows.column_names.index("reason"), "reason", reason)

    board = build_leaderboard([rewritten(run, without)])
    (metric,) = [metric for metric in board.metrics if metric.metric == "c_acc_code"]
    assert {row.n_scored for row in metric.standings} == {6}
    assert metric.standings[0].unscored == {"page_timeout": 4}
    assert (
        metric.standings[0].flagged and metric.standings[0].value is None
    )  # nothing bounds the denominators


def test_gaps_of_other_metrics_are_named(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", SYSTEMS, 10, missing=0)

    def without(rows: pa.Table) -> pa.Table:
        gone = pc.and_(
            pc.is_in(rows["metric"], pa.array(["insight", "depth"])), pc.equal(rows["task_id"], "4")
        )
        value = pc.if_else(gone, pa.scalar(None, pa.float64()), rows["value"])
        reason = pc.if_else(gone, "judge_timeout", rows["reason"])
        rows = rows.set_column(rows.column_names.index("value"), "value", value)
        return rows.set_column(rows.column_names.index("reason"), "reason", reason)

    assert "headline" not in notes(run)
    assert "race insight, where the headline is scored: 3 unscored, judge_timeout (infrastructure)" in notes(
        rewritten(run, without)
    )


def test_ranks_without_one_task_are_given(tmp_path: Path) -> None:
    """The first system leads by one task alone; without any other the ranking stays as it is."""
    run = made_run(tmp_path / "a", SYSTEMS, 10, missing=0)

    def decided(rows: pa.Table) -> pa.Table:
        place = pc.cast(pc.index_in(rows["system"], pa.array(["charlie", "baker", "able"])), pa.float64())
        one = pc.if_else(pc.equal(rows["task_id"], "3"), pc.multiply(place, 0.1), pc.multiply(place, -0.01))
        value = pc.add(0.5, pc.if_else(pc.equal(rows["system"], "charlie"), -0.2, one))
        return rows.set_column(rows.column_names.index("value"), "value", value)

    (race,) = [one for one in build_leaderboard([rewritten(run, decided)]).metrics if one.metric == "overall"]
    assert race.detail is not None and race.detail.left_out is not None
    left_out = race.detail.left_out
    assert (left_out.n_tasks, left_out.n_kept) == (10, 9)
    assert left_out.ranks == {"able": (1, 2), "baker": (1, 2), "charlie": (3, 3)}
    assert left_out.least_tau == pytest.approx(1 / 3)


def test_published_calls_are_noted_and_not_mixed_in_silence(tmp_path: Path) -> None:
    one, other = (made_run(tmp_path / name, SYSTEMS, 10) for name in "ab")
    record = RunRecord.read(other)
    asked = [{"name": "race", "call": "published", "checkout": "gone"}, "fact"]
    msgspec.structs.replace(record, config=msgspec.structs.replace(record.config, protocols=asked)).write(
        other
    )
    assert "race: asked in the benchmark's own calls" in notes(other)
    assert "race: some runs ask in the benchmark's own calls (call: published), others ours" in notes(
        one, other
    )
    assert "call: published" not in notes(one)


def test_judging_is_counted_and_priced(tmp_path: Path) -> None:
    """Tokens a report, of all its questions; a cost where there is one judge and its price."""
    run = made_run(tmp_path / "a", SYSTEMS, 10)
    record = RunRecord.read(run)
    spent = {"race": Effort(scorecards=4, prompt_tokens=40_002, completion_tokens=800)}
    msgspec.structs.replace(record, effort=spent).write(run)
    assert (
        "race: judging a report took 10,000 prompt and 200 completion tokens"
        in build_leaderboard([run]).notes
    )
    price = Price(cost_per_million_prompt_tokens=2.0, cost_per_million_completion_tokens=10.0)
    priced = msgspec.structs.replace(record.config, prices={record.judge.name: price})
    msgspec.structs.replace(record, effort=spent, config=priced).write(run)
    assert "race: judging a report took 10,000 prompt and 200 completion tokens, which cost 0.022" in notes(
        run
    )


def test_judging_costs_the_same_when_answered_from_the_store(tmp_path: Path) -> None:
    with judge() as url:
        config = world(tmp_path, judge={"backend": "openai", "url": url, "model": "m"})
        efforts = [evaluate(RunConfig.load(config)).leaderboard.notes for _ in range(2)]
    judgments = pq.read_table(tmp_path / "store" / "judgments", columns=["prompt_tokens"])
    reports = 4 * 5
    read = sum(judgments["prompt_tokens"].to_pylist()) / reports
    assert efforts[0] == efforts[1]
    assert any(
        note.startswith(f"rubrics: judging a report took {read:,.0f} prompt and ") for note in efforts[0]
    )
