"""`adjudge citations`: every mark, entry and address of a report, and what became of it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.scoring.text.accounted import account
from adjudge.scoring.text.citations import parse
from tests.citation_forms import FORMS
from tests.commands import one_line, run
from tests.forms_table import table
from tests.wheel import ROOT
from tests.worlds import lines, world

REPORT = """# Report

Snow is white [1]. Grass is green [7]. Rain (see https://a.example/rain_(water)) falls.

The sky is [blue](https://a.example/sky).

## References
[1] Snow. https://a.example/snow
[2] Ice. https://a.example/ice
"""


def test_account_says_what_became_of_everything():
    found = account(REPORT)
    assert next((pair.statement, pair.url) for pair in found.pairs) == (
        "Snow is white.",
        "https://a.example/snow",
    )
    assert (found.marks, found.resolved, found.urls, found.unresolved) == (4, 3, 4, ("[7]",))
    assert found.entries_unused == ("[2] https://a.example/ice",)
    assert found.urls_unused == ("https://a.example/ice",) and found.lost == 2
    assert account("No source at all.").lost == 0


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_pairs_are_those_that_fact_takes(text):
    found, parsed = account(text), parse(text)
    assert {(pair.statement, pair.url) for pair in found.pairs} <= {(t.fact, t.url) for t in parsed.triplets}
    assert (found.marks, found.unresolved) == (parsed.marks, parsed.unresolved)
    assert found.resolved + len(found.unresolved) == found.marks


@given(st.text(alphabet="a [](1)2^:/.hтps\n—https://x.ex/", max_size=400))
def test_any_text_has_an_account(text):
    found = account(text)
    assert 0 <= found.resolved <= found.marks and found.urls >= len(found.urls_unused)


def test_files_of_any_form_have_an_object_each(tmp_path, capsys):
    (tmp_path / "a.md").write_text(REPORT)
    rows = [{"task_id": str(number), "system": "S", "text": REPORT} for number in range(2)]
    lines(tmp_path / "b.jsonl", rows)
    code, out, _ = run(capsys, "citations", tmp_path / "a.md", tmp_path / "b.jsonl", "--json")
    found = json.loads(out)
    assert code == 0 and [one["report"] for one in found] == [
        str(tmp_path / "a.md"), f"{tmp_path}/b.jsonl:1", f"{tmp_path}/b.jsonl:2",
    ]  # fmt: skip
    keys = {"report", "marks", "resolved", "urls", "pairs", "unresolved", "entries_unused", "urls_unused"}
    assert all(keys <= one.keys() and one["pairs"] == found[0]["pairs"] for one in found)
    code, out, _ = run(capsys, "citations", tmp_path / "a.md")
    assert code == 0 and "Snow is white." in out and "1 mark leads nowhere: [7]" in out


def test_configuration_gives_a_line_for_each_system(tmp_path, capsys):
    config = world(tmp_path, systems=2, tasks=3, protocols=["fact"])
    rows = [{"task_id": "0", "system": "blind", "text": "Snow is white [9]."}]
    lines(tmp_path / "reports" / "blind.jsonl", rows)
    code, out, _ = run(capsys, "citations", config)
    assert code == 0 and "system0" in out and "blind: 100% of marks and addresses" in out
    code, out, _ = run(capsys, "plan", config)
    assert code == 0 and "blind: 100% of marks and addresses" in out and "system0: " not in out


def test_what_is_no_report_is_said(tmp_path, capsys):
    code, _, error = run(capsys, "citations", tmp_path / "none.md")
    assert code == 2 and "none.md" in one_line(error)
    (tmp_path / "a.docx").write_bytes(b"PK\x03\x04broken")
    code, _, error = run(capsys, "citations", tmp_path / "a.docx")
    assert code == 2 and "a.docx" in error
    (tmp_path / "b.md").write_text(REPORT)
    code, out, error = run(capsys, "citations", tmp_path / "a.docx", tmp_path / "b.md", "--json")
    assert code == 3 and "left out" in error and len(json.loads(out)) == 1


def test_docs_show_the_forms_that_are_tested():
    assert table() in (ROOT / "docs" / "citations.md").read_text(encoding="utf-8")


def test_table_of_questions_needs_no_list_of_tasks(tmp_path: Path, capsys) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("question,model,report\nHow long?,heron,It is long.\nWhen?,heron,In 1931.\n")
    code, out, error = run(capsys, "citations", file, "--json")
    assert code == 0, error
    assert [(one["system"], one["task_id"]) for one in json.loads(out)] == [
        ("heron", "How long?"),
        ("heron", "When?"),
    ]
