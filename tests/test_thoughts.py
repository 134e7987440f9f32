"""Thoughts that a model's server left in a report are not judged."""

import json

import pytest

from adjudge.engine.formats.dataset import InputFile
from adjudge.engine.formats.own import read
from adjudge.judges.marks import THOUGHTS
from adjudge.scoring.text.thoughts import parted


@pytest.mark.parametrize(
    ("text", "report"),
    [
        ("<think>\nSay red.\n</think>\n\nIt is red.", "It is red."),
        ("Say red.\n</think>\nIt is red.", "It is red."),
        (
            "<scratch_pad>\nSay red.\n</scratch_pad>\n<reflection>Is it?</reflection>\nIt is red.",
            "It is red.",
        ),
        ("<THINKING>Say red.</THINKING>It is red.", "It is red."),
        ("<seed:think>Say red.</seed:think>It is red.", "It is red."),
        (
            "Say red.</longcat_think>\n<tool_call:opensource>{}</tool_call:opensource>\nIt is red.",
            "It is red.",
        ),
        ("It is red.\n\n<tool_call>{}</tool_call>\n", "It is red."),
        ("<think>a</think>\nIt is\n<think>b</think>\nred.", "It is\n\nred."),
        ("<think>\nnever ends", ""),
        ("<search>red</search>\n<information>It is blue.</information>\nIt is red.", "It is red."),
        ("<think>\u25c1 [t [T [/</think>It is red.", "It is red."),
        ("Say `red`</think>It is red.", "It is red."),
        ("`a` or `b`\n<think>Say `</think>` or red.</think>It is red.", "`a` or `b`\nIt is red."),
        ("`</think>` and\n<think>Say red.</think>It is red.", "`</think>` and\nIt is red."),
        ("<think>Say </search> red.</think>It is red.", "It is red."),
        ("<think>Say <search> red.</think>It is red.", "It is red."),
        ("<think>Say <think> red.</think>It is red.", "It is red."),
        ("<think>Say red.</think>It </search>is</search> red.", "It </search>is</search> red."),
    ],
)
def test_thoughts_are_no_part_of_the_report(text, report):
    found, aside = parted(text)
    assert found == report and aside
    assert all(one in text for one in aside)


@pytest.mark.parametrize("written", [str, str.lower, str.upper])
@pytest.mark.parametrize(("opening", "closing"), THOUGHTS)
def test_tokens_of_every_family_mark_thoughts(opening, closing, written):
    opening, closing = written(opening), written(closing)
    for text in (f"{opening}Say red.{closing}\n\nIt is red.", f"Say red.{closing}It is red."):
        assert parted(text)[0] == "It is red."
    assert parted(f"{opening}Say red.") == ("", (f"{opening}Say red.",))
    assert parted(f"Models write `{opening}`.") == (f"Models write `{opening}`.", ())


@pytest.mark.parametrize(
    "text",
    [
        "It is red.",
        "Models write `<think>` and `</think>`.",
        "```\n<think>\nx\n</think>\n```\nIt is red.",
        "Models write <think> before they answer.",
        "It is red.\n<think>\nnever ends",
        "It calls <search>red</search> first.",
        "A<search>red</search> it is.",
        "So far beyond its first line, it calls <search>red</search> first.",
    ],
)
def test_mentions_stay(text):
    assert parted(text) == (text, ())


def test_the_trace_keeps_thoughts(tmp_path):
    (tmp_path / "tasks.jsonl").write_text('{"id": "1", "prompt": "Colour?"}\n')
    row = {"task_id": "1", "system": "wren", "text": "<think>Say red.</think>\nIt is red."}
    (tmp_path / "wren.jsonl").write_text(json.dumps(row) + "\n")
    file = InputFile(tmp_path / "wren.jsonl")
    report = read(tmp_path / "tasks.jsonl", [file]).reports[0].load()
    assert (report.text, json.loads(bytes(report.trace))) == ("It is red.", ["<think>Say red.</think>"])
    assert file.thoughtful == {("1", "wren", 0)}
