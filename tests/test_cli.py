"""The command line: exit codes, and one clear line for every error."""

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from codecs import BOM_UTF8
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from aiohttp import web

from adjudge.engine.runs.record import RunRecord
from adjudge.engine.statistics import agreement
from adjudge.scoring.contract.protocol import installed_protocols
from tests.commands import changed, one_line, run
from tests.mock_openai import Call, MockOpenAI, completion
from tests.wheel import ROOT
from tests.worlds import ADJUDGE, lines, text, world


def test_second_run_is_answered_from_the_store(tmp_path, capsys):
    config = world(tmp_path)
    code, out, _ = run(capsys, "evaluate", config)
    assert code == 0 and "system0" in out and "200 asked" in out
    code, out, _ = run(capsys, "evaluate", config)
    assert code == 0 and "0 asked, 200 from the store" in out
    scores = pq.read_table(tmp_path / "run" / "scores.parquet")
    assert scores.column_names == [
        "protocol", "system", "task_id", "sample", "repeat", "metric", "value", "low", "high", "answered", "parts",
        "status", "reason",
    ]  # fmt: skip
    for name in ("run.json", "leaderboard.json", "leaderboard.csv", "leaderboard.html"):
        assert (tmp_path / "run" / name).stat().st_size > 100


def test_json_prints_a_single_document_on_stdout(tmp_path, capsys):
    code, out, _ = run(capsys, "evaluate", world(tmp_path), "--json")
    assert code == 0
    assert json.loads(out)["scorecards"] == 20


def test_serial_and_concurrent_runs_are_equal(tmp_path, capsys):
    config = world(tmp_path)
    run(capsys, "evaluate", config, "--out", tmp_path / "a", "--store", tmp_path / "sa")
    run(capsys, "evaluate", config, "--out", tmp_path / "b", "--store", tmp_path / "sb", "--serial")
    assert pq.read_table(tmp_path / "a" / "scores.parquet") == pq.read_table(
        tmp_path / "b" / "scores.parquet"
    )


def test_repeats_and_samples_get_separate_rows(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=1)
    rows = [
        {"task_id": "0", "system": "system0", "text": text("x", 1), "sample": sample} for sample in (0, 1)
    ]
    lines(tmp_path / "reports" / "system0.jsonl", rows)
    run(capsys, "evaluate", config, "--repeats", 3)
    scores = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    assert {(row["sample"], row["repeat"]) for row in scores} == {(s, r) for s in (0, 1) for r in (0, 1, 2)}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"taks": 1}, "taks"),
        ({"repeats": "many"}, "repeats"),
        ({"repeats": 0}, "repeats"),
        ({"judge": {"backend": "oracle"}}, "judge.backend"),
        ({"judge": "oracle"}, "oracle"),
        ({"judge": {"timeout_s": -1}}, "judge.timeout_s"),
        ({"judge": {"timeout_s": float("inf")}}, "judge.timeout_s"),
        ({"judge": {"retries": -1}}, "judge.retries"),
        ({"judge": {"temperature": -0.5}}, "judge.temperature"),
        ({"judge": {"max_context": 0}}, "judge.max_context"),
        ({"seed": 1 << 64}, "line 10, column 7: not valid YAML: a number beyond 64 bits"),
        ({"prices": {"lexical:1": {"prompt_tokens_per_second": 0}}}, "prompt_tokens_per_second"),
        ({"cluster": {"judge_resources": {"GPU": -1}}}, "judge_resources"),
        ({"fetch": {"timeouts": {"read": float("nan")}}}, "read"),
        ({"judge": {"backend": "openai", "url": "http://127.0.0.1:9/v1"}}, "model"),
        ({"fetch": {"mode": "sometimes"}}, "fetch.mode"),
        ({"fetch": {"mode": "snapshot", "snapshot": "nowhere"}}, "nowhere"),
        ({"fetch": {"limits": {"per_host": 0}}}, "per_host"),
        ({"protocols": ["phrenology"]}, "phrenology"),
        ({"protocols": [{"name": "rubrics", "colour": "red"}]}, "colour"),
        *(({"protocols": [{"name": name, "bogus": 1}]}, "bogus") for name, _ in installed_protocols()),
        ({"protocols": [{"name": "drmi", "modules": []}]}, "modules"),
        ({"protocols": [{"name": [1]}]}, "[1]"),
        ({"protocols": []}, "protocols"),
        ({"protocols": ["rubrics", "rubrics"]}, "once"),
        ({"format": "papyrus"}, "papyrus"),
        ({"tasks": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"reports": ["nowhere/*.jsonl"]}, "nowhere"),
        ({"reports": []}, "reports"),
        ({"prompts": "nowhere"}, "nowhere"),
        ({"store": "nonsense://x"}, "nonsense"),
    ],
)
def test_wrong_configuration_gives_one_line(tmp_path, capsys, settings, named):
    code, out, error = run(capsys, "evaluate", changed(world(tmp_path), **settings))
    assert (code, out) == (2 if "store" not in settings else 1, "")
    assert named in one_line(error)


