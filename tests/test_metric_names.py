"""Names of metrics and headlines: one meaning in every command and page, and every table that ranks is seen."""

import asyncio
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.check import check
from adjudge.engine.commands.compare import compare, comparison_said
from adjudge.engine.commands.main import main
from adjudge.engine.config.metrics import Name, headlines, named, short_names
from adjudge.engine.config.reward import Formula, FormulaError, RewardConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.library.scores import Score
from adjudge.engine.runs.record import RunRecord, TaskRecord, metrics_of
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.statistics.notes import differing
from adjudge.engine.store.scorecards import SCORE_TYPES
from adjudge.engine.tables.standings import rankings
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import DifferencesQuery, NotThere, SystemQuery
from adjudge.engine.viewer.pages.differences import differences_page
from adjudge.engine.viewer.pages.frame import Frame, writer
from adjudge.engine.viewer.pages.system import system_page
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import ScoringProtocol, minimum
from adjudge.scoring.contract.scorecard import Metric, Missing, Scorecard, explained
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.drmi_bench.drmi import DrMi
from adjudge.scoring.rubrics.benchmarks import HealthBench
from adjudge.scoring.rubrics.drb2 import DeepResearchBench2
from adjudge.scoring.rubrics.liveresearchbench import LiveResearchBench
from adjudge.scoring.rubrics.rigorous import Rigorous
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.made_record import made_record
from tests.worlds import world

