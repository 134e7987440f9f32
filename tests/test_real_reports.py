"""Real reports of three systems, in English and Chinese, from published files to a leaderboard."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.scoring.contract.reasons import CAUSES
from tests.commands import run
from tests.shared_data import shared

SYSTEMS = ("claude4-sonnet", "gpt-4.1", "gpt-5")


def published(folder: Path) -> Path:
    """The published layout, flat: queries, criteria, the reports of three systems, one of them also the reference."""
    folder.mkdir()
    (folder / "query.jsonl").write_bytes(shared("golden/race/drb_query.jsonl").read_bytes())
    (folder / "criteria.jsonl").write_bytes(shared("golden/race/drb_criteria.jsonl").read_bytes())
    for system in SYSTEMS:
        (folder / f"{system}.jsonl").write_bytes(
            shared(f"golden/reports/langchain_{system}.jsonl").read_bytes()
        )
    (folder / "reference.jsonl").write_bytes(shared("golden/reports/langchain_gpt-5.jsonl").read_bytes())
    return folder


@pytest.fixture(scope="module")
def scores(tmp_path_factory) -> list[dict[str, object]]:
    folder = tmp_path_factory.mktemp("real")
    data = published(folder / "data")
    config = folder / "adjudge.yaml"
    config.write_text(
        f"tasks: {data}\nformat: deepresearch-bench\nprotocols: [race, fact]\njudge: lexical\n"
        "fetch: {mode: off}\nstore: store\nout: run\n"
    )
    result = evaluate(RunConfig.load(config))
    assert result.scorecards == 60 and not result.rejected
    rows: list[dict[str, object]] = pq.read_table(folder / "run" / "scores.parquet").to_pylist()
    return rows


def test_every_report_is_scored_or_unscored_with_a_reason(scores):
    reports = {(row["system"], row["task_id"]) for row in scores}
    assert len(reports) == 30 and {system for system, _ in reports} == set(SYSTEMS)
    for row in scores:
        if row["value"] is None:
            assert row["status"] == "unscored" and row["reason"] in CAUSES
        else:
            assert row["status"] == "scored" and row["value"] == row["value"]


def test_race_scores_both_languages_and_the_reference_is_half(scores):
    rows = [row for row in scores if row["metric"] == "overall"]
    without = {(row["system"], row["task_id"]) for row in rows if row["reason"] == "gold_missing"}
    assert without == {
        ("claude4-sonnet", task) for task in ("62", "72", "82", "92")
    }  # the reference has no report
    overall = {(row["system"], row["task_id"]): row["value"] for row in rows if row["value"] is not None}
    assert len(overall) == 26 and all(0 < value < 1 for value in overall.values())
    assert all(value == 0.5 for (system, _), value in overall.items() if system == "gpt-5")
    assert len({round(value, 6) for value in overall.values()}) > 15


def test_fact_is_unscored_where_cited_pages_are_unread(scores):
    queries = [json.loads(line) for line in shared("golden/race/drb_query.jsonl").read_text().splitlines()]
    language = {str(query["id"]): query["language"] for query in queries}
    reasons = {
        (language[row["task_id"]], row["reason"])
        for row in scores
        if row["protocol"] == "fact" and row["metric"] == "c_acc" and row["value"] is None
    }
    assert {("en", "pages_off"), ("zh", "pages_off")} <= reasons


def test_evaluate_accepts_the_published_folder(tmp_path, capsys):
    data = published(tmp_path / "data")
    config = tmp_path / "adjudge.yaml"
    config.write_text(f"tasks: {data}\nreports: []\nfetch: {{mode: off}}\n")
    code, out, _ = run(
        capsys, "evaluate", config, "--format", "deepresearch-bench", "--protocol", "race", "--out", tmp_path / "run",
        "--store", tmp_path / "store",
    )  # fmt: skip
    assert code == 3 and "4 unscored, gold_missing" in out and "claude4-sonnet" in out
