"""A run and a store written by version 0.1.0 open in every command (tests/old_run, without its leaderboard.html)."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adjudge.engine.statistics import agreement
from adjudge.judges import LexicalJudge
from tests.commands import run
from tests.examples import shipped
from tests.viewing import viewing

ROOT = Path(__file__).parents[1]
OLD = Path("tests/old_run")
QUICKSTART = shipped("quickstart") / "adjudge.yaml"


Adjudge = Callable[..., tuple[int, str, str]]


@pytest.fixture
def adjudge(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Adjudge:
    """Runs a command at the root of the checkout: its exit code, and what it printed."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(agreement, "RESAMPLES", 20)
    return lambda *arguments: run(capsys, *arguments)


def test_old_run_leaderboard_keeps_its_complete_values(tmp_path: Path, adjudge: Adjudge) -> None:
    """What misses nothing is as it was; what misses scores is ranked by today's rules."""
    code, out, error = adjudge("leaderboard", OLD / "run", "--out", tmp_path, "--json")
    assert code == 0, error
    before = standings(json.loads((ROOT / OLD / "run/leaderboard.json").read_text()))
    after = standings(json.loads(out))
    assert before.keys() == after.keys()
    complete = {name for name, row in after.items() if not row["n_unscored"]}
    assert len(complete) > 20
    for name in complete:
        was = before[name]
        spread = (
            [was["low"], was["high"]] if was["low"] < was["high"] else [None, None]
        )  # no variance: no interval
        assert after[name]["value"] == pytest.approx(was["value"]), name
        assert [after[name]["low"], after[name]["high"]] == pytest.approx(spread), name
    assert {name[2]: row["rank"] for name, row in after.items() if name[:2] == ("fact", "c_acc")} == {
        "borealis": 1.0, "atlas": None, "delta": None, "cinder": None,
    }  # fmt: skip


def standings(board: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        (metric["protocol"], metric["metric"], row["system"]): row
        for metric in board["metrics"]
        for row in metric["standings"]
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", OLD / "run", "--task", "cargo-bikes", "--system", "borealis"),
        ("compare", OLD / "run", "atlas", "borealis"),
        ("agreement", OLD / "run", "--other", OLD / "run"),
        ("check", OLD / "run", "--baseline", OLD / "run", "--system", "atlas", "--metric", "race.overall"),
        ("store", "ls", OLD / "store"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_old_run_opens_in_command(arguments: tuple[object, ...], adjudge: Adjudge) -> None:
    code, out, error = adjudge(*arguments, "--json")
    assert code == 0, error
    assert json.loads(out)


async def test_old_run_opens_in_viewer() -> None:
    async with viewing(ROOT / OLD / "run") as reader:
        pages = [path async for path, _, _ in reader.crawl(skip="^leaderboard$")]
    assert len(pages) > 80


def test_old_store_answers_unchanged_questions(
    tmp_path: Path, adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys have changed only as far as questions, prompts and judges have: here the judge is said to be as it was.

    Only RACE's marks, one question per report, are asked again: they are in the published order since.

    Keys of pages are unchanged: only what failed to be read is read again, and what the snapshot lacks never counts.
    """
    as_it_was = msgspec.structs.replace(LexicalJudge.identity, fingerprint="lexical:1")
    monkeypatch.setattr(LexicalJudge, "identity", as_it_was)
    shutil.copytree(ROOT / OLD / "store", tmp_path / "store")
    code, out, error = adjudge(
        "evaluate", QUICKSTART, "--store", tmp_path / "store", "--out", tmp_path / "run", "--json"
    )
    assert code == 3, error
    found = json.loads(out)
    assert (found["from_judge"], found["from_store"]) == (19, 89)
    assert found["pages_read"] == 2
    assert found["pages_from_store"] >= 36  # as many pages, many of them for several reports


@pytest.mark.parametrize("action", [("compact",), ("prune", "--days", "100000")], ids=["compact", "prune"])
def test_old_store_is_rewritten_without_loss(
    tmp_path: Path, action: tuple[str, ...], adjudge: Adjudge
) -> None:
    shutil.copytree(ROOT / OLD / "store", tmp_path / "store")
    before = json.loads(adjudge("store", "ls", tmp_path / "store", "--json")[1])
    name, *options = action
    assert adjudge("store", name, tmp_path / "store", *options)[0] == 0
    after = json.loads(adjudge("store", "ls", tmp_path / "store", "--json")[1])
    assert [table["rows"] for table in after] == [table["rows"] for table in before]
