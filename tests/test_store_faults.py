"""Faults of the file system and rows that no file can hold: no acknowledged row is lost, and nothing fails silently."""

import asyncio
import errno
import itertools
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from adjudge.engine.errors import StoreError
from adjudge.engine.store import JudgmentStore, PageStore, Place, ScorecardStore
from adjudge.engine.store.journal import Journal
from adjudge.engine.store.judgments import JudgmentRow
from adjudge.engine.store.place import StoredFile
from adjudge.engine.store.scorecards import score_table
from adjudge.engine.store.upkeep import compact
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.judges import Usage
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Missing, Scorecard
from tests.stores import QUESTION, judgment, opened, parts, stored_keys
from tests.tools import page

SHORT = 0.01  # seconds until a part is written, and until a failed one is tried again


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def full_disk(monkeypatch) -> None:
    """From now on, no file can be written."""

    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Place, "_write_local", refuse)
    monkeypatch.setattr(Journal, "begun", refuse)
    monkeypatch.setattr(Journal, "append", refuse)


def failing(metrics: Metrics) -> float:
    (family,) = [family for family in metrics.families() if family.name == "adjudge_store_failing"]
    return family.samples[0][2]


async def test_full_disk_loses_nothing_and_recovers_by_itself(tmp_path, monkeypatch, caplog):
    store = await opened(tmp_path, flush_seconds=SHORT)
    metrics = Metrics()
    metrics.watch(store)
    with monkeypatch.context() as patch:
        full_disk(patch)
        store.put(judgment(1))
        await until(lambda: not store.healthy)
        assert failing(metrics) == 1
        with pytest.raises(StoreError, match="No space left on device"):
            store.put(judgment(2))
        with pytest.raises(StoreError, match="No space left on device"):
            await store.flush()
        assert store.unwritten == 2 and await store.get(judgment(2).key, QUESTION) == judgment(2)
        await asyncio.sleep(5 * SHORT)
    await until(lambda: store.healthy and not store.unwritten)
    store.put(judgment(3))
    await store.close()
    assert stored_keys(tmp_path) == [1, 2, 3] and failing(metrics) == 0
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1 and "\n" not in errors[0].getMessage()


async def test_rows_wait_in_bounded_memory_while_the_disk_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr("adjudge.engine.store.writer.FLUSH_BYTES", 10_000)
    store = await opened(tmp_path, flush_seconds=SHORT)
    with monkeypatch.context() as patch:
        full_disk(patch)
        for key in range(1_000):
            try:
                store.put(judgment(key))
            except StoreError:
                await asyncio.sleep(0)
        await until(lambda: not store.healthy)
        for key in range(1_000, 1_100):
            with pytest.raises(StoreError):
                store.put(judgment(key))
        kept = store.unwritten
    await store.close()
    assert len(stored_keys(tmp_path)) == kept < 1_100


async def test_close_that_fails_leaves_rows_in_the_journal(tmp_path, monkeypatch):
    store = await opened(tmp_path, flush_seconds=3600)
    store.put(judgment(1))
    with monkeypatch.context() as patch:
        full_disk(patch)
        with pytest.raises(StoreError):
            await store.close()
    assert not parts(tmp_path)
    again = await opened(tmp_path)
    assert await again.get(judgment(1).key, QUESTION) == judgment(1)


async def test_failure_that_is_a_bug_is_not_silent(tmp_path, monkeypatch):
    monkeypatch.setattr("adjudge.engine.store.writer.write_part", lambda *arguments: 1 / 0)
    store = await opened(tmp_path, flush_seconds=SHORT)
    store.put(judgment(1))
    await until(lambda: not store.healthy)
    with pytest.raises(StoreError, match="ZeroDivisionError"):
        store.put(judgment(2))
    with pytest.raises(ZeroDivisionError):
        await store.close()


async def test_page_with_lone_surrogates_is_stored_with_its_neighbours(tmp_path):
    store = PageStore(Place.of(str(tmp_path)), "live", flush_seconds=SHORT)
    for number in range(3):
        url = f"http://a.test/{number}"
        broken = {"content_type": "text/\udce9", "detail": "\udcff"} if number == 1 else {}
        store.put(url, msgspec.structs.replace(page(url, text=f"Page {number}."), **broken))
    await until(lambda: not store.unwritten)
    await store.close()
    rows = pq.read_table(tmp_path / "pages").to_pylist()
    assert [(row["text"], row["detail"]) for row in rows] == [
        ("Page 0.", ""), ("Page 1.", "\ufffd"), ("Page 2.", "")
    ]  # fmt: skip
    assert store.set_aside == 0


async def test_row_that_no_file_can_hold_is_set_aside_and_named(tmp_path, caplog):
    store = PageStore(Place.of(str(tmp_path)), "live")
    for number in range(3):
        url = f"http://a.test/{number}"
        store.put(
            url, msgspec.structs.replace(page(url, text=f"Page {number}."), size=7 << 70 * (number == 1))
        )
    await store.close()
    assert [row["text"] for row in pq.read_table(tmp_path / "pages").to_pylist()] == ["Page 0.", "Page 2."]
    assert store.set_aside == 1
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "http://a.test/1" in line and "\n" not in line


