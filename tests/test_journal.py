"""The journal of a table: what a kill leaves behind becomes a part, once, whatever the moment."""

import asyncio
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from adjudge.engine.errors import StoreError
from adjudge.engine.store import JudgmentStore, Place, compaction
from adjudge.engine.store.journal import Journal, journals, read_rows
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.scorecards import SCORECARDS, ScorecardStore, run_cards, score_table
from adjudge.engine.store.upkeep import compact, contents
from adjudge.scoring.contract.scorecard import Bounds, Scorecard
from tests.stores import LONG, QUESTION, journal_files, judgment, killed, opened, parts, stored_keys


async def write_one_more(folder: Path, key: int) -> None:
    store = await opened(folder)
    store.put(judgment(key))
    await store.close()


async def test_rows_of_a_killed_writer_are_read_then_taken_in(tmp_path):
    folder = tmp_path / "store"
    await killed(folder, judgment(1), judgment(2))
    reader = await opened(folder)
    assert await reader.get(judgment(2).key, QUESTION) == judgment(2)
    assert len(journal_files(folder)) == 1 and not parts(folder)
    assert {found.table: found.rows for found in contents(Place.of(str(folder)))}["judgments"] == 2
    name = journal_files(folder)[0].name[1:].replace(".journal", ".parquet")
    await write_one_more(folder, 3)
    assert not journal_files(folder) and name in [part.name for part in parts(folder)]
    assert stored_keys(folder) == [1, 2, 3]
    assert await reader.get(judgment(1).key, QUESTION) == judgment(1)


async def test_scorecards_of_a_killed_writer_are_read_back(tmp_path):
    """Every column, also those that only some scorecards have."""
    alone = Scorecard(
        protocol="race",
        system="A",
        task_id="1",
        sample=2,
        repeat=3,
        scores={"overall": 0.5, "insight": None},
        status="unscored",
        reason="judge_timeout",
        bounds={"overall": Bounds(0.4, 0.6, 3, 4)},
    )
    compared = msgspec.structs.replace(alone, rival="B", status="scored", reason=None)
    live, place = tmp_path / "live", Place.of(str(tmp_path / "store"))
    store = ScorecardStore(Place.of(str(live)), "run", flush_seconds=LONG)
    await store.open()
    for number, card in enumerate((alone, compared)):
        store.put(card, number)
    shutil.copytree(live, tmp_path / "store")
    await store.close()
    assert run_cards(place, "run") == [alone, compared]
    assert score_table(place, "run").equals(score_table(Place.of(str(live)), "run"))


async def test_journal_cut_at_every_byte_keeps_its_whole_rows(tmp_path):
    folder = tmp_path / "store"
    whole = await killed(folder, *(judgment(key) for key in range(4)))
    path = journal_files(folder)[0]
    counts = []
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        keys = [int.from_bytes(row.key, "big") for row in read_rows(path, JUDGMENTS)]
        assert keys == list(range(len(keys)))
        counts.append(len(keys))
    assert counts == sorted(counts) and counts[-2:] == [3, 4] and set(counts) == {0, 1, 2, 3, 4}
    path.write_bytes(whole[:-1])
    await write_one_more(folder, 9)
    assert stored_keys(folder) == [0, 1, 2, 9]


async def test_kill_between_rename_and_unlink_doubles_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "store"
    whole = await killed(folder, judgment(1), judgment(2))
    path = journal_files(folder)[0]
    monkeypatch.setattr(compaction, "KEPT_SECONDS", -1)
    for step in ("written", "taken in", "compacted", "deleted", "compacted again"):
        if step == "written":
            await write_one_more(folder, 3)
        elif step != "taken in":
            await write_one_more(folder, len(step))
            compact(Place.of(str(folder)))
        path.write_bytes(whole)  # as if its deletion had never happened
        assert stored_keys(folder).count(1) == 1
        await write_one_more(folder, 50)
        assert stored_keys(folder).count(1) == 1 and not path.exists()


