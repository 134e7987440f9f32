"""`adjudge check`: outcomes, exit codes and files, and how often it is wrong."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adjudge.engine.commands.check import Check, check, write_junit
from adjudge.engine.commands.main import main
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.claims import fewest_tasks
from adjudge.scoring.kernels.comparison.drop_test import drop_test
from benchmarks.check import alarms
from tests.action import action_step
from tests.commands import one_line, run
from tests.made_runs import made_run
from tests.nightly import quick_or_whole

ROOT = Path(__file__).parent.parent
SYSTEMS = ("good", "fair")


def written(folder: Path, shift: float = 0.0, *, tasks: int = 40, missing: int = 0, seed: int = 1) -> Path:
    """A run whose scores lie `shift` below those of the others, with noise; the first `missing` tasks are unscored."""
    made_run(folder, SYSTEMS, tasks, missing=0.0)
    rows = pq.read_table(folder / "scores.parquet")
    noise = np.random.default_rng(seed).normal(-shift, 0.02, rows.num_rows)
    gone = np.array([int(one) < missing for one in rows["task_id"].to_pylist()])
    values = pa.array(np.clip(rows["value"].to_numpy() + noise, 0, 1), mask=gone)
    pq.write_table(
        rows.set_column(rows.column_names.index("value"), "value", values), folder / "scores.parquet"
    )
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs in `tmp_path`: main, the same again, one that is worse, and one that lost tasks."""
    written(tmp_path / "main")
    written(tmp_path / "same", seed=2)
    written(tmp_path / "worse", 0.05, seed=3)
    written(tmp_path / "lost", seed=4, missing=4)
    return tmp_path


def changed(folder: Path, **fields: object) -> None:
    msgspec.structs.replace(RunRecord.read(folder), **fields).write(folder)


# The tests behind it


def test_drop_is_tested_as_scipy_does() -> None:
    rng = np.random.default_rng(0)
    before = rng.random(30)
    after = before - rng.normal(0.03, 0.1, 30)
    found = drop_test(before, after, margin=0.02)
    assert found.p_above == pytest.approx(
        stats.ttest_1samp(before - after, 0.02, alternative="greater").pvalue
    )
    assert found.p_below == pytest.approx(stats.ttest_1samp(before - after, 0.02, alternative="less").pvalue)
    interval = stats.ttest_rel(before, after).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize(("alpha", "power", "family"), [(0.05, 0.8, 1), (0.01, 0.9, 4), (0.2, 0.5, 1)])
def test_detectable_drop_has_its_power_in_theory(alpha: float, power: float, family: int) -> None:
    before = np.random.default_rng(1).random(25)
    found = drop_test(before, np.zeros(25), alpha=alpha, power=power, family=family)
    shift = found.detectable / (found.sd / 5)
    assert stats.nct.sf(stats.t.isf(alpha / family, 24), 24, shift) == pytest.approx(power, abs=1e-6)


def test_drop_without_spread_is_as_sure_as_so_many_coin_tosses() -> None:
    found = drop_test([0.5, 0.5, 0.5], [0.25, 0.25, 0.25], margin=0.2)
    assert (found.p_above, found.p_below) == (1 / 8, 1.0)
    assert np.isnan([found.low, found.high, found.detectable]).all()
    same = drop_test([0.5, 0.75], [0.5, 0.75])
    assert (same.drop, same.p_above, same.p_below) == (0.0, 1.0, 1.0)
    assert np.isnan(drop_test([0.5, np.nan], [0.25, 0.5]).p_above)


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"power": 1.0}, {"family": 0}], ids=str)
def test_drop_test_rejects_bad_options(options: dict[str, float]) -> None:
    with pytest.raises(KernelError):
        drop_test([0.5, 0.6], [0.5, 0.6], **options)
    with pytest.raises(KernelError):
        drop_test([0.5], [0.5, 0.6])


@pytest.mark.parametrize(("alpha", "needed"), [(0.05, 5), (0.5, 1), (0.01, 7)])
def test_few_tasks_cannot_show_anything(alpha: float, needed: int) -> None:
    assert fewest_tasks(alpha, sides=1) == needed and 0.5**needed <= alpha


