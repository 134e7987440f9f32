"""A run is one object, and a record: what reads it finds everything from anywhere, and writes nothing."""

import json
import os
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

import adjudge
from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.run import Run
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.commands import run as command
from tests.worlds import world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two systems on tasks of two domains, all its paths relative to the folder that it was started in."""
    made, before = tmp_path_factory.mktemp("made"), Path.cwd()
    world(made, systems=2, tasks=4)
    os.chdir(made)
    try:
        evaluate(RunConfig.load("adjudge.yaml"))
    finally:
        os.chdir(before)
    return made / "run"


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_paths_of_a_run_lead_there_from_anywhere(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = Run.open(os.path.relpath(folder))
    assert run.written.config.store == "store"
    assert Path(run.config.store).resolve() == (folder.parent / "store").resolve()
    assert len(run.cards) == 8 and len(run.judgments) and len(run.scores)
    assert {item.system for item in run.items} == {"system0", "system1"}
    assert {card.system for card in run.cards_of("system0", "1")} == {"system0"}


def test_empty_tables_are_tables(folder: Path, tmp_path: Path) -> None:
    none = adjudge.open(folder)
    assert len(none.pages) == 0 and len(none.evidence)
    world(tmp_path, systems=1, tasks=1)
    for file in (tmp_path / "reports").iterdir():
        file.write_text(json.dumps({"task_id": "0", "system": "system0", "text": ""}))
    config = RunConfig.load(tmp_path / "adjudge.yaml", store=str(tmp_path / "s"), out=str(tmp_path / "r"))
    evaluate(config)
    asked = adjudge.open(tmp_path / "r")
    assert len(asked.judgments) == 0
    assert asked.judgments.schema.equals(none.judgments.schema)
    record = msgspec.structs.replace(Run.open(folder).record, run="another", state="running")
    scores = Run(folder, msgspec.structs.replace(record, began_in=None)).scores
    assert len(scores) == 0 and set(scores.column_names) == set(none.scores.column_names)


def test_pages_have_one_schema_empty_or_not(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)
    read = Run.open("tests/old_run/run").pages
    empty = adjudge.open(folder).pages
    assert isinstance(empty, pa.Table) and len(read)
    assert empty.schema.equals(read.schema)


@pytest.mark.parametrize(
    "look",
    [
        ("--task", "1"),
        ("--system", "system0"),
        ("--by", "domain"),
        ("--metric", "pass_rate"),
        ("--markdown",),
        ("--json",),
    ],
)
def test_look_at_a_run_leaves_its_folder_alone(folder: Path, tmp_path: Path, capsys, look) -> None:
    before = contents(folder)
    code, out, error = command(capsys, "leaderboard", folder, *look)
    assert code == 0 and out, error
    assert "leaderboard.html" not in out
    code, _, error = command(capsys, "leaderboard", folder, *look, "--out", tmp_path / "look")
    assert code == 0 and "leaderboard.json" in contents(tmp_path / "look"), error
    assert contents(folder) == before


def test_table_of_a_part_is_not_shown_as_the_runs(folder: Path, tmp_path: Path, capsys) -> None:
    """Earlier versions wrote any look over the run's own leaderboard."""
    own = Run.open(folder).board
    assert own is not None
    kept = contents(folder)
    for look in (("--task", "1"), ("--system", "system0"), ("--by", "domain")):
        command(capsys, "leaderboard", folder, *look, "--out", tmp_path / "look")
        (folder / "leaderboard.json").write_bytes((tmp_path / "look" / "leaderboard.json").read_bytes())
        opened = OpenRun(Run.open(folder))
        assert opened.run.board is None, look
        assert opened.leaderboard() == own == adjudge.open(folder).leaderboard
        (folder / "leaderboard.json").unlink()
        assert OpenRun(Run.open(folder)).leaderboard() == own
        assert not (folder / "leaderboard.json").exists()
        (folder / "leaderboard.json").write_bytes(kept["leaderboard.json"])
    assert contents(folder) == kept


def test_leaderboard_of_an_earlier_version_is_computed_anew(monkeypatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)
    run = Run.open("tests/old_run/run")
    assert run.board is None and run.record.due is None
    shown = OpenRun(run).leaderboard()
    assert "groupings" not in (run.folder / "leaderboard.json").read_text()
    assert shown.runs == (run.record.run,)
    assert [grouping.attribute for grouping in shown.groupings] == ["language", "domain"]


def test_published_run_keeps_gold_to_itself(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(Rubrics, "withheld", "encrypted", raising=False)
    run = Run.open(folder).published()
    assert run.withheld == {"rubrics": "encrypted"} and Run.open(folder).withheld == {}
    assert {line.what for card in run.cards for line in card.evidence} == {
        "The evidence is not published: it tells the gold of rubrics, which is encrypted."
    }
    assert run.cards_of("system0", "1")[0].scores == Run.open(folder).cards_of("system0", "1")[0].scores
    assert list(run.items) == []