async def test_openings_at_once_take_a_journal_in_once(tmp_path):
    folder = tmp_path / "store"
    await killed(folder, *(judgment(key) for key in range(50)))
    await asyncio.gather(*(write_one_more(folder, 100 + number) for number in range(4)))
    assert stored_keys(folder) == [*range(50), 100, 101, 102, 103]
    assert not journal_files(folder)


async def test_journal_of_a_live_writer_is_read_and_left_alone(tmp_path):
    writer = await opened(tmp_path, flush_seconds=LONG)
    writer.put(judgment(1))
    other = await opened(tmp_path)
    assert await other.get(judgment(1).key, QUESTION) == judgment(1)
    writer.put(judgment(2))
    await other.refresh()
    assert await other.get(judgment(2).key, QUESTION) == judgment(2)
    other.put(judgment(3))
    await other.flush()
    assert len(journal_files(tmp_path)) == 1
    writer.put(judgment(4))
    await writer.close()
    await other.refresh()
    assert [await other.get(judgment(key).key, QUESTION) for key in (1, 2, 4)] == [
        judgment(key) for key in (1, 2, 4)
    ]
    await other.close()
    assert stored_keys(tmp_path) == [1, 2, 3, 4] and not journal_files(tmp_path)


async def test_earlier_journal_that_is_locked_keeps_later_ones(tmp_path):
    """A part says that it follows all earlier ones of its writer, so they are written in order."""
    folder = tmp_path / "store"
    await killed(folder, judgment(1))
    first = journal_files(folder)[0]
    begun, writer, _ = first.name.split("-")
    second = first.with_name(f"{begun}-{writer}-000001.journal")
    shutil.copy(first, second)
    with first.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        await write_one_more(folder, 7)
        assert first.exists() and second.exists()
    await write_one_more(folder, 8)
    assert not first.exists() and not second.exists()


async def test_damaged_row_of_a_journal_is_left_out_and_logged(tmp_path, caplog):
    folder = tmp_path / "store"
    whole = bytearray(await killed(folder, judgment(1), judgment(2, "damaged here"), judgment(3)))
    whole[whole.index(b"damaged here")] ^= 1
    journal_files(folder)[0].write_bytes(whole)
    await write_one_more(folder, 4)
    assert stored_keys(folder) == [1, 3, 4]
    assert [record.levelname for record in caplog.records if "is damaged" in record.message]


async def test_journal_of_an_earlier_version_is_read(tmp_path):
    """Its rows had the names of their columns in them, of which there may have been fewer."""
    folder = tmp_path / "store"
    await killed(folder, judgment(1), judgment(2))
    path = journal_files(folder)[0]
    records: list[object] = [{"schema": 4}]
    for row in read_rows(path, JUDGMENTS):
        values = {name: getattr(row, name) for name in JUDGMENTS.columns if name != "finish_reason"}
        records.append(values)
    payloads = [msgspec.msgpack.encode(record) for record in records]
    path.write_bytes(b"".join(struct.pack("<II", len(each), zlib.crc32(each)) + each for each in payloads))
    assert [row.finish_reason for row in read_rows(path, JUDGMENTS)] == [None, None]
    store = await opened(folder)
    found = await store.get(judgment(2).key, QUESTION)
    assert found is not None and found.answer == judgment(2).answer
    await store.close()


async def test_journal_of_a_later_version_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "store"
    monkeypatch.setattr("adjudge.engine.store.journal.JOURNAL_VERSION", 999)
    await killed(folder, judgment(1))
    monkeypatch.undo()
    with pytest.raises(StoreError, match="schema version 999"):
        await opened(folder)