@pytest.mark.parametrize(
    ("content", "named"),
    [("tasks: [", "YAML"), ("- a list", "mapping"), ("", "mapping"), ("a: \xff", "YAML")],
)
def test_invalid_configuration_file_gives_one_line(tmp_path, capsys, content, named):
    (tmp_path / "bad.yaml").write_bytes(content.encode("latin-1"))
    code, _, error = run(capsys, "evaluate", tmp_path / "bad.yaml")
    assert code == 2 and named in one_line(error)


def test_missing_configuration_or_run_gives_one_line(tmp_path, capsys):
    for command in (
        ["evaluate", tmp_path / "none.yaml"],
        ["plan", tmp_path / "none.yaml"],
        ["leaderboard", tmp_path / "none"],
        ["show", tmp_path / "none", "--task", "1", "--system", "a"],
        ["compare", tmp_path / "none", "a", "b"],
        ["agreement", tmp_path / "none", "--human", tmp_path / "none.csv"],
    ):
        code, _, error = run(capsys, *command)
        assert code == 2 and "none" in one_line(error)


def test_tilde_in_a_configuration_is_the_home_folder(tmp_path, monkeypatch, capsys):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    config = world(tmp_path / "here", store="~/kept/store", out="~/kept/run")
    code, _, error = run(capsys, "evaluate", config)
    assert code == 0 and not error.startswith("adjudge: error"), error
    assert (home / "kept" / "run" / "run.json").is_file() and (home / "kept" / "store").is_dir()
    assert not (tmp_path / "here" / "~").exists()


