"""Housekeeping of real stores."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from adjudge.engine.errors import StoreError
from adjudge.engine.store import JudgmentStore, PageStore, Place, compaction, upkeep
from adjudge.engine.store.journal import Catalog
from adjudge.engine.store.part import SCHEMA_VERSION
from adjudge.engine.store.place import housekeeping
from adjudge.engine.store.scorecards import SCORECARDS, score_table
from adjudge.engine.store.upkeep import compact, contents, prune
from tests.commands import one_line, run
from tests.stores import QUESTION, cards, judgment, opened, parts
from tests.tools import page
from tests.worlds import world


async def filled(folder: Path, *batches: list) -> Place:
    for batch in batches:
        store = JudgmentStore(Place.of(str(folder)))
        for row in batch:
            store.put(row)
        await store.close()
    return Place.of(str(folder))


async def test_compaction_merges_parts_and_every_answer_stays_the_same(tmp_path):
    batches = [
        [judgment(key, f"answer {part}", at=part) for key in range(part, part + 5)] for part in range(6)
    ]
    place = await filled(tmp_path, *batches)
    before = await opened(tmp_path)
    expected = {key: await before.get(judgment(key).key, QUESTION) for key in range(12)}
    done = {row.table: row for row in compact(place)}
    assert (done["judgments"].parts_before, done["judgments"].parts_after) == (6, 1)
    assert (done["judgments"].rows_before, done["judgments"].rows_after) == (30, 10)
    after = await opened(tmp_path)
    assert {key: await after.get(judgment(key).key, QUESTION) for key in range(12)} == expected


async def test_reader_open_before_compaction_can_finish(tmp_path):
    place = await filled(tmp_path, [judgment(1)], [judgment(2)])
    reader = await opened(tmp_path)
    compact(place)
    assert await reader.get(judgment(2).key, QUESTION) == judgment(2)
    assert len(parts(tmp_path)) == 3


async def test_replaced_parts_are_deleted_a_day_later(tmp_path, monkeypatch):
    place = await filled(tmp_path, [judgment(1)], [judgment(2)])
    compact(place)
    assert [row.deleted for row in compact(place)] == [0, 0, 0] and len(parts(tmp_path)) == 3
    monkeypatch.setattr(compaction, "KEPT_SECONDS", 0)
    assert next(row.deleted for row in compact(place) if row.table == "judgments") == 2
    assert len(parts(tmp_path)) == 1
    assert await (await opened(tmp_path)).get(judgment(1).key, QUESTION) == judgment(1)


async def test_failure_is_dropped_only_where_an_answer_exists(tmp_path):
    failures = [judgment(1, None, "judge_timeout", at=1), judgment(2, None, "judge_timeout", at=1)]
    place = await filled(
        tmp_path, failures, [judgment(1, "late", at=2), judgment(2, None, "judge_timeout", at=2)]
    )
    compact(place)
    live = [name for name in parts(tmp_path) if name.name.endswith("rewritten.parquet")]
    rows = sorted(pq.read_table(live[0]).to_pylist(), key=lambda row: row["key"])
    assert [(row["reason"], row["answer"]) for row in rows] == [
        (None, '{"text":"late"}'),
        ("judge_timeout", None),
    ]


async def test_pruning_selects_by_age_and_by_judge(tmp_path):
    now = time.time_ns() // 1000
    place = await filled(tmp_path, [judgment(1, at=now), judgment(2, at=now - 10 * 86_400_000_000)])
    prune(place, days=5)
    store = await opened(tmp_path)
    assert await store.get(judgment(1).key, QUESTION) is not None
    assert await store.get(judgment(2).key, QUESTION) is None
    prune(place, judge="another")
    assert (await opened(tmp_path)).rows == 1
    prune(place, judge="judge")
    assert (await opened(tmp_path)).rows == 0


async def test_pruning_by_age_and_judge_drops_rows_matching_both(tmp_path):
    now = time.time_ns() // 1000
    rows = [judgment(1, at=now), judgment(2, at=now - 10 * 86_400_000_000)]
    place = await filled(tmp_path, rows)
    assert [row.rows_after for row in prune(place, days=5, judge="another")] == [2]
    assert [row.rows_after for row in prune(place, days=100, judge="judge")] == [2]
    assert [row.rows_after for row in prune(place, days=5, judge="judge")] == [1]
    assert await (await opened(tmp_path)).get(rows[0].key, QUESTION) is not None


async def test_page_without_a_time_is_not_old(tmp_path, capsys):
    place = Place.of(str(tmp_path))
    store = PageStore(place, "snapshot")
    store.put("http://a.test/1", page("http://a.test/1", text="Undated."))
    await store.close()
    found = {table.table: table for table in contents(place)}["pages"]
    assert (found.rows, found.oldest, found.newest) == (1, None, None)
    assert "1970" not in run(capsys, "store", "ls", tmp_path)[1]
    assert {row.table: row.rows_after for row in prune(place, days=3650)}["pages"] == 1


@pytest.mark.parametrize("days", ["-1", "0", "nan", "inf", "many"])
def test_pruning_requires_a_positive_number_of_days(tmp_path, capsys, days):
    run(capsys, "evaluate", world(tmp_path))
    code, _, error = run(capsys, "store", "prune", tmp_path / "store", "--days", days)
    assert code == 2 and f"--days: '{days}' is not a number above 0" in error
    _, out, _ = run(capsys, "store", "ls", tmp_path / "store", "--json")
    assert json.loads(out)[0]["rows"] == 200


async def test_contents_count_by_judge_and_reason(tmp_path):
    place = await filled(tmp_path, [judgment(1), judgment(2, None, "judge_refused")])
    found = {table.table: table for table in contents(place)}
    assert found["judgments"].rows == 2 and found["judgments"].kinds == {"judge": 2}
    assert found["judgments"].reasons == {"judge_refused": 1} and found["pages"].rows == 0


def test_store_commands_work(tmp_path, capsys):
    run(capsys, "evaluate", world(tmp_path))
    code, out, _ = run(capsys, "store", "ls", tmp_path / "store", "--json")
    assert code == 0 and json.loads(out)[0]["kinds"] == {"lexical:3": 200}
    assert run(capsys, "store", "ls", tmp_path / "store")[0] == 0
    assert run(capsys, "store", "compact", tmp_path / "store")[0] == 0
    code, _, error = run(capsys, "store", "prune", tmp_path / "store")
    assert code == 2 and "--days" in error
    assert run(capsys, "store", "prune", tmp_path / "store", "--of", "lexical:3")[0] == 0
    code, out, _ = run(capsys, "store", "ls", tmp_path / "store", "--json")
    assert json.loads(out)[0]["rows"] == 0


@pytest.mark.parametrize("action", [["ls"], ["compact"], ["prune", "--days", "1"]])
def test_invalid_store_is_an_error_that_names_it(tmp_path, capsys, action):
    (tmp_path / "file.csv").write_text("a,b\n")
    (tmp_path / "folder").mkdir()
    for name, said in (
        ("nowhere", "no store at {}; "),
        ("file.csv", "{} is a file"),
        ("folder", "no store at {}; "),
    ):
        code, out, error = run(capsys, "store", action[0], tmp_path / name, *action[1:])
        assert (code, out) == (2, "") and said.replace("{}", str(tmp_path / name)) in one_line(error)


@pytest.mark.parametrize("days", [0, 10_000])
async def test_housekeeping_of_an_empty_store_does_nothing(tmp_path, days):
    place = Place.of(str(tmp_path / "none"))
    assert all(row.rows_before == 0 for row in [*compact(place), *prune(place, days=days)])


async def test_contents_report_times_tokens_and_schema_versions(tmp_path):
    place = await filled(
        tmp_path, [judgment(1, at=1_000_000), judgment(2, at=3_000_000)], [judgment(3, at=2)]
    )
    found = {table.table: table for table in contents(place)}
    row = found["judgments"]
    assert (row.oldest, row.newest) == (2e-6, 3.0) and row.versions == {str(SCHEMA_VERSION): 2}
    assert row.tokens["prompt_tokens"] == 3 * judgment(1).usage.prompt_tokens
    assert (found["pages"].oldest, found["pages"].versions) == (None, {})


async def test_compaction_keeps_parts_written_meanwhile(tmp_path, monkeypatch):
    place = await filled(tmp_path, [judgment(1)], [judgment(2)])
    compact(place)
    await filled(tmp_path, [judgment(3)])
    monkeypatch.setattr(compaction, "KEPT_SECONDS", -1)
    listed = compaction.read_catalog
    written = tmp_path / "elsewhere"
    await filled(written, [judgment(4)])

    def then_another_writes(folder: Place) -> Catalog:
        found = listed(folder)
        if folder.uri.endswith("judgments"):
            for part in parts(written):
                shutil.copy(part, tmp_path / "judgments")
        return found

    monkeypatch.setattr(compaction, "read_catalog", then_another_writes)
    compact(place)
    monkeypatch.undo()
    store = await opened(tmp_path)
    for key in (1, 2, 3, 4):
        assert await store.get(judgment(key).key, QUESTION) == judgment(key)


def test_rewrites_of_equal_parts_double_no_scorecards(tmp_path, monkeypatch):
    """Two owners of one lease, each unaware of the other: what both replace counts once, and nothing is lost."""
    place = cards(tmp_path, "a", "b")
    before = compaction.read_catalog(place / "scores")
    compact(place)
    cards(tmp_path, "c")
    later = compaction.read_catalog(place / "scores")
    unaware = Catalog(
        later.versions,
        [*before.live, *(name for name in later.live if "rewritten" not in name)],
        [],
        {},
        [],
        {},
    )
    with monkeypatch.context() as patch:
        patch.setattr(
            compaction, "read_catalog", lambda folder: unaware if folder.uri.endswith("scores") else before
        )
        patch.setattr(upkeep, "TABLES", (SCORECARDS,))
        compact(place)
    assert score_table(place, "run")["system"].to_pylist() == ["a", "b", "c"]
    assert len(compaction.read_catalog(place / "scores").void) == 1
    monkeypatch.setattr(compaction, "KEPT_SECONDS", -1)
    for _ in range(3):
        compact(place)
        assert score_table(place, "run")["system"].to_pylist() == ["a", "b", "c"]
    assert len((place / "scores").files()) == 1


def test_deleted_parts_do_not_bring_older_ones_back(tmp_path, monkeypatch):
    place = cards(tmp_path, "a", "b")
    compact(place)
    cards(tmp_path, "c")
    compact(place)
    (first,) = [name for name in compaction.read_catalog(place / "scores").replaced_by if "rewritten" in name]
    (place / "scores").delete(first)
    assert score_table(place, "run")["system"].to_pylist() == ["a", "b", "c"]
    monkeypatch.setattr(compaction, "KEPT_SECONDS", -1)
    compact(place)
    assert score_table(place, "run")["system"].to_pylist() == ["a", "b", "c"]


async def test_reader_of_deleted_parts_finds_what_replaced_them(tmp_path, monkeypatch):
    place = await filled(tmp_path, [judgment(1)], [judgment(2)])
    reader = await opened(tmp_path)
    compact(place)
    monkeypatch.setattr(compaction, "KEPT_SECONDS", -1)
    compact(place)
    assert len(parts(tmp_path)) == 1
    keys = [judgment(key).key for key in (1, 2)]
    assert reader.at_hand(keys, [QUESTION] * 2) == [None, None]
    assert [await reader.get(key, QUESTION) for key in keys] == [judgment(1), judgment(2)]
    assert reader.at_hand(keys, [QUESTION] * 2) == [judgment(1), judgment(2)]


def far(folder: Path) -> Place:
    """A store that looks like an object store."""
    return Place("s3://far", SubTreeFileSystem(str(folder), LocalFileSystem()), "store")


@pytest.mark.parametrize("where", [lambda folder: Place.of(str(folder)), far], ids=["local", "far"])
def test_housekeeping_takes_turns(tmp_path, monkeypatch, where):
    monkeypatch.setattr("adjudge.engine.store.place.RETRY_SECONDS", 0.01)
    place, holding, most = where(tmp_path), [], []

    def work() -> None:
        with housekeeping(place) as renew:
            holding.append(1)
            most.append(len(holding))
            renew()
            time.sleep(0.02)
            holding.pop()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(8)]:
            done.result()
    assert most == [1] * 8


def test_lease_of_a_dead_owner_is_free(tmp_path):
    script = (
        "import os, sys; from adjudge.engine.store import Place; from adjudge.engine.store.place import housekeeping\n"
        "with housekeeping(Place.of(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, tmp_path], check=False).returncode == -signal.SIGKILL
    with housekeeping(Place.of(str(tmp_path))):
        pass


def test_expired_lease_of_an_object_store_is_free(tmp_path, monkeypatch):
    place = far(tmp_path)
    place.write("dead.lease", [b"lease"])
    os.utime(tmp_path / "store" / "dead.lease", (1, 1))
    with housekeeping(place) as renew:
        monkeypatch.setattr("adjudge.engine.store.place.EXPIRY_SECONDS", -1)
        with pytest.raises(StoreError, match="lease expired"):
            renew()
    assert not list(tmp_path.rglob("*.lease"))


def as_version_1(folder: Path) -> None:
    """Rewrite the page parts in `folder` as version 1 did: without a size."""
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path).drop_columns(["size"])
        pq.write_table(table.replace_schema_metadata({b"adjudge.schema": b"1"}), path, row_group_size=32)


async def test_store_of_the_first_schema_is_read_and_upgraded(tmp_path):
    place = Place.of(str(tmp_path))
    store = PageStore(place, "live")
    for number in range(50):
        store.put(f"http://a.test/{number}", page(f"http://a.test/{number}", text=f"Page {number}."))
    await store.close()
    as_version_1(tmp_path / "pages")
    assert {table.table: table.versions for table in contents(place)}["pages"] == {"1": 1}

    async def read() -> list[tuple[str, int]]:
        opened = PageStore(place, "live")
        await opened.open()
        found = [await opened.get(f"http://a.test/{number}") for number in range(50)]
        return [(one.text, one.size) for one in found]

    expected = [(f"Page {number}.", 0) for number in range(50)]
    assert await read() == expected
    compact(place)
    assert {table.table: table.versions for table in contents(place)}["pages"] == {str(SCHEMA_VERSION): 1}
    assert await read() == expected
    prune(place, days=36_500)
    assert await read() == expected