async def test_journal_of_a_store_far_away_is_local_scratch(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bucket").mkdir()
    far = Place("s3://far", SubTreeFileSystem(str(tmp_path / "bucket"), LocalFileSystem()), "")
    store = JudgmentStore(far, flush_seconds=LONG)
    await store.open()
    store.put(judgment(1))
    (journal,) = (tmp_path / "cache").rglob(".*.journal")
    kept = journal.read_bytes()
    await store.close()
    assert not journal.exists()
    parts(tmp_path / "bucket")[0].unlink()
    journal.write_bytes(kept)  # as if the machine's process had been killed before the part was uploaded
    again = JudgmentStore(far)
    await again.open()
    assert await again.get(judgment(1).key, QUESTION) == judgment(1)
    again.put(judgment(2))
    await again.close()
    assert stored_keys(tmp_path / "bucket") == [1, 2] and not journal.exists()


async def test_store_without_room_for_a_journal_still_stores(tmp_path, monkeypatch, caplog):
    def refused(folder: Path, name: str, columns: Sequence[str]) -> Journal:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "begun", refused)
    store = await opened(tmp_path)
    store.put(judgment(1))
    await store.flush()
    store.put(judgment(2))
    await store.close()
    assert stored_keys(tmp_path) == [1, 2]
    assert len([record for record in caplog.records if "no journal" in record.message]) == 1


async def test_store_far_away_needs_no_home(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: (_ for _ in ()).throw(RuntimeError("no home"))))
    (tmp_path / "bucket").mkdir()
    far = Place("s3://far", SubTreeFileSystem(str(tmp_path / "bucket"), LocalFileSystem()), "")
    store = JudgmentStore(far)
    await store.open()
    store.put(judgment(1))
    await store.close()
    assert stored_keys(tmp_path / "bucket") == [1]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_short_write_to_a_journal_keeps_its_row(tmp_path, monkeypatch):
    store = await opened(tmp_path, flush_seconds=LONG)
    store.put(judgment(1))
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: len(data) // 2]))
    store.put(judgment(2))
    monkeypatch.undo()
    store.put(judgment(3))
    (path,) = journal_files(tmp_path)
    assert [int.from_bytes(row.key, "big") for row in read_rows(path, JUDGMENTS)] == [1]
    await store.close()
    assert stored_keys(tmp_path) == [1, 2, 3] and not journals(tmp_path / "judgments")


def card(task: str) -> Scorecard:
    return Scorecard(
        protocol="race",
        system="A",
        task_id=task,
        sample=0,
        repeat=0,
        scores={"overall": 0.5},
        status="scored",
    )


async def test_journal_takes_scorecards_kept_together_all_or_none(tmp_path, monkeypatch):
    store = ScorecardStore(Place.of(str(tmp_path)), "a", flush_seconds=LONG)
    await store.open()
    several = [(card(task), False) for task in "012345"]
    await store.keep(several[:2], 0)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:-3]))
    await store.keep(several[2:5], 0)
    monkeypatch.undo()
    await store.keep(several[5:], 0)
    (path,) = (tmp_path / "scores").glob(".*.journal")
    assert [row.task_id for row in read_rows(path, SCORECARDS)] == ["0", "1"]
    await store.close()
    assert sorted(one.task_id for one in run_cards(Place.of(str(tmp_path)), "a")) == list("012345")


WRITER = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.stores import judgment, opened
from pathlib import Path
async def main():
    store = await opened(Path({folder!r}), flush_seconds=0.05)
    for key in range({first}, {first} + 100000):
        store.put(judgment(key))
        print(key, flush=True)
        await asyncio.sleep(0)
asyncio.run(main())
"""


def acknowledged_until_killed(folder: Path, first: int, seconds: float) -> int:
    """Start a writer of keys from `first` on, kill it, and return how many rows it had put."""
    script = WRITER.format(root=str(Path(__file__).parents[1]), folder=str(folder), first=first)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        return 1 + len(process.stdout.read().splitlines())


@pytest.mark.parametrize("seconds", [0.02, 0.2, 0.5])
async def test_killed_writer_loses_no_row_that_it_had_put(tmp_path, seconds):
    count = acknowledged_until_killed(tmp_path, 0, seconds)
    for expected in (stored_keys(tmp_path), None):
        if expected is None:
            await write_one_more(tmp_path, 1 << 40)
            expected = stored_keys(tmp_path)[:-1]
            assert pq.read_table(tmp_path / "judgments").num_rows == len(expected) + 1
        assert expected[:count] == list(range(count)) and len(expected) <= count + 1