def test_terminal_of_few_characters_shows_escapes(tmp_path):
    (tmp_path / "zaunkönig.md").write_text(
        "# R\n\nDer Zaunkönig singt [1].\n\n## Quellen\n\n[1] https://a.example/1\n"
    )
    done = subprocess.run(
        [*ADJUDGE, "citations", "zaunkönig.md"],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0 and "zaunk\\xf6nig" in done.stdout and not done.stderr, done.stderr


def test_interrupt_during_import_exits_quietly():
    script = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["adjudge"]
    code = f"""
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "msgspec" or name == "adjudge.engine.commands":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a script runs in the background
sys.meta_path.insert(0, Interrupting())
from {script.replace(":", " import ")}
main()
"""
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_closed_output_pipe_is_not_a_failure(tmp_path, capsys, form):
    run(capsys, "evaluate", world(tmp_path))
    show = ["show", str(tmp_path / "run"), "--task", "1", "--system", "system2"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*ADJUDGE, *show, *form], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_run_without_questions_claims_no_answers(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=1)
    lines(tmp_path / "reports" / "system0.jsonl", [{"task_id": "0", "system": "system0", "text": ""}])
    code, out, _ = run(capsys, "evaluate", config)
    assert code == 0 and "0 asked, 0 from the store;" in out


def test_usage_errors_exit_with_2(capsys):
    assert run(capsys, "judge")[0] == 2
    assert run(capsys, "evaluate")[0] == 2
    assert run(capsys, "--help")[0] == 0


@pytest.mark.parametrize("port", ["99999", "-1", "65536", "0000099999", "1e3", "٣"])
def test_invalid_port_is_a_usage_error(tmp_path, capsys, port):
    for command in (["view", tmp_path], ["serve", world(tmp_path)]):
        code, _, error = run(capsys, *command, "--port", port)
        assert code == 2 and f"'{port}' is not a port" in error


def test_bad_lines_are_named_and_the_rest_is_evaluated(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=3)
    good = json.dumps({"task_id": "0", "system": "system0", "text": text("x", 1)}).encode()
    bad = [
        b"{broken",
        b'{"task_id": "1"}',
        b'{"task_id": "1", "system": "system0", "text": 5}',
        b'{"task_id": "1", "system": "system0", "text": "lone \\ud800 surrogate"}',
        b'{"task_id": "1", "system": "system0", "text": "not \xff UTF-8"}',
        b'{"task_id": "no such task", "system": "system0", "text": "x"}',
        b'{"task_id": "1", "system": "", "text": "x"}',
        b'{"task_id": "1", "system": " ", "text": "x"}',
        b'{"task_id": "1", "system": "system0", "text": "x", "sample": -1}',
        b"[" * 100_000,
        b"null",
    ]
    file = tmp_path / "reports" / "system0.jsonl"
    file.write_bytes(b"\n".join([good, b"", *bad, good]))
    code, _, error = run(capsys, "evaluate", config)
    assert code == 3
    named = [line for line in error.splitlines() if line.startswith("left out: ")]
    assert sorted(int(line.split(":")[2]) for line in named) == list(range(3, 14))
    assert all(str(file) in line for line in named)
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    assert {row["task_id"] for row in rows} == {"0"} and all(row["status"] == "scored" for row in rows)


def test_byte_order_mark_is_ignored(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=2)
    for file in (tmp_path / "tasks.jsonl", tmp_path / "reports" / "system0.jsonl"):
        file.write_bytes(BOM_UTF8 + file.read_bytes())
    assert run(capsys, "evaluate", config)[0] == 0
    assert pq.read_table(tmp_path / "run" / "scores.parquet")["task_id"].unique().to_pylist() == ["0", "1"]


def test_duplicate_rows_merge_and_contradictions_are_errors(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=1)
    row = {"task_id": "0", "system": "system0", "text": text("x", 1)}
    lines(tmp_path / "reports" / "again.jsonl", [row])
    lines(tmp_path / "reports" / "system0.jsonl", [row])
    assert run(capsys, "evaluate", config)[0] == 0
    lines(tmp_path / "reports" / "again.jsonl", [{**row, "text": "another text"}])
    code, _, error = run(capsys, "evaluate", config)
    assert code == 2 and "again.jsonl:1" in one_line(error) and "system0.jsonl:1" in error


def test_empty_and_oversized_reports_get_the_minimum_unjudged(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=3)
    rows = [
        {"task_id": "0", "system": "system0", "text": "  \n "},
        {"task_id": "1", "system": "system0", "text": "word " * 1_000_000},
        {"task_id": "2", "system": "system0", "text": text("x", 2)},
    ]
    lines(tmp_path / "reports" / "system0.jsonl", rows)
    code, out, _ = run(capsys, "evaluate", config, "--json")
    assert code == 0 and json.loads(out)["from_judge"] == 10
    scores = {
        row["task_id"]: row
        for row in pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
        if row["metric"] == "score"
    }
    assert (scores["0"]["status"], scores["0"]["reason"]) == ("scored", "report_empty")
    assert (scores["1"]["status"], scores["1"]["reason"]) == ("scored", "report_too_large")
    assert scores["0"]["value"] == scores["1"]["value"] == pytest.approx(-5 / 25)
    assert scores["2"]["reason"] is None


def test_missing_and_invalid_gold_leave_that_task_unscored(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=3)
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    del tasks[0]["gold"]
    tasks[1]["gold"] = {"rubrics": "not a list"}
    lines(tmp_path / "tasks.jsonl", tasks)
    code, out, _ = run(capsys, "evaluate", config)
    assert code == 3
    scores = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    reasons = {(row["task_id"], row["status"], row["reason"]) for row in scores}
    assert {("0", "unscored", "gold_missing"), ("1", "unscored", "gold_invalid")} <= reasons
    assert all(row["value"] is None for row in scores if row["task_id"] in "01")
    assert "gold_missing" in out


def test_dead_judge_ends_the_run_and_stores_nothing(tmp_path, capsys):
    judge = {"backend": "openai", "url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0}
    code, _, error = run(capsys, "evaluate", world(tmp_path, systems=1, tasks=1, judge=judge))
    assert code == 1 and "127.0.0.1:9" in one_line(error) and "nothing was stored" in error
    assert not list((tmp_path / "store").rglob("*.parquet"))
    record = RunRecord.read(tmp_path / "run")
    assert record.state == "stopped" and record.why in error


def test_show_prints_every_question_from_any_folder(tmp_path, capsys, monkeypatch):
    config = world(tmp_path)
    monkeypatch.chdir(tmp_path)
    run(capsys, "evaluate", changed(config, tasks="tasks.jsonl", store="store", out="run").name)
    code, out, _ = run(capsys, "show", tmp_path / "run", "--task", "1", "--system", "system2")
    assert code == 0 and out.count("RubricPoints") == 10 and "fact delta" in out
    code, out, _ = run(capsys, "show", tmp_path / "run", "--task", "1", "--system", "system2", "--json")
    [card] = json.loads(out)
    assert len(card["questions"]) == 10
    assert all(
        line["outcome"] == f"{line['points']:g} of {line['most']:g}" for line in card["card"]["evidence"]
    )
    monkeypatch.chdir(tmp_path.parent)
    code, out, _ = run(capsys, "show", Path(tmp_path.name, "run"), "--task", "1", "--system", "system2")
    assert code == 0 and out.count("RubricPoints") == 10
    code, _, error = run(capsys, "show", tmp_path / "run", "--task", "1", "--system", "nobody")
    assert code == 2 and "nobody" in one_line(error)


def test_plan_counts_the_questions_and_writes_nothing(tmp_path, capsys):
    config = world(tmp_path)
    code, out, _ = run(capsys, "plan", config, "--json")
    planned = json.loads(out)
    assert code == 0 and planned["questions"] == {"RubricPoints": 200} and planned["stored"] == 0
    assert planned["window"] is None and not planned["window_unsaid"]  # the lexical judge has none
    assert planned["shared_tokens"] > 0.4 * planned["prompt_tokens"] > 0
    assert not (tmp_path / "store").exists() and not (tmp_path / "run").exists()
    run(capsys, "evaluate", config)
    _, out, _ = run(capsys, "plan", config, "--json")
    assert json.loads(out)["stored"] == 200 and json.loads(out)["prompt_tokens"] == 0


def test_plan_rereads_blocked_pages_that_are_now_allowed(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=1, protocols=["fact"], fetch={"mode": "live"})
    text = "The bridge is 300 metres long [1].\n\n## References\n[1] http://127.0.0.1:1/bridge\n"
    lines(tmp_path / "reports" / "system0.jsonl", [{"task_id": "0", "system": "system0", "text": text}])
    run(capsys, "evaluate", config)

    def unread(fetch):
        _, out, _ = run(capsys, "plan", changed(config, fetch=fetch), "--json")
        planned = json.loads(out)
        return planned["pages"], planned["pages_unread"]

    assert unread({"mode": "live"}) == (1, 0)
    assert unread({"mode": "live", "allow": ["127.0.0.1:1"]}) == (1, 1)


def test_plan_reports_what_cannot_be_judged(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=2)
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    del tasks[0]["gold"]
    lines(tmp_path / "tasks.jsonl", tasks)
    file = tmp_path / "reports" / "system0.jsonl"
    file.write_text(file.read_text() + '{"task_id": "no such task", "system": "system0", "text": "x"}\n')
    code, out, error = run(capsys, "plan", config)
    assert code == 3 and "1 gold_missing (gold): add the gold to the task" in " ".join(out.split())
    assert "left out: " in error and "no such task" in error


def test_protocols_chosen_by_name_keep_their_options(tmp_path, capsys):
    rows = [{"criterion": "Says that fact number 3 holds.", "points": 1}]
    protocols = [{"name": "rubrics", "file": str(lines(tmp_path / "criteria.jsonl", rows))}, "fact"]
    config = changed(world(tmp_path, systems=1, tasks=1), protocols=protocols)
    code, out, _ = run(capsys, "plan", config, "--protocol", "rubrics", "--json")
    assert code == 0 and json.loads(out)["questions"] == {"RubricPoints": 11}


def test_unwritable_out_fails_before_any_question(tmp_path, capsys):
    config = world(tmp_path)
    (tmp_path / "file").write_text("")
    code, _, error = run(capsys, "evaluate", config, "--out", tmp_path / "file" / "run")
    assert code == 2 and "out: " in one_line(error)
    assert not (tmp_path / "store").exists()


def test_compare_and_agreement_of_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(agreement, "RESAMPLES", 20)
    config = world(tmp_path)
    run(capsys, "evaluate", config)
    code, out, _ = run(capsys, "compare", tmp_path / "run", "system0", "system1", "--json")
    found = {metric["metric"]: metric for metric in json.loads(out)["metrics"]}
    assert code == 0 and found["score"]["n_used"] == 5
    assert run(capsys, "compare", tmp_path / "run", "system0", "system1")[0] == 0
    rows = [
        {
            "task_id": str(task),
            "system": f"system{system}",
            "rater": rater,
            "metric": "score",
            "value": task + system,
        }
        for task in range(5)
        for system in range(4)
        for rater in ("first", "second")
    ]
    code, out, error = run(
        capsys, "agreement", tmp_path / "run", "--human", lines(tmp_path / "h.jsonl", rows), "--json"
    )
    assert code == 0, error
    assert json.loads(out)[0]["n_raters"] == 2
    code, out, _ = run(capsys, "agreement", tmp_path / "run", "--other", tmp_path / "run")
    assert code == 0 and "score" in out


def test_doctor_checks_the_configuration(tmp_path, capsys):
    code, out, _ = run(capsys, "doctor", world(tmp_path))
    assert code == 0 and "store" in out and "judge" in out
    judge = {"backend": "openai", "url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0}
    code, out, _ = run(capsys, "doctor", changed(world(tmp_path), judge=judge))
    assert code == 1 and "start it, or correct judge: url" in out


async def test_doctor_suggests_thinking_for_a_truncated_answer(tmp_path, capsys):
    async def thinks(mock: MockOpenAI, call: Call) -> web.Response:
        return completion("<think>Hm", finish_reason="length")

    async with MockOpenAI(fault=thinks) as mock:
        config = world(tmp_path, judge={"backend": "openai", "url": mock.url, "model": "m"})
        code, out, _ = await asyncio.to_thread(run, capsys, "doctor", config)
    assert code == 1 and "thinks before it answers" in out and "-> set judge: thinking: true" in out


def test_doctor_checks_every_panel_member_and_server(tmp_path, capsys):
    servers = {
        "backend": "openai",
        "model": "m",
        "retries": 0,
        "urls": [f"http://127.0.0.1:{n}/v1" for n in (9, 10)],
    }
    config = world(tmp_path, judge={"backend": "panel", "members": ["lexical", servers]})
    code, out, _ = run(capsys, "doctor", config, "--json")
    found = [finding["found"] for finding in json.loads(out) if finding["what"] == "judge"]
    assert code == 1 and found[0] == "lexical needs no server"
    assert [line.partition(",")[0] for line in found[1:]] == [
        "http://127.0.0.1:9/v1",
        "http://127.0.0.1:10/v1",
    ]
    code, out, _ = run(capsys, "doctor", changed(world(tmp_path), judge="vllm:/no/such/model"))
    assert code == 1 and "/no/such/model: no such folder" in out
