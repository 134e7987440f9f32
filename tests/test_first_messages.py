"""What a newcomer writes first is read as it is meant, or answered with what to write instead."""

import json
import sys
from pathlib import Path

import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.judges.errors import JudgeError
from tests.commands import one_line, run
from tests.mock_openai import MockOpenAI

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
        (
            {"judge": {"url": "localhost:8000/v1"}},
            "judge: url: 'localhost:8000/v1' must look like http://127",
        ),
        (
            {"judge": {"urls": ["http://a/v1", "http://h:8000x/v1"]}},
            "judge: url: 'http://h:8000x/v1' must look",
        ),
        (
            {"judge": {"backend": "lexical", "url": "http://a/v1", "model": "m"}},
            "judge: backend lexical asks no server; write backend: openai, or leave url out",
        ),
        (
            {"judges": {"race": {"model": "m"}}},
            "judges.race: a model needs what runs it; add url: of its server",
        ),
        (
            {"judge": {"members": ["lexical", {"backend": "lexical", "urls": ["http://a/v1"]}]}},
            "judge: member 2: backend lexical asks no server",
        ),
        ({"judge": {"max_inflight": 3}}, "judge.max_inflight: unknown key; use 'max_in_flight'"),
        ({"judge": {"backend": "gpt"}}, "'lexical' or 'openai' or 'panel' or 'vllm'"),
        ({"judge": "gpt-5"}, "write lexical, openai:http://HOST:PORT/v1#MODEL or vllm:MODEL_OR_FOLDER"),
        ({"protocols": ["RACE"]}, "protocols: unknown protocol 'RACE'; use 'race'\n"),
        ({"protocols": {"fact": {"extraction": "markers"}}}, "write {name: fact, OPTION: VALUE}"),
        ({"protocols": [{"file": "criteria.yaml"}]}, "protocols: an entry has no name; write {name: fact,"),
        ({"judge": 1}, "judge: must be a text or a mapping, not a whole number"),
        ({"fetch": {"mode": "of"}}, "fetch.mode: 'of' is unknown; use 'live' or 'off' or 'snapshot'"),
        ({"fetch": "of"}, "fetch.mode: 'of' is unknown; use 'live' or 'off' or 'snapshot'"),
        ({"protocols": [{"name": "race", "variant": "pointwize"}]}, "'pointwise'"),
        (
            {"store": "criteria.yaml"},
            "criteria.yaml is a file; name a folder, which is made where there is none",
        ),
        ({"store": "tasks.jsonl/x/y"}, "tasks.jsonl is a file; name a folder"),
        ({"reports": [{"system": "wren"}]}, "reports[0]: lacks path:, which must be given"),
        ({"samples": "two"}, "samples: must be a whole number, not a text"),
        ({"samples": 0}, "samples: must be a whole number of at least 1, not 0"),
        ({"max_cost": -2}, "max_cost: must be a number above 0, not -2"),
        ({"min_answered": 80}, "min_answered: must be a number of at most 1, not 80"),
        ({"select": {"limit": -1}}, "select.limit: must be a whole number of at least 1, not -1"),
        (
            {"judge": {"members": [{"max_in_flight": -3}]}},
            "judge.members[0].max_in_flight: must be a whole number of at least 1, not -3",
        ),
        ({"fetch": True}, "fetch.mode: 'true' is unknown; use 'live' or 'off' or 'snapshot'"),
        ({"protocols": ["rase"]}, "protocols: unknown protocol 'rase'; use 'race'"),
        ({"protocols": ["bottomline"]}, "one of your own needs its package installed: pip install -e FOLDER"),
        (
            {"format": "deepresearchbench"},
            "format: unknown format 'deepresearchbench'; use 'deepresearch-bench' or",
        ),
        ({"tasks": "task.jsonl"}, "task.jsonl does not exist; give a file or folder of tasks"),
        ({"tasks": "reports"}, "reports is a folder without tasks.jsonl; give the file of tasks"),
        ({"reports": ["report/*.jsonl"]}, "report/*.jsonl matches no file; correct the path or pattern"),
        (
            {"protocols": [{"name": "rubrics", "file": "reports"}]},
            "cannot be read: Is a directory; give a file of criteria",
        ),
        ({"out": "criteria.yaml"}, "criteria.yaml cannot be written: File exists; choose a folder"),
        (
            {"protocols": ["race"], "fetch": {"mode": "snapshot", "snapshot": "pages"}},
            "pages/index.jsonl: No such file or directory; a snapshot is a folder with an index.jsonl",
        ),
        ({"qwertz": 1}, "others, none like it:"),
        (
            {"tasks": "tasks.md"},
            "tasks.md: .md files cannot hold tasks; write JSON Lines",
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


def test_a_folder_of_pages_is_read_in_place_of_the_web():
    """A snapshot without a mode was left aside, and the web was read."""

    def mode(**fetch):
        return RunConfig.of({"tasks": "tasks.jsonl", "fetch": fetch}).fetch.mode

    assert mode(snapshot="pages") == "snapshot" and mode() == mode(snapshot=None) == "live"
    assert mode(mode="off", snapshot="pages") == "off"


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        (
            "tasks.jsonl",
            b"",
            'tasks.jsonl holds no task; write {"id": "1", "prompt": "..."} on a line for each',
        ),
        (
            "tasks.jsonl",
            b'{"id": "1", "instructions": "What?"}\n',
            "no 'prompt', but 'id', 'instructions'; call the column of the prompt 'prompt'",
        ),
        (
            "tasks.jsonl",
            b'{"task_id": "1", "key": "2", "prompt": "What?"}\n',
            "no 'id', but 'task_id', 'key'; call the column of the id 'id'",
        ),
        (
            "tasks.jsonl",
            b'{"id": 123456789012345678901234567890, "prompt": "What?"}\n',
            "tasks.jsonl:1: invalid row: 'id' has more digits than a number may have; write it in quotes",
        ),
        (
            "tasks.jsonl",
            b'{"id": "1",}\n',
            "tasks.jsonl:1: not JSON; a file of JSON Lines has one object per line",
        ),
        (
            "tasks.jsonl",
            b'{"id": "1", "prompt": "What?", "gold": {"rubrics": [{"criterion": "x", "points": NaN}]}}\n',
            "tasks.jsonl:1: NaN is not a number in JSON; write a number, or null for none",
        ),
        (
            "reports/wren.jsonl",
            b'{"task_id": "1", "system": "wren", "text": "NaN", "answer": -Infinity}\n',
            "wren.jsonl:1: Infinity is not a number in JSON; write a number",
        ),
        (
            "tasks.jsonl",
            "\ufeff{}".encode("utf-16"),
            "tasks.jsonl:1: row is not in UTF-8, at byte 1; save the file",
        ),
        ("reports/wren.jsonl", b"", "reports/wren.jsonl holds no report; add files of reports"),
        (
            "reports/wren.jsonl",
            b'{"task_id": "9", "system": "wren", "text": "Red."}\n',
            "wren.jsonl:1: unknown task '9'; ",
        ),
        ("reports/wren.jsonl", b'{"task_id": "1", "text": "r\xe9d"}\n', "at byte 28; save the file as UTF-8"),
        (
            "reports/wren.jsonl",
            b'{"nr": "1", "system": "wren", "text": "Red."}\n',
            "no 'task_id'; say which of 'nr', 'system', 'text' is the task_id: fields: {task_id: NAME}",
        ),
        (
            "reports/wren.jsonl",
            b'{"task_id": "1", "system": "a", "text": "x"}\n{"task_id": "1", "system": "a", "text": "y"}\n',
            "wren.jsonl:2: system 'a', task '1', sample 0 was given before with other content",
        ),
        ("criteria.yaml", b"criterion: x\n", 'write criteria as - {criterion: "...", points: 1}'),
        (
            "criteria.yaml",
            b"- {criterion: x, points: two}\n",
            "criteria.yaml:1: Expected `float | null`, got `str` in",
        ),
        ("adjudge.yaml", b"", "adjudge.yaml: is empty; write a mapping of settings"),
        ("adjudge.yaml", b"- tasks\n", "adjudge.yaml: holds a list; write a mapping of settings"),
        ("adjudge.yaml", b"tasks.jsonl\n", "adjudge.yaml: holds a single value; write a mapping"),
        (
            "adjudge.yaml",
            b'{"id": 1}\n{"id": 2}\n',
            "line 2, column 1: not valid YAML: expected '<document start>'",
        ),
        (
            "adjudge.yaml",
            b"judge:\n\tbackend: lexical\n",
            "line 2, column 1: not valid YAML: found character '\\t'",
        ),
        ("adjudge.yaml", b"judge:\n\tbackend: lexical\n", "indent with spaces, not with tabs"),
        ("adjudge.yaml", b"reports: C: reports\n", "column 11: not valid YAML"),
        ("adjudge.yaml", b"reports: C: reports\n", "put quotation marks around a value that has a colon"),
        ("adjudge.yaml", b"reports: *.jsonl\n", "put quotation marks around a value that begins with * or &"),
        ("adjudge.yaml", b"reports: @here\n", "put quotation marks around the value"),
        ("adjudge.yaml", b"out: caf\xe9\n", "adjudge.yaml: not valid YAML: it is not in UTF-8; save it"),
    ],
)
def test_faulty_files_are_answered_with_what_to_write(tmp_path, capsys, name, body, said):
    file = config(tmp_path)
    (tmp_path / name).write_bytes(body)
    code, _, error = run(capsys, "evaluate", file)
    assert code == 2 and said in one_line(error)


