"""`adjudge ls`: the runs in a folder, the newest first, whatever state they are in."""

import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from adjudge.engine.commands.evaluate import evaluate, evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import LimitReached
from adjudge.engine.runs.listed import runs_in
from adjudge.engine.runs.record import RunRecord
from tests.commands import changed, one_line, run
from tests.mock_openai import MockOpenAI
from tests.worlds import world

OLD = Path(__file__).parent / "old_run" / "run"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, the second below the first's neighbour, and one of an earlier version."""
    top = tmp_path_factory.mktemp("runs")
    for name in ("first", "deeper/second"):
        config = world(top.parent / "world", systems=2, tasks=3)
        evaluate(RunConfig.load(config, out=str(top / name), store=str(top / ".adjudge")))
    shutil.copytree(OLD, top / "old")
    return top


def test_runs_are_listed_with_who_leads(folder, capsys):
    code, out, _ = run(capsys, "ls", folder, "--json")
    second, first, old = json.loads(out)
    assert code == 0 and [Path(one["folder"]).name for one in (second, first, old)] == [
        "second",
        "first",
        "old",
    ]
    headline, last = first["headlines"]
    board = json.loads((folder / "first" / "leaderboard.json").read_text())
    [ranked] = [one for one in board["metrics"] if one["headline"]]
    best, second_best = ranked["standings"]
    assert (last["system"], last["low"]) == (second_best["system"], second_best["low"])
    assert (headline["protocol"], headline["metric"]) == ("rubrics", ranked["metric"])
    assert (headline["system"], headline["value"]) == (best["system"], best["value"] * ranked["scale"])
    assert (first["state"], first["judge"], first["systems"], first["tasks"]) == ("finished", "lexical", 2, 3)
    assert old["protocols"] and not old["headlines"] and old["commit"] == ""
    code, out, _ = run(capsys, "ls", folder)
    assert code == 0 and "3 runs" in out and out.count(f"{headline['value']:.2f}") == 2
    assert run(capsys, "ls", folder, "--markdown")[1].startswith("|")


def test_nobody_leads_where_nothing_is_ranked(tmp_path, capsys):
    config = world(tmp_path / "world", systems=2, tasks=3)
    (tmp_path / "world/reports/system0.jsonl").write_text("")
    (tmp_path / "world/reports/system1.jsonl").write_text(
        json.dumps({"task_id": "1", "system": "system1", "text": "Nothing."}) + "\n"
    )
    evaluate(RunConfig.load(config, out=str(tmp_path / "runs/few")))
    [listed] = runs_in(tmp_path / "runs")
    assert all(one.rank is None for one in listed.headlines) and listed.headlines
    assert "not ranked" in run(capsys, "ls", tmp_path / "runs")[1]


def test_stopped_and_unreadable_runs_are_listed(folder, tmp_path, capsys):
    shutil.copytree(folder / "first", tmp_path / "stopped")
    record = json.loads((tmp_path / "stopped" / "run.json").read_text())
    stopped = record | {"state": "running", "due": {"scorecards": 6, "systems": {}, "tasks": {}}}
    (tmp_path / "stopped" / "run.json").write_text(json.dumps(stopped))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    known, broken = runs_in(tmp_path)
    assert (known.state, known.why, known.headlines) == ("stopped", "its process was killed", ())
    assert broken.state == "unreadable" and str(tmp_path / "broken") in broken.why
    code, out, _ = run(capsys, "ls", tmp_path)
    assert code == 0 and "unreadable" in out and "not the record of a run" in " ".join(out.split())


async def test_what_a_run_cost_is_listed(tmp_path):
    price = {"cost_per_million_prompt_tokens": 100.0, "cost_per_million_completion_tokens": 300.0}
    async with MockOpenAI() as server:
        judge = {"backend": "openai", "url": server.url, "model": "mock", "max_in_flight": 1}
        config = world(tmp_path, systems=1, tasks=2, judge=judge, prices={"mock": price})

        async def cost_of(name: str, **settings: object) -> float:
            run_config = RunConfig.load(
                changed(config, judge_check="off", **settings), out=str(tmp_path / name)
            )
            with suppress(LimitReached):
                await evaluate_async(run_config)
            return RunRecord.read(tmp_path / name).cost

        stopped = await cost_of("runs/stopped", max_questions=1)
        whole = await cost_of("runs/whole", max_questions=None, store="other")
        again = await cost_of("runs/again")
    [effort] = RunRecord.read(tmp_path / "runs/whole").effort.values()
    assert whole == pytest.approx((effort.prompt_tokens * 100 + effort.completion_tokens * 300) / 1e6)
    assert 0 < stopped < whole and again == 0
    listed = runs_in(tmp_path / "runs")
    assert [one.cost for one in listed] == [again, whole, stopped]


def test_folder_without_runs_and_no_folder(tmp_path, capsys):
    code, out, _ = run(capsys, "ls", tmp_path)
    assert (code, out) == (0, f"no runs in {tmp_path}\n")
    assert run(capsys, "ls", tmp_path, "--json")[1] == "[]\n"
    code, _, error = run(capsys, "ls", tmp_path / "none")
    assert code == 2 and "not a folder" in one_line(error)


def test_record_names_the_commit_it_was_started_at(tmp_path, monkeypatch):
    config = world(tmp_path, systems=1, tasks=1)
    monkeypatch.chdir(tmp_path)

    def git(*words: str) -> str:
        named = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
        return subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()

    def started_at() -> str:
        evaluate(RunConfig.load(config))
        return RunRecord.read(tmp_path / "run").commit

    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert started_at() == ""
    git("init", "--quiet")
    git("add", "adjudge.yaml", "tasks.jsonl", "reports")
    git("commit", "--quiet", "--message", "Begin")
    head = git("rev-parse", "HEAD")[:12]
    assert started_at() == head
    config.write_text(config.read_text() + "# changed\n")
    assert started_at() == f"{head}-dirty"


def test_several_runs_have_no_other_one_beside_them(folder, capsys):
    code, _, error = run(capsys, "view", folder, "--other", folder / "first")
    assert code == 2
    assert "several runs" in one_line(error)
