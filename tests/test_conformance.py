"""The conformance runner: the golden cases pass, wrong numbers fail, and no file is skipped."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conformance.__main__ import main, run_folder
from tests.conformance.case import compare, difference
from tests.shared_data import GOLDEN, shared

FOLDERS = ["dr3", "drmi", "fact", "livedrbench", "race", "rigorous", "stats"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_golden_cases_pass(folder):
    passes(GOLDEN / folder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_published_cases_pass(folder):
    passes(shared(f"golden/{folder}"))


def passes(folder: Path) -> None:
    outcomes = run_folder(folder)
    assert outcomes
    assert [outcome.failures for outcome in outcomes] == [[]] * len(outcomes)
    assert all(outcome.total for outcome in outcomes)


def test_wrong_numbers_fail(tmp_path, capsys):
    shutil.copytree(GOLDEN / "stats", tmp_path / "stats")
    file = tmp_path / "stats" / "drb_table12.json"
    table = json.loads(file.read_text(encoding="utf-8"))
    table["rows"][3]["cohens_dz_t_over_sqrt_n"] += 1e-8
    file.write_text(json.dumps(table), encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "stats/drb_table12.json 29/30" in printed and "Gemini vs Doubao: d" in printed
    assert "stats/human_consistency.json 6/6" in printed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nobody_knows_me.json", "{}"),
        ("drb_table12.json", "{"),
        ("drb_table12.json", '{"rows": []}'),
        ("drb_table12.json", "[]"),
        ("human_consistency.json", '{"human_scores_task_report_rater": "?"}'),
    ],
)
def test_uncheckable_file_fails(tmp_path, capsys, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert main([str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == [{"file": name, "passed": 0, "total": 1}]


def test_data_files_are_not_cases(tmp_path, capsys):
    for name in ("INDEX.md", "README.md", "onyx.expected.json"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert main([str(tmp_path)]) == 2
    assert main([str(tmp_path / "gone")]) == 2
    assert "no case files" in capsys.readouterr().err


def test_differences_are_named():
    assert compare("case", {"a": [1, 2.0]}, {"a": [1.0, 2 + 5e-10]})[1]
    assert difference({"a": [1, 2.1]}, {"a": [1, 2]}) == ".a[1]: 2.1, expected 2"
    for actual, expected in (
        (1, True),
        (True, 1),
        (float("nan"), float("nan")),
        ([1], [1, 1]),
        ("1", 1),
        (None, 0),
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 1}, {"a": 1}),
    ):
        assert difference(actual, expected)