@pytest.mark.nightly
def test_false_alarms_and_power_are_as_stated() -> None:
    """A small form of `benchmarks.check`: shares of `pairs` pairs lie within 3.5 standard errors."""
    pairs = quick_or_whole(100, 400)
    none = alarms(pairs=pairs, tasks=40, systems=2, drop=0.0, seed=5)
    assert none.share <= 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / pairs)
    stated = alarms(pairs=pairs, tasks=40, systems=1, drop=None, seed=6)
    assert abs(stated.share - 0.8) <= 3.5 * np.sqrt(0.8 * 0.2 / pairs)


# Outcomes


def test_run_like_its_baseline_passes(runs: Path) -> None:
    found = check(runs / "same", runs / "main")
    assert found.outcome == "passed" and found.summary == "no regression in 4 tests"
    tested = {(one.system, one.protocol, one.metric) for one in found.metrics}
    assert tested == {
        (system, protocol, metric)
        for system in SYSTEMS
        for protocol, metric in (("race", "overall"), ("fact", "c_acc"))
    }
    for one in found.metrics:
        assert one.detectable is not None and 0.5 < one.detectable < 2.5, "in the units of tables"
        assert (one.n_used, one.n_tasks, one.scored) == (40, 40, 1.0)


def test_worse_run_regresses_in_every_metric(runs: Path) -> None:
    found = check(runs / "worse", runs / "main")
    assert found.outcome == "regressed" and {one.outcome for one in found.metrics} == {"regressed"}
    for one in found.metrics:
        assert one.drop == pytest.approx(5.0, abs=1.0) and one.before - one.after == pytest.approx(one.drop)
        assert one.p <= one.holm_p <= 0.05
    assert check(runs / "main", runs / "worse").outcome == "passed", "a better run does not regress"


def test_margin_is_ruled_out_shown_or_unclear(runs: Path) -> None:
    outcomes = {
        drop: check(runs / "worse", runs / "main", max_drop=drop, metrics=["race.overall"]).outcome
        for drop in (1.0, 5.0, 9.0)
    }
    assert outcomes == {1.0: "regressed", 5.0: "unclear", 9.0: "passed"}


def test_lost_tasks_cannot_hide_a_regression(runs: Path) -> None:
    found = check(runs / "lost", runs / "main")
    assert found.outcome == "unclear" and {one.scored for one in found.metrics} == {0.9}
    assert all("90.0% of the tasks are scored" in one.why for one in found.metrics)
    assert check(runs / "lost", runs / "main", min_scored=0.9).outcome == "passed"
    assert check(runs / "main", runs / "lost").outcome == "unclear", "nor a gap in the baseline"


def test_systems_are_checked_against_one_another(runs: Path) -> None:
    found = check(runs / "main", runs / "main", system="fair", against="good")
    assert found.outcome == "regressed"
    assert {(one.system, one.against) for one in found.metrics} == {("fair", "good")}
    assert check(runs / "main", runs / "main", system="good").outcome == "passed"


def test_metric_that_is_better_when_lower_regresses_upwards(runs: Path) -> None:
    for name in ("main", "worse"):
        metrics = RunRecord.read(runs / name).metrics
        head, *others = metrics["race"]
        changed(runs / name, metrics={"race": (msgspec.structs.replace(head, lower_is_better=True), *others)})
    found = check(runs / "main", runs / "worse")
    assert found.outcome == "regressed"
    assert all(one.after > one.before and one.drop > 0 for one in found.metrics)
    assert check(runs / "worse", runs / "main").outcome == "passed"


def test_changed_and_single_tasks_are_left_out_and_said(runs: Path) -> None:
    tasks = dict(RunRecord.read(runs / "same").tasks)
    baseline = {name: msgspec.structs.replace(one, digest="a") for name, one in tasks.items()}
    del tasks["0"]
    tasks["1"] = msgspec.structs.replace(tasks["1"], digest="b")
    tasks["2"] = msgspec.structs.replace(tasks["2"], without_gold=("race",))
    changed(runs / "same", tasks=tasks)
    changed(runs / "main", tasks=baseline)
    found = check(runs / "same", runs / "main")
    assert {one.protocol: one.n_tasks for one in found.metrics} == {"race": 37, "fact": 38}
    assert found.notes == (
        "1 task with another prompt or gold in the baseline: left out",
        "1 task in only one of the runs: left out",
    )