@pytest.mark.parametrize("head", [b"\xef\xbb\xbf", b""])
def test_tables_with_semicolons_and_byte_order_marks_are_read(tmp_path, capsys, head):
    (tmp_path / "tasks.csv").write_bytes(head + b"id;prompt\n1;What colour is the kite?\n")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/wren.csv").write_bytes(head + b"task_id;system;text\n1;wren;The kite is red.\n")
    file = config(tmp_path, tasks="tasks.csv", reports="reports/wren.csv")
    file.write_bytes(head + file.read_bytes())
    assert run(capsys, "evaluate", file)[0] == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "none.yaml",
            "none.yaml: cannot be read: No such file or directory; correct the path, or have `adjudge init`",
        ),
        ("reports", "reports: cannot be read: Is a directory; `adjudge init "),
        ("tasks.jsonl", "tasks.jsonl: a .jsonl file is not a configuration; `adjudge init "),
        ("reports.XLSX", "reports.XLSX: a .xlsx file is not a configuration; `adjudge init "),
        ("notes.odt", "notes.odt: a .odt file is not a configuration; `adjudge init "),
        ("", "cannot be read: Is a directory; give "),
        ("old", "this is a run, which `adjudge leaderboard "),
        ("adjudge.yml", "adjudge.yaml\n"),
    ],
)
def test_other_places_than_a_configuration_are_answered(tmp_path, capsys, given, said):
    config(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run.json").write_text("{}")
    for name in ("reports.XLSX", "notes.odt"):
        (tmp_path / name).write_bytes(b"PK")
    code, _, error = run(capsys, "evaluate", tmp_path / given)
    assert code == 2 and said in one_line(error)


def test_unknown_metrics_are_answered_with_those_of_the_run(tmp_path, capsys):
    run(capsys, "evaluate", config(tmp_path))
    for words in (["check", "--min", "rubrics.scor=3"], ["leaderboard", "--metric", "rubrics.scor"]):
        code, _, error = run(capsys, words[0], tmp_path / "run", *words[1:])
        assert code == 2 and "unknown metric 'rubrics.scor'; use 'rubrics.score'" in one_line(error)


def test_labels_that_are_not_there_are_answered(tmp_path, capsys):
    run(capsys, "evaluate", config(tmp_path))
    missing = tmp_path / "none.jsonl"
    code, _, error = run(capsys, "leaderboard", tmp_path / "run", "--labels", missing)
    assert code == 2
    assert f"labels: {missing} cannot be read: No such file or directory; correct the path" in one_line(error)


def test_document_that_cannot_be_read_is_named_without_a_line(tmp_path, capsys):
    file = config(tmp_path, reports="reports")
    (tmp_path / "reports/lark").mkdir()
    (tmp_path / "reports/lark/1.pdf").write_bytes(b"%PDF-1.4 broken")
    code, _, error = run(capsys, "evaluate", file)
    assert code == 3 and "reports/lark/1.pdf: a PDF that does not open" in error


def test_judges_that_cannot_be_used_say_why(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("KITE_KEY", raising=False)
    judge = {"backend": "openai", "url": "http://127.0.0.1:9/v1", "model": "m", "patience_s": 1}
    for changes, said in (
        ({"api_key_env": "KITE_KEY"}, "the environment variable KITE_KEY is not set; set it to its key"),
        ({}, "cannot connect to 127.0.0.1:9: "),
    ):
        code, _, error = run(capsys, "evaluate", config(tmp_path, judge=judge | changes))
        assert code == 1 and said in one_line(error)


async def test_unknown_models_are_answered_with_those_of_the_server(tmp_path):
    async with MockOpenAI(serves="kite-7b") as server:
        judge = {"backend": "openai", "url": server.url, "model": "kite-8b"}
        with pytest.raises(JudgeError, match=r"serves kite-7b; set judge: model to what it serves"):
            await evaluate_async(RunConfig.load(config(tmp_path, judge=judge)))


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


@pytest.mark.parametrize(
    "rubrics",
    [
        ["The kite is red."],
        [{"criterion": "The kite is red.", "weight": 2}],
        {"criterion": "Red.", "points": 1},
    ],
)
def test_rubrics_of_tasks_are_read_as_those_of_rollouts(tmp_path, capsys, rubrics):
    task = {"id": "1", "prompt": "What colour is the kite?", "gold": {"rubrics": rubrics}}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
    code, out, _ = run(capsys, "evaluate", config(tmp_path, protocols=["rubrics"]))
    assert code == 0 and "1.00" in out


def test_lines_that_are_no_json_say_what_json_lines_are(tmp_path, capsys):
    (tmp_path / "tasks.jsonl").write_text("What colour is the kite?\n")
    code, _, error = run(capsys, "evaluate", config(tmp_path))
    assert code == 2 and "tasks.jsonl:1: not JSON; a file of JSON Lines has one object per line" in error


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


def test_word_without_its_reader_names_what_to_install(tmp_path, capsys, monkeypatch):
    (tmp_path / "reports/wren").mkdir(parents=True)
    (tmp_path / "reports/wren/1.docx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "mammoth", None)
    code, _, error = run(capsys, "evaluate", config(tmp_path, reports="reports/wren"))
    assert code == 2
    assert "1.docx: needs mammoth; install it with: pip install 'adjudge[files]'" in one_line(error)


@pytest.mark.parametrize("cell", ['""', ""])
def test_a_row_whose_system_is_empty_is_left_out(tmp_path, capsys, cell):
    body = f"task_id,model,text\n1,wren,The kite is red.\n1,{cell},It is blue.\n"
    file = config(tmp_path, reports=["reports/kites.csv"])
    (tmp_path / "reports/kites.csv").write_text(body)
    code, out, error = run(capsys, "evaluate", file)
    assert code == 3 and "kites.csv:3: invalid row: no value in the column 'model'; write the sys" in error
    assert "kites " not in out
    (tmp_path / "reports/kites.csv").write_text(body.replace("1,wren,The kite is red.\n", ""))
    file = config(tmp_path, reports=[{"path": "reports/kites.csv", "system": "tern"}], out="other")
    assert run(capsys, "evaluate", file)[0] == 0


def test_names_that_look_alike_are_said(tmp_path, capsys):
    file = config(tmp_path)
    names = ("wren", "wren ", "k\u00f6nig", "ko\u0308nig", "K\u00f6nig")
    rows = [{"task_id": "1", "system": name, "text": "The kite is red."} for name in names]
    (tmp_path / "reports/wren.jsonl").write_text("\n".join(map(json.dumps, rows)))
    _, _, error = run(capsys, "plan", file)
    assert "reports: 'wren' and 'wren ' are different systems, but their names look alike" in error
    assert r"'ko\u0308nig' and 'k\xf6nig' are different systems" in error and "'K" not in error


def test_a_report_for_no_task_is_left_out_with_its_line(tmp_path, capsys):
    file = config(tmp_path)
    with (tmp_path / "reports/wren.jsonl").open("a") as reports:
        reports.write('{"task_id": "9", "system": "wren", "text": "Red."}\n')
    code, out, error = run(capsys, "evaluate", file)
    assert (
        code == 3 and "wren" in out and "reports/wren.jsonl:2: unknown task '9'" in "".join(error.split("\n"))
    )


def test_places_of_a_run_are_answered_with_the_run(tmp_path, capsys):
    file = config(tmp_path)
    run(capsys, "evaluate", file)
    for given, said in (
        (tmp_path, f"pass {tmp_path / 'run'}\n"),
        (file, "pass the folder of its run, which out: names\n"),
        (tmp_path / "reports", "pass a run's folder\n"),
        (tmp_path / "runn", f"pass {tmp_path / 'run'}\n"),
        (tmp_path / "kites", "pass a run's folder\n"),
    ):
        code, _, error = run(capsys, "leaderboard", given)
        assert code == 2 and error.endswith(said) and one_line(error)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("check", "--min-scored", "all"), "--min-scored: 'all' is not a number;"),
        (("check", "--max-drop", "nan"), "--max-drop: 'nan' is not a number;"),
        (
            ("check", "--baseline", "run", "--system", "wrens"),
            "system: 'wrens' is not in the run; use 'wren'",
        ),
        (("export", "--format", "spaces", "--out", "x"), "format: unknown format 'spaces'; use 'space'"),
        (
            ("agreement", "--human", "none.csv"),
            "human: none.csv cannot be read: No such file or directory; correct",
        ),
        (("agreement", "--human", "short.csv"), "task_id, system, rater, metric and value"),
    ],
)
def test_unfit_options_are_answered(tmp_path, capsys, monkeypatch, command, said):
    run(capsys, "evaluate", config(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.csv").write_text("system,metric,value\nwren,score,1\n")
    code, _, error = run(capsys, command[0], "run", *command[1:])
    assert code == 2 and said in one_line(error)


def test_repeats_that_are_no_number_are_answered(tmp_path, capsys):
    code, _, error = run(capsys, "evaluate", config(tmp_path), "--repeats", "two")
    assert code == 2 and "--repeats: 'two' is not a whole number above 0;" in one_line(error)


def test_reports_without_citations_are_said_to_have_none(tmp_path, capsys):
    file = config(tmp_path, protocols=["fact"])
    assert "no report has a citation mark or an address" in run(capsys, "plan", file)[1]
    assert "fact: no report cites a source" in run(capsys, "evaluate", file)[1]
    (tmp_path / "reports" / "wren.jsonl").write_text(
        '{"task_id": "1", "system": "wren", "text": "The kite is red (https://kites.example/red)."}\n'
    )
    assert "cites a source" not in run(capsys, "evaluate", file)[1]