@pytest.mark.parametrize("tokens", [1 << 40, 1 << 100, -(1 << 100)])
async def test_judgment_with_absurd_tokens_is_stored(tmp_path, tokens):
    store = await opened(tmp_path)
    store.put(msgspec.structs.replace(judgment(1), usage=Usage(tokens, tokens, tokens), text="\ud800"))
    await store.close()
    (row,) = pq.read_table(tmp_path / "judgments").to_pylist()
    assert row["text"] == "\ufffd" and 0 <= row["prompt_tokens"] < 2**31


async def test_unstorable_rows_leave_their_neighbours(tmp_path):
    """Any field of any row, whatever it is: the other rows are stored."""
    hostile = [
        "\udcff",
        "\ud800x",
        1 << 63,
        1 << 64,
        -(1 << 200),
        float("nan"),
        None,
        b"",
        b"long" * 9,
        ["x"],
        {},
    ]
    names = JudgmentRow.__struct_fields__
    spoiled = [name for name in names if name not in ("key", "reason")]  # both come from this code alone
    store = await opened(tmp_path)
    good = 0
    for number, (name, value) in enumerate(itertools.product(spoiled, hostile)):
        store.put(judgment(2 * number))
        row = store._parts.writer.find(judgment(2 * number).key)
        fields = {each: getattr(row, each) for each in names} | {"key": (2 * number + 1).to_bytes(16, "big")}
        store._parts.put((JudgmentRow(**(fields | {name: value})), 100))
        good += 1
    await store.close()
    found = pq.read_table(tmp_path / "judgments", columns=["key"])["key"].to_pylist()
    assert {(2 * number).to_bytes(16, "big") for number in range(good)} <= set(found)
    assert store.set_aside + len(found) == 2 * good


async def test_scorecard_with_lone_surrogates_is_stored(tmp_path):
    place = Place.of(str(tmp_path))
    store = ScorecardStore(place, "run")
    case = Case(task=Task(id="1", prompt="p"), report=Report(task_id="1", system="a\udcff", text="t"))
    store.put(Scorecard.of("race", case, {"overall": Missing("judge_timeout")}), 1)
    await store.close()
    assert score_table(place, "run")["system"].to_pylist() == ["a\ufffd"]


FAULTS = [errno.ENOSPC, errno.EIO, errno.EACCES]


class Faults:
    """Makes one operation of the file system after another fail, those of every kind, local or far."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = -1  # the operation that fails; none if negative
        self.count = 0
        self.error = errno.EIO
        for owner, name in (
            (os, "fsync"),
            (os, "fdatasync"),
            (os, "write"),
            (os, "scandir"),
            (Path, "rename"),
            (Path, "unlink"),
            (Path, "read_bytes"),
            (Journal, "begun"),
            (StoredFile, "read"),
            (Place, "listed"),
            (Place, "open"),
            (Place, "_write_local"),
            (Place, "delete"),
        ):
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name), name, owner))

    def _failing(self, real: Callable[..., object], name: str, owner: type) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            self.count += 1
            if self.count - 1 == self.at:
                if name == "_write_local":  # a torn write: half of the bytes, then an error
                    place, part, pieces = arguments
                    (Path(place.path) / f".{part}.tmp").write_bytes(b"".join(pieces)[:99])
                if (owner is Place and name in ("listed", "open", "delete")) or owner is StoredFile:
                    raise StoreError(f"store: {os.strerror(self.error)}")
                raise OSError(self.error, os.strerror(self.error))
            return real(*arguments, **named)

        return call


async def work(folder: Path, faults: Faults) -> set[int]:
    """Write, read and compact in `folder`, as a server does, which goes on after a failure; the keys acknowledged."""
    acknowledged = set()
    store = JudgmentStore(Place.of(str(folder)), flush_seconds=SHORT)
    for step in range(3):
        with_failure = False
        try:
            await store.open() if step == 0 else await store.refresh()
        except StoreError as error:
            with_failure = "\n" in str(error)
        assert not with_failure
        for key in range(10 * step, 10 * step + 3):
            try:
                store.put(judgment(key))
            except StoreError as error:
                assert "\n" not in str(error)
            acknowledged.add(key)  # also what was put while the store failed
        try:
            await store.flush()
            await asyncio.to_thread(compact, Place.of(str(folder)))
        except StoreError as error:
            assert "\n" not in str(error)
    faults.at = -1
    await until(lambda: store.healthy)
    await store.close()
    return acknowledged


@pytest.mark.parametrize("error", FAULTS, ids=["ENOSPC", "EIO", "EACCES"])
async def test_fault_in_any_operation_loses_no_row(tmp_path, monkeypatch, error):
    faults = Faults(monkeypatch)
    faults.error = error
    await work(tmp_path / "calm", faults)
    operations, faults.count = faults.count, 0
    assert operations > 50
    every = range(operations)
    for at in random.Random(error).sample(every, 40):
        folder = tmp_path / str(at)
        folder.mkdir()
        faults.at, faults.count = at, 0
        expected = await work(folder, faults)
        assert set(stored_keys(folder)) == expected, at
        shutil.rmtree(folder)