def test_another_judge_is_said(runs: Path) -> None:
    judge = msgspec.structs.replace(RunRecord.read(runs / "same").judge, fingerprint="other@1")
    changed(runs / "same", judge=judge)
    assert "these runs differ in their judges" in check(runs / "same", runs / "main").notes[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"system": "none"}, r"system: 'none' is not in the run; use 'good' or 'fair'"),
        ({"system": "good", "against": "none"}, r"against: 'none' is not in the baseline"),
        ({"against": "good"}, r"against: no system; pass --system A --against B"),
        ({"metrics": ["overal"]}, r"metric: unknown metric 'overal'; use 'overall'"),
        ({"max_drop": 0.0}, r"max-drop: must be above 0"),
        ({"max_drop": float("nan")}, r"max-drop"),
        (
            {"max_drop": 100.0},
            r"max-drop: race.overall is from 0 to 100, and can never drop by more than 100; pass",
        ),
        ({"alpha": 1.0}, r"alpha: must be between 0 and 1"),
        ({"min_scored": 1.5}, r"min-scored"),
    ],
    ids=str,
)
def test_wrong_option_is_one_line(runs: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check(runs / "same", runs / "main", **options)


def test_runs_with_nothing_in_common_are_an_error(runs: Path) -> None:
    made_run(runs / "others", ["x"], 10)
    with pytest.raises(UsageError, match=r"no system in common; pass --system A --against B"):
        check(runs / "others", runs / "main")
    record = RunRecord.read(runs / "same")
    changed(runs / "same", tasks={f"other {name}": task for name, task in record.tasks.items()})
    with pytest.raises(UsageError, match=r"no task in common"):
        check(runs / "same", runs / "main")


# Command, files and neighbours


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code, capsys.readouterr().out


@pytest.mark.parametrize(("run", "code"), [("same", 0), ("worse", 4), ("lost", 3)])
def test_exit_code_says_the_outcome(runs: Path, capsys, run: str, code: int) -> None:
    said = ran(capsys, "check", runs / run, "--baseline", runs / "main")
    assert said[0] == code and "race.overall" in said[1] and "could show (80%)" in said[1]
    read = msgspec.json.decode(
        ran(capsys, "check", runs / run, "--baseline", runs / "main", "--json")[1], type=Check
    )
    assert read == check(str(runs / run), str(runs / "main"))


def test_commands_of_the_page_work_as_written(runs: Path, capsys, monkeypatch) -> None:
    page = (ROOT / "docs/check.md").read_text(encoding="utf-8")
    (runs / "runs").mkdir()
    (runs / "main").rename(runs / "runs/main")
    (runs / "same").rename(runs / "runs/new")
    monkeypatch.chdir(runs)
    commands = re.findall(r"^adjudge (check .*)$", page, re.MULTILINE)
    for command in commands:
        code, said = ran(
            capsys, *shlex.split(command.replace("--system B --against A", "--system good --against fair"))
        )
        assert code == 0 and "passed" in said
    assert len(commands) == 5 and (runs / "check.xml").is_file()


def cases(file: Path) -> dict[str, list[str]]:
    """What an independent reader finds: by outcome, the names of the test cases."""
    from junitparser import Error, Failure, JUnitXml

    found: dict[str, list[str]] = {"passed": [], "failed": [], "error": []}
    for suite in JUnitXml.fromfile(str(file)):
        for case in suite:
            kinds = [type(one) for one in case.result]
            kind = "failed" if Failure in kinds else "error" if Error in kinds else "passed"
            found[kind].append(f"{case.classname} {case.name}")
    return found


@pytest.mark.parametrize(("run", "kind"), [("same", "passed"), ("worse", "failed"), ("lost", "error")])
def test_junit_is_read_by_an_independent_parser(runs: Path, run: str, kind: str) -> None:
    write_junit(check(runs / run, runs / "main"), runs / "check.xml")
    names = [f"{system} {metric}" for metric in ("race.overall", "fact.c_acc") for system in SYSTEMS]
    assert cases(runs / "check.xml") == {"passed": [], "failed": [], "error": []} | {kind: names}


@given(text=st.text(max_size=30))
def test_any_name_makes_valid_xml(tmp_path_factory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "names"
    if not folder.exists():
        written(folder)
    found = check(folder, folder)
    named = [
        msgspec.structs.replace(one, system=text, why=text, outcome="regressed") for one in found.metrics
    ]
    write_junit(msgspec.structs.replace(found, metrics=tuple(named), notes=(text,)), folder / "check.xml")
    assert len(cases(folder / "check.xml")["failed"]) == 4


def test_junit_that_cannot_be_written_is_one_line(runs: Path) -> None:
    with pytest.raises(UsageError, match=r"junit: .* cannot be written: .*; choose another file"):
        write_junit(check(runs / "same", runs / "main"), runs / "none/check.xml")


@pytest.mark.parametrize(("run", "code"), [("same", 0), ("worse", 4), ("lost", 3)])
def test_action_runs_as_a_script(runs: Path, run: str, code: int) -> None:
    done = action_step("check", {"run": run, "baseline": "main", "metrics": "race.overall fact.c_acc"}, runs)
    assert done.returncode == code, done.stderr
    assert "| good | race.overall |" in (runs / "summary.md").read_text(encoding="utf-8") == done.stdout
    assert sum(map(len, cases(runs / "adjudge-check.xml").values())) == 4


def test_fixture_fails_the_tests_of_worse_runs(runs: Path) -> None:
    (runs / "test_gate.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('run', ['same', 'worse', 'lost'])\n"
        "def test_run(adjudge_score, run):\n    assert adjudge_score(run, baseline='main').outcome == 'passed'\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_gate.py"],
        cwd=runs,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "worse against main: good, race.overall: regressed: a drop of" in done.stdout


def test_plugin_is_light_to_load() -> None:
    heavy = "[name for name in ('numpy', 'pyarrow', 'numba') if name in sys.modules]"
    script = f"import sys, adjudge.engine.library.pytest_plugin; print({heavy})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Numbers to reach


def test_system_must_reach_a_number_without_a_baseline(runs: Path) -> None:
    board = {
        one.system: 100 * one.value
        for metric in build_leaderboard([runs / "main"]).metrics
        for one in metric.standings
        if (metric.protocol, metric.metric) == ("race", "overall") and one.value is not None
    }
    between = (board["good"] + board["fair"]) / 2
    found = check(runs / "main", least={"race.overall": between})
    assert (found.baseline, found.metrics, found.outcome) == ("", (), "regressed")
    assert {one.system: one.outcome for one in found.floors} == {"good": "passed", "fair": "regressed"}
    assert {one.system: one.value for one in found.floors} == pytest.approx(board)
    assert f"fair, race.overall: regressed: {board['fair']:.2f}, under {between:g}." in found.summary
    assert check(runs / "main", least={"race.overall": between}, system="good").outcome == "passed"
    both = check(runs / "worse", runs / "main", least={"race.overall": 1.0})
    assert both.outcome == "regressed" and {one.outcome for one in both.floors} == {"passed"}


def test_number_missed_for_want_of_scores_is_unclear(runs: Path) -> None:
    whole = check(runs / "main", least={"race.overall": 1.0}, system="good").floors[0].value
    assert whole is not None
    lost = {
        least: check(runs / "lost", least={"race.overall": least}, system="good") for least in (whole, 99.0)
    }
    assert lost[whole].outcome == "unclear" and "with 90.0% scored" in lost[whole].summary
    assert lost[99.0].outcome == "regressed", "nor could it once all is scored"


def test_numbers_to_reach_on_the_command_line(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", runs / "main", "--min", "race.overall=99", "--min", "c_acc=1")
    assert code == 4 and "fair, race.overall: regressed" in out and "fact.c_acc" in out
    junit = runs / "check.xml"
    code, out, _ = run(
        capsys,
        "check",
        runs / "same",
        "--baseline",
        runs / "main",
        "--min",
        "race.overall=1",
        "--junit",
        junit,
    )
    assert code == 0 and "what it must reach" in out and 'name="race.overall at least 1"' in junit.read_text()
    for wrong, said in (
        (["--min", "race.overall"], "METRIC=VALUE"),
        (["--min", "race.overall=nan"], "METRIC=VALUE"),
        (["--min", "race.overal=4"], "race.overall"),
        (
            ["--min", "race.overall=400"],
            "race.overall is at most 100 and can never reach 400; choose a value in the units",
        ),
        (["--min", "race.overall=4", "--system", "god"], "good"),
        (["--min", "race.overall=4", "--max-drop", "2"], "--baseline"),
        ([], "--min METRIC=VALUE"),
    ):
        code, _, error = run(capsys, "check", runs / "main", *wrong)
        assert code == 2 and said in one_line(error), wrong
