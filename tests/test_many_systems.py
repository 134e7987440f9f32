"""Leaderboards of many systems: every pair and share of a rank is in Parquet, other files hold what is read."""

import json
from itertools import combinations, pairwise
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.exits import DONE
from adjudge.engine.runs.board import Detail, Leaderboard, Pair, RankShare
from adjudge.engine.statistics import listing
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.statistics.placement import Statistics
from adjudge.engine.tables.files import write_leaderboard
from benchmarks.leaderboard import write_run
from tests.commands import run


class Few(Statistics):
    """Statistics of few resamples: which pairs are listed needs none."""

    resamples = 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("many") / "run"
    made.mkdir()
    write_run(made, 110, 20, unscored=0.002)
    return made


def detail_of(board: Leaderboard) -> Detail:
    (metric,) = board.metrics
    assert metric.detail is not None
    return metric.detail


def test_what_is_left_out_of_the_list_is_in_the_columns(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = build_leaderboard([folder], Few())
    monkeypatch.setattr(listing, "MOST_PAIRS", 10**6)
    listed = build_leaderboard([folder], Few())
    few, every = detail_of(many), detail_of(listed)
    assert few.every_pair is not None and few.every_rank is not None
    assert tuple(Pair(**row) for row in few.every_pair.to_pylist()) == every.pairs
    assert tuple(RankShare(**row) for row in few.every_rank.to_pylist()) == every.ranks
    assert few.ranks == () and few.more_pairs == len(every.pairs) - len(few.pairs)
    assert many.metrics[0].standings == listed.metrics[0].standings
    assert every.every_pair is None and every.more_pairs == 0

    order = [row.system for row in many.metrics[0].standings if row.rank is not None]
    tier = {row.system: row.tier for row in many.metrics[0].standings}
    best = {tier[name]: name for name in reversed(order)}
    assert [(pair.a, pair.b) for pair in every.pairs] == list(combinations(order, 2))
    beside = set(pairwise(order))
    expected = beside | {(best[tier[name]], name) for name in order if best[tier[name]] != name}
    assert {(pair.a, pair.b) for pair in few.pairs} == expected


def test_files_grow_with_the_systems_and_name_where_the_rest_is(folder: Path, tmp_path: Path) -> None:
    board = build_leaderboard([folder], Few())
    write_leaderboard(board, tmp_path)
    pairs = pq.read_table(tmp_path / "leaderboard.pairs.parquet").to_pylist()
    ranks = pq.read_table(tmp_path / "leaderboard.ranks.parquet").to_pylist()
    ranked = sum(row.rank is not None for row in board.metrics[0].standings)
    assert len(pairs) == ranked * (ranked - 1) // 2 and pairs[0]["protocol"] == "race"
    assert {row["system"] for row in ranks} == {row["a"] for row in pairs} | {row["b"] for row in pairs}
    said = (tmp_path / "leaderboard.md").read_text()
    assert "leaderboard.pairs.parquet" in said and len(said) < 100_000
    read = msgspec.json.decode((tmp_path / "leaderboard.json").read_bytes(), type=Leaderboard)
    assert detail_of(read).pairs == detail_of(board).pairs and detail_of(read).every_pair is None
    write_leaderboard(read, tmp_path / "again")  # a leaderboard of files alone has no columns to write
    assert not (tmp_path / "again" / "leaderboard.pairs.parquet").exists()


def test_json_of_the_command_is_that_of_the_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed, said = run(capsys, "leaderboard", folder, "--json", "--out", tmp_path / "out")
    assert code == DONE, said
    assert json.loads(printed) == json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    assert (tmp_path / "out" / "leaderboard.pairs.parquet").exists()
