"""What a newcomer writes first is read as it is meant, or answered with what to write instead."""

import json
from pathlib import Path

import pytest

from tests.commands import one_line, run

SETTINGS = {
    "tasks": "tasks.jsonl",
    "reports": ["reports/*.jsonl"],
    "protocols": [{"name": "rubrics", "file": "criteria.yaml"}],
    "judge": "lexical",
    "fetch": {"mode": "off"},
    "out": "run",
}


def config(folder: Path, **changes: object) -> Path:
    files = {
        "tasks.jsonl": '{"id": "1", "prompt": "What colour is the kite?"}\n',
        "reports/wren.jsonl": '{"task_id": "1", "system": "wren", "text": "The kite is red."}\n',
        "criteria.yaml": '- {criterion: "The kite is red.", points: 1}\n',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        if not (folder / name).exists():
            (folder / name).write_text(text)
    file = folder / "adjudge.yaml"
    file.write_text(json.dumps(SETTINGS | changes))
    return file


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"judge": {"backend": "openai", "base_url": "http://x/v1"}},
            "judge.base_url: unknown key; use 'url'",
        ),
        ({"judge": {"model_name": "m"}}, "judge.model_name: unknown key; use 'model'"),
        ({"judge": {"max_inflight": 3}}, "judge.max_inflight: unknown key; use 'max_in_flight'"),
        ({"judge": {"backend": "gpt"}}, "'lexical' or 'openai' or 'panel' or 'vllm'"),
        ({"judge": "gpt-5"}, "write lexical, openai:http://HOST:PORT/v1#MODEL or vllm:MODEL_OR_FOLDER"),
        ({"judge": 1}, "judge: must be a text or a mapping, not a whole number"),
        ({"fetch": {"mode": "of"}}, "fetch.mode: 'of' is unknown; use 'live' or 'off' or 'snapshot'"),
        ({"fetch": "of"}, "fetch.mode: 'of' is unknown; use 'live' or 'off' or 'snapshot'"),
        ({"protocols": [{"name": "race", "variant": "pointwize"}]}, "'pointwise'"),
        ({"reports": [{"system": "wren"}]}, "reports[0]: lacks path:, which must be given"),
        ({"samples": "two"}, "samples: must be a whole number, not a text"),
        ({"qwertz": 1}, "others, none like it:"),
        (
            {"tasks": "tasks.md"},
            "tasks.md: .md is no kind of file that tasks are read from; write JSON Lines",
        ),
    ],
)
def test_mistakes_are_answered_with_what_to_write(tmp_path, capsys, settings, said):
    (tmp_path / "tasks.md").write_text("What colour is the kite?\n")
    code, _, error = run(capsys, "evaluate", config(tmp_path, **settings))
    assert code == 2 and said in one_line(error)


@pytest.mark.parametrize(
    "settings",
    [
        {"fetch": "off"},
        {"fetch": False},
        {"reports": "reports"},
        {"reports": {"path": "reports", "system": "wren"}},
        {"protocols": {"name": "rubrics", "file": "criteria.yaml"}},
    ],
)
def test_short_forms_are_read(tmp_path, capsys, settings):
    assert run(capsys, "evaluate", config(tmp_path, **settings))[0] == 0


def test_criteria_say_what_they_are_made_of(tmp_path, capsys):
    (tmp_path / "criteria.yaml").write_text('- {text: "The kite is red.", weight: 2}\n')
    code, _, error = run(capsys, "evaluate", config(tmp_path))
    assert code == 2 and "criteria.yaml:1" in error and "a mapping of criterion, points" in error


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tasks.csv", "id,question\n1,What colour is the kite?\n"),
        ("tasks.csv", 'task_id,query,gold\n1,What colour?,"{""race"": {}}"\n'),
        ("tasks.json", '[{"question_id": 1, "question": "What colour is the kite?"}]'),
        ("tasks.jsonl", '{"task_id": 1, "question": "What colour is the kite?"}\n'),
    ],
)
def test_tasks_with_usual_names_are_read(tmp_path, capsys, name, text):
    (tmp_path / name).write_text(text)
    assert run(capsys, "evaluate", config(tmp_path, tasks=name))[0] == 0


def test_lines_that_are_no_json_say_what_json_lines_are(tmp_path, capsys):
    (tmp_path / "tasks.jsonl").write_text("What colour is the kite?\n")
    code, _, error = run(capsys, "evaluate", config(tmp_path))
    assert code == 2 and "tasks.jsonl:1: not JSON, of which JSON Lines have an object on every line" in error


@pytest.mark.parametrize(
    ("prompt", "language"),
    [
        ("请比较 GPT-4 与 Claude 的价格，并给出建议。", "zh"),
        ("How long is the Great Wall (长城)?", "en"),
        ("凧の色を教えてください。", "en"),
    ],
)
def test_language_of_a_prompt_is_found(tmp_path, prompt, language):
    from adjudge.engine.formats.own import read

    (tmp_path / "tasks.jsonl").write_text(json.dumps({"id": "1", "prompt": prompt}) + "\n")
    assert read(tmp_path / "tasks.jsonl", []).tasks["1"].language == language


def test_race_names_the_variants_without_reference(tmp_path, capsys):
    code, _, error = run(capsys, "evaluate", config(tmp_path, protocols=["race"]))
    assert code == 3 and "reference" in error and "variant: pointwise and variant: vanilla need none" in error


def test_a_file_that_is_cut_off_or_broken_costs_only_itself(tmp_path, capsys):
    for name, body in (
        ("cut.csv", b'task_id,system,text\n1,finch,"The kite is red.\n1,lark,The kite'),
        ("broken.parquet", b"PAR1broken"),
    ):
        (tmp_path / "reports").mkdir(exist_ok=True)
        (tmp_path / "reports" / name).write_bytes(body)
        code, out, error = run(capsys, "evaluate", config(tmp_path, reports="reports", out=name))
        assert code == 3 and name in error and "cannot be read as" in error and "wren" in out
        (tmp_path / "reports" / name).unlink()


def test_a_quotation_mark_inside_of_a_cell_is_a_sign(tmp_path, capsys):
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/wren.csv").write_text(
        'task_id,system,text\n1,wren,It is 5" long\n1,lark,"A ""kite"""\n'
    )
    assert run(capsys, "evaluate", config(tmp_path, reports="reports/wren.csv"))[0] == 0