SHARED = (Rubrics(), HealthBench())
BOTH = ("rubrics.score", "healthbench.score")
RANKED = ("plan_f1", "retrieval_accuracy", "reasoning_accuracy")
NAMES = st.builds(Name, st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y", "x.y", "t:x"]))


def made(
    folder: Path,
    protocols: Sequence[ScoringProtocol],
    tasks: int = 8,
    fallen: Sequence[str] = (),
    **more: Any,
) -> Path:
    """A run folder: system A scores 0.9 and B 0.4 by every metric, and 0 by those that are `fallen`."""
    folder.mkdir()
    rows = [
        {
            "protocol": protocol.name,
            "system": system,
            "task_id": str(task),
            "sample": 0,
            "repeat": 0,
            "metric": metric.name,
            "value": 0.0 if metric.name in fallen else value,
            "status": "scored",
        }
        for protocol in protocols
        for metric in protocol.metrics
        if metric.ratio is None
        for system, value in (("A", 0.9), ("B", 0.4))
        for task in range(tasks)
    ]
    pq.write_table(
        pa.Table.from_pylist(rows, pa.schema(list(SCORE_TYPES.items()))), folder / "scores.parquet"
    )
    metrics, _ = metrics_of(protocols, ())
    known = {str(task): TaskRecord("en", "") for task in range(tasks)}
    record = made_record(metrics, known, ["A", "B"])
    config = msgspec.structs.replace(record.config, protocols=tuple(protocol.name for protocol in protocols))
    msgspec.structs.replace(record, config=config, **more).write(folder)
    return folder


def table(file: Path, rows: Sequence[Sequence[object]]) -> Path:
    with file.open("w", newline="") as lines:
        csv.writer(lines).writerows(rows)
    return file


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    streams = capsys.readouterr()
    return (ended.value.code if isinstance(ended.value.code, int) else 1), streams.out, streams.err


# Names


@given(st.lists(NAMES, unique=True), st.text(max_size=5) | st.sampled_from(["x", "y", "a.x", "b.x.y"]))
def test_name_means_one_metric_or_is_refused(known: list[Name], said: str) -> None:
    full = [name for name in known if name.full == said]
    short = [name for name in known if name.metric == said]
    expected = full or short
    if len(expected) == 1:
        assert named(said, known, "metric") == expected[0]
        return
    with pytest.raises(UsageError) as refused:
        named(said, known, "metric")
    assert str(refused.value).startswith("metric: ") and "\n" not in str(refused.value)
    assert all(name.full in str(refused.value) for name in expected)


@given(st.lists(NAMES, unique=True))
def test_short_names_lead_back(known: list[Name]) -> None:
    for name, short in short_names(known).items():
        assert named(name.full, known, "metric") == name
        assert short == name.full or named(short, [one for one in known if one.full != short], "") == name


def test_unknown_name_offers_the_nearest() -> None:
    known = [Name("race", "overall"), Name("race", "insight"), Name("fact", "c_acc")]
    for said, offered in (("overal", "'overall'"), ("race.insigt", "'race.insight'"), ("cacc", "'c_acc'")):
        with pytest.raises(UsageError, match=f"unknown metric '{said}'; use {offered}"):
            named(said, known, "metric")


@pytest.mark.parametrize(
    "command",
    [
        ("check", "{run}", "--baseline", "{run}", "--metric", "score"),
        ("leaderboard", "{run}", "--out", "{out}", "--metric", "score"),
        ("leaderboard", "{run}", "--out", "{out}", "--human", "{human}"),
        ("leaderboard", "{run}", "--out", "{out}", "--published", "{published}"),
        ("leaderboard", "{run}", "--out", "{out}", "--published", "{columns}"),
        ("agreement", "{run}", "--human", "{human}"),
        ("evaluate", "{config}", "--until-resolved", "score"),
        ("evaluate", "{config}", "--until-resolved", "score:system0,system1"),
    ],
    ids=lambda command: " ".join((command[0], *command[-2:])),
)
def test_ambiguous_name_is_refused_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    rows = [["0", system, "ann", "score", value] for system, value in (("A", 1), ("B", 0))]
    places = {
        "run": made(tmp_path / "run", SHARED),
        "out": tmp_path / "out",
        "human": table(tmp_path / "h.csv", [["task_id", "system", "rater", "metric", "value"], *rows]),
        "published": table(tmp_path / "p.csv", [["system", "metric", "value"], ["A", "score", 0.9]]),
        "columns": table(tmp_path / "c.csv", [["model", "Score"], ["A", 0.9]]),
        "config": world(tmp_path / "world", protocols=["rubrics", "healthbench"]),
    }
    code, _, error = run(capsys, *(word.format_map(places) for word in command))
    (line,) = [line for line in error.splitlines() if not line.startswith("follow it: ")]
    assert code == 2 and all(name in line for name in BOTH), error


@pytest.mark.parametrize("config", [{"metric": "score"}, {"weights": {"score": 1.0}}], ids=str)
def test_ambiguous_name_is_refused_in_a_reward(config: dict[str, Any]) -> None:
    with pytest.raises(FormulaError) as refused:
        Formula(msgspec.convert(config, RewardConfig), SHARED)
    assert all(name in str(refused.value) for name in BOTH)


def test_ambiguous_name_is_refused_by_the_viewer(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", SHARED)
    opened, frame = OpenRun(Run.open(folder)), Frame("run", "judge")
    for page in (
        system_page(opened, frame, SystemQuery(system="A", metric="score")),
        differences_page(opened, opened, frame, DifferencesQuery(metric="score")),
    ):
        with pytest.raises(NotThere) as refused:
            asyncio.run(page)
        assert all(name in str(refused.value) for name in BOTH)


def test_full_name_means_one_of_the_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path / "run", SHARED)
    board = build_leaderboard([folder], metrics=["healthbench.score", "pass_rate"])
    assert [(one.protocol, one.metric) for one in board.metrics if one.shown] == [
        ("rubrics", "pass_rate"),
        ("healthbench", "score"),
    ]
    figures = table(tmp_path / "p.csv", [["system", "metric", "value"], ["A", "healthbench.score", 0.9]])
    code, out, error = run(capsys, "leaderboard", folder, "--published", figures, "--json")
    assert code == 0, error
    published = {one["protocol"] for one in msgspec.json.decode(out)["metrics"] if one.get("published")}
    assert published == {"healthbench"}


# Headlines


def test_headlines_are_one_per_table_or_the_first() -> None:
    assert [metric.name for metric in headlines(DrMi().metrics)] == list(RANKED)
    assert headlines((Metric(name="a"), Metric(name="b"))) == (Metric(name="a"),)
    assert headlines(()) == ()


@pytest.mark.parametrize("fallen", RANKED)
def test_check_sees_every_table_that_ranks(tmp_path: Path, fallen: str) -> None:
    old, new = made(tmp_path / "old", [DrMi()]), made(tmp_path / "new", [DrMi()], fallen=[fallen])
    found = check(new, old)
    assert found.outcome == "regressed" and {one.metric for one in found.metrics} == {*RANKED}
    assert {one.metric for one in found.metrics if one.outcome == "regressed"} == {fallen}
    assert check(old, old).outcome == "passed"


def test_comparison_names_every_table_that_ranks(tmp_path: Path) -> None:
    said = comparison_said(compare(made(tmp_path / "run", [DrMi()]), "A", "B"))
    assert all(f"drmi {name}" in said for name in RANKED)


def test_first_metric_ranks_where_no_headline_is_declared(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", [Fact()])
    record = RunRecord.read(folder)
    plain = [msgspec.structs.replace(one, headline=False) for one in record.metrics["fact"]]
    msgspec.structs.replace(record, metrics={"fact": tuple(plain)}).write(folder)
    board = build_leaderboard([folder])
    (ranking,) = rankings(board.metrics)
    assert ranking.head.metric == plain[0].name and ranking.head.headline and ranking.head.detail is not None


def gold(**parts: object) -> Case:
    raw = msgspec.Raw(msgspec.json.encode(parts))
    return Case(
        task=Task(id="1", prompt="?", gold={"drmi": raw}), report=Report(task_id="1", system="A", text="t")
    )


PARTS: dict[str, object] = {
    "plan": ["explain"],
    "references": [{"title": "A study of kites"}],
    "statements": [{"text": "Kites fly.", "truth": True}],
}


def paid(case: Case, scores: dict[str, float]) -> float | None:
    due = {metric.name for metric in DrMi().metrics_of(case)}
    values = {
        metric.name: scores.get(metric.name, 0.0) if metric.name in due else Missing("gold_missing")
        for metric in DrMi().metrics
    }
    formula = Formula(RewardConfig(), [DrMi()])
    return formula.value({"drmi": Scorecard.of("drmi", case, values)}, {}).value


def test_default_reward_weighs_every_table_alike() -> None:
    assert Formula(RewardConfig(), [Fact()]).parts[0].term.weight == 1.0
    assert paid(gold(**PARTS), dict.fromkeys(RANKED, 1.0)) == pytest.approx(1.0)
    for name in RANKED:
        assert paid(gold(**PARTS), {name: 0.9}) == pytest.approx(0.3)


def test_default_reward_leaves_out_what_the_task_has_no_gold_for() -> None:
    for part, lost in zip(PARTS, RANKED, strict=True):
        case = gold(**{name: value for name, value in PARTS.items() if name != part})
        assert paid(case, dict.fromkeys(RANKED, 0.5)) == pytest.approx(0.5), lost
        worst = Formula(RewardConfig(), [DrMi()]).value({"drmi": minimum(DrMi(), case, "report_empty")}, {})
        assert worst.value == 0.0 and worst.reason == "report_empty"
    assert paid(gold(), {}) is None
    asked = Formula(RewardConfig(weights={"plan_f1": 1.0}), [DrMi()])
    without = {metric.name: Missing("gold_missing") for metric in DrMi().metrics}
    assert asked.value({"drmi": Scorecard.of("drmi", gold(), without)}, {}).reason == "gold_missing"


def test_value_of_a_single_score_is_the_first_table_s() -> None:
    card = Scorecard.of("drmi", gold(), {name: float(at) for at, name in enumerate(RANKED)})
    assert Score((card,), {"drmi": headlines(DrMi().metrics)[0].name}).value == 0.0


# What a metric knows of itself


def test_metric_with_a_part_of_gold_is_due_where_a_task_has_it() -> None:
    for protocol, parts in ((DrMi(), {*PARTS}), (LiveResearchBench(), {"checklist", "reference"})):
        assert {metric.gold for metric in protocol.metrics} - {""} == parts
    for part in PARTS:
        due = {metric.gold for metric in DrMi().metrics_of(gold(**{part: PARTS[part]}))}
        assert due == {part}
    raw = msgspec.Raw(msgspec.json.encode({"rubric": {"analysis": ["Compares two."]}}))
    case = Case(
        task=Task(id="1", prompt="?", gold={"drb2": raw}), report=Report(task_id="1", system="A", text="t")
    )
    assert {metric.gold for metric in DeepResearchBench2().metrics_of(case)} == {"", "analysis"}


def test_kinds_units_and_decimals() -> None:
    of = {metric.name: explained(Fact(), metric) for metric in Fact().metrics}
    assert of["pairs"].kind == "count" and of["pairs"].units == "count"
    assert of["c_acc"].kind == "quality" and of["c_acc"].units == "share" and of["c_acc"].decimals == 2
    per_token = next(one for one in Rigorous().metrics if one.name == "contribution_per_token")
    assert per_token.kind == "resource"
    assert writer(per_token, [0.00298])(0.00298) == "0.0030"
    assert writer(of["pairs"], [3.0, 12.0])(12.0) == "12"


def test_tables_write_as_many_decimals_as_the_metric_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = (Metric(name="integrated", headline=True), Metric(name="per_token", best=None, decimals=4))

    class Made:
        name = "made"

    Made.metrics = metrics  # type: ignore[attr-defined]
    folder = made(tmp_path / "run", [Made()])  # type: ignore[list-item]
    code, out, error = run(capsys, "leaderboard", folder, "--out", tmp_path / "out")
    assert code == 0, error
    assert "0.9000" in out and "0.90" in out and "0.9000" in (tmp_path / "out" / "leaderboard.md").read_text()
    assert "0.5000" in run(capsys, "compare", folder, "A", "B")[1]
    figures = table(tmp_path / "p.csv", [["system", "metric", "value"], ["A", "per_token", 0.003]])
    _, out, _ = run(capsys, "leaderboard", folder, "--out", tmp_path, "--published", figures, "--markdown")
    assert "| 0.9000 | 0.0030 | 0.8970 |" in out


# Runs that differ


def test_run_that_lacks_a_protocol_does_not_differ(tmp_path: Path) -> None:
    digests = {"preamble.en.md": "1", "race_pair.en.md": "1", "fact_support.en.md": "1"}
    one, other = (
        RunRecord.read(made(tmp_path / name, protocols, prompts=digests))
        for name, protocols in (("a", [Rubrics(), Fact()]), ("b", [Rubrics()]))
    )
    assert list(differing([one, other])) == []
    config = msgspec.structs.replace(other.config, protocols=({"name": "rubrics", "min_answered": 0.5},))
    (said,) = differing([one, msgspec.structs.replace(other, config=config)])
    assert said.startswith("these runs differ in their protocol options for rubrics:")


def test_criteria_are_compared_protocol_by_protocol(tmp_path: Path) -> None:
    one, other = (RunRecord.read(made(tmp_path / name, SHARED)) for name in "ab")

    def judged_by(record: RunRecord, *criteria: str) -> RunRecord:
        entries = tuple({"name": name, "file": f"{name}.yaml"} for name in ("rubrics", "healthbench"))
        config = msgspec.structs.replace(record.config, protocols=entries[: len(criteria)])
        return msgspec.structs.replace(record, config=config, criteria=criteria)

    assert list(differing([judged_by(one, "1", "2"), judged_by(other, "1", "2")])) == []
    (said,) = differing([judged_by(one, "1", "2"), judged_by(other, "1", "3")])
    assert said.startswith("these runs differ in their criteria for healthbench:")


def test_file_of_the_same_criteria_elsewhere_is_no_difference(tmp_path: Path) -> None:
    runs = [RunRecord.read(made(tmp_path / name, SHARED)) for name in "ab"]

    def judged_by(digests: Sequence[str]) -> list[RunRecord]:
        entries = [({"name": "rubrics", "file": f"{place}/criteria.yaml"},) for place in "ab"]
        configs = [
            msgspec.structs.replace(run.config, protocols=entry)
            for run, entry in zip(runs, entries, strict=True)
        ]
        return [
            msgspec.structs.replace(run, config=config, criteria=(digest,) if digest else ())
            for run, config, digest in zip(runs, configs, digests, strict=True)
        ]

    assert list(differing(judged_by("11"))) == []
    (said,) = differing(judged_by("12"))
    assert said.startswith("these runs differ in their criteria for rubrics:")
    (said,) = differing(judged_by(("", "")))  # nothing is recorded of what they held
    assert "protocol options for rubrics" in said
