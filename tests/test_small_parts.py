"""A store of many small parts opens with few files, shrinks as it is written, and loses nothing by it."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.store import JudgmentStore, Place, ScorecardStore, compaction, footers
from adjudge.engine.store.compaction import MANY, merge_small
from adjudge.engine.store.journal import live_parts, read_catalog
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.part import Part
from adjudge.engine.store.place import OPEN_FILES, housekeeping
from adjudge.engine.store.scorecards import KeptCards, score_table
from adjudge.engine.store.upkeep import compact, contents
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Scorecard
from tests.stores import QUESTION, judgment, opened, parts

MOST = 64  # descriptors of a store


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def multiplied(folder: Path, number: int) -> None:
    """Leave so many further names of the only part in `folder`, as short runs would have left parts."""
    (part,) = parts(folder)
    begun = time.time_ns() - 10**12
    for one in range(number):
        os.link(part, part.with_name(f"{begun + one:020d}-{one:016x}-000000.parquet"))


async def written(folder: Path, *keys: int) -> None:
    store = await opened(folder)
    for key in keys:
        store.put(judgment(key))
    await store.close()


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The most descriptors that were open at a read of a part, beyond those from before."""
    before, seen, read = descriptors(), [0], Part.read

    def counting(part: Part, *arguments: object) -> object:
        seen.append(descriptors() - before)
        return read(part, *arguments)

    monkeypatch.setattr(Part, "read", counting)
    return lambda: max(seen)


async def test_opening_many_parts_takes_few_descriptors(tmp_path, most):
    await written(tmp_path, 1, 2)
    multiplied(tmp_path, 300)
    store = await opened(tmp_path)
    assert await store.get(judgment(2).key, QUESTION) == judgment(2)
    assert contents(Place.of(str(tmp_path)))[0].parts == 301
    compact(Place.of(str(tmp_path)))
    assert len(live_parts(Place.of(str(tmp_path)) / "judgments")) == 1
    assert 0 < most() <= MOST


async def test_reading_in_any_order_keeps_few_files_open(tmp_path, most):
    for key in range(3 * OPEN_FILES):
        await written(tmp_path / str(key), key)
        os.renames(
            parts(tmp_path / str(key))[0], tmp_path / "all" / "judgments" / parts(tmp_path / str(key))[0].name
        )
    store = await opened(tmp_path / "all", cached=1)
    before = descriptors()
    for key in random.Random(0).choices(range(3 * OPEN_FILES), k=400):
        assert await store.get(judgment(key).key, QUESTION) == judgment(key)
    assert descriptors() - before <= OPEN_FILES


async def test_writer_merges_its_parts_as_it_goes(tmp_path):
    store, reader = await opened(tmp_path), await opened(tmp_path)
    for key in range(5 * MANY):
        store.put(judgment(key))
        await store.flush()
    await store.close()
    assert len(live_parts(Place.of(str(tmp_path)) / "judgments")) < 2 * MANY
    for found in (reader, await opened(tmp_path)):
        await found.refresh()
        assert [await found.get(judgment(key).key, QUESTION) for key in range(5 * MANY)] == [
            judgment(key) for key in range(5 * MANY)
        ]


async def test_reader_that_knows_merged_parts_indexes_no_row_twice(tmp_path):
    for key in range(MANY):
        await written(tmp_path, key)
    reader = await opened(tmp_path)
    rows = reader.rows
    merge_small(Place.of(str(tmp_path)) / "judgments", JUDGMENTS)
    await reader.refresh()
    assert reader.rows == rows


async def test_reader_finds_rows_after_merged_parts_are_deleted(tmp_path, monkeypatch):
    for key in range(MANY - 1):
        await written(tmp_path, key)
    reader = await opened(tmp_path)
    folder = Place.of(str(tmp_path)) / "judgments"
    await written(tmp_path, MANY)
    merge_small(folder, JUDGMENTS)
    monkeypatch.setattr(compaction, "KEPT_SECONDS", -1)
    for key in range(MANY):
        await written(tmp_path, 100 + key)
    merge_small(folder, JUDGMENTS)
    assert len(parts(tmp_path)) < MANY
    assert [await reader.get(judgment(key).key, QUESTION) for key in range(MANY - 1)] == [
        judgment(key) for key in range(MANY - 1)
    ]


async def test_leftovers_of_many_short_runs_are_merged_by_the_next(tmp_path):
    await written(tmp_path, 1)
    multiplied(tmp_path, 4 * MANY)
    await written(tmp_path, 2)
    assert len(live_parts(Place.of(str(tmp_path)) / "judgments")) < MANY
    assert [await (await opened(tmp_path)).get(judgment(key).key, QUESTION) for key in (1, 2)] == [
        judgment(1),
        judgment(2),
    ]


async def test_looking_up_scorecards_rewrites_none(tmp_path):
    place = Place.of(str(tmp_path))
    case = Case(task=Task(id="1", prompt="p"), report=Report(task_id="1", system="s", text="t"))
    store = ScorecardStore(place, "run")
    store.put(Scorecard.of("race", case, {"overall": 0.5}), 1)
    await store.close()
    (part,) = (tmp_path / "scores").glob("*.parquet")
    for one in range(2 * MANY):
        os.link(part, part.with_name(f"{one:020d}-{one:016x}-000000.parquet"))
    kept = KeptCards(place)
    await kept.open()
    await kept.close()
    assert len(score_table(place, "run")) == 2 * MANY + 1
    assert len(live_parts(place / "scores")) == 2 * MANY + 1


async def test_merging_leaves_a_store_alone_that_somebody_rewrites(tmp_path):
    await written(tmp_path, 1)
    multiplied(tmp_path, MANY)
    place = Place.of(str(tmp_path))
    with housekeeping(place):
        assert merge_small(place / "judgments", JUDGMENTS) == 0
    assert merge_small(place / "judgments", JUDGMENTS) == MANY + 1


@settings(deadline=None, max_examples=20)
@given(st.integers(1_000, 4_000_000), st.integers(0, 2**32))
def test_day_of_small_parts_leaves_fewer_than_two_hundred(size, seed):
    """43,200 parts of about `size` bytes, one every two seconds; a merge is as large as what it merges."""
    drawn, sizes = random.Random(seed), {}
    for number in range(43_200):
        sizes[f"{number:06d}"] = drawn.randrange(size // 2, 2 * size)
        if number % MANY:
            continue
        while many := compaction._many([one for one in sizes if sizes[one] < 32 << 20], sizes):
            for names in compaction._batches(sizes, many, 32 << 20):
                if len(names) > 1:
                    sizes[f"{number:06d}-{names[0]}"] = sum(map(sizes.pop, names))
        assert sum(one < 32 << 20 for one in sizes.values()) < 200


@pytest.fixture
async def kept(tmp_path: Path) -> Place:
    """A table with a file of its footers."""
    await written(tmp_path, 1)
    multiplied(tmp_path, 70)
    place = Place.of(str(tmp_path)) / "judgments"
    read_catalog(place)
    assert (tmp_path / "judgments" / footers.FILE).is_file()
    return place


def opened_parts(monkeypatch: pytest.MonkeyPatch, place: Place) -> int:
    made, made_by = [], Part.__init__
    with monkeypatch.context() as patch:
        patch.setattr(Part, "__init__", lambda *args: made.append(1) or made_by(*args))
        assert len(read_catalog(place).live) == 71
    return len(made)


async def test_kept_footers_are_not_read_again(kept, monkeypatch):
    assert opened_parts(monkeypatch, kept) == 0


@pytest.mark.parametrize("content", [None, b"", b"abc", b"\0" * 100, b"whole"], ids=str)
async def test_broken_file_of_footers_is_made_again(kept, monkeypatch, content):
    file = Path(kept.path) / footers.FILE
    whole = file.read_bytes()
    if content is None:
        file.unlink()
    else:
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if content == b"whole" else content)
    assert opened_parts(monkeypatch, kept) == 71
    assert opened_parts(monkeypatch, kept) == 0


async def test_changed_part_is_read_again(kept, monkeypatch):
    part = sorted(Path(kept.path).glob("*.parquet"))[0]
    os.utime(part, (1, 1))  # and all its other names
    assert opened_parts(monkeypatch, kept) == 71


async def test_later_version_is_refused_whatever_the_footers_say(kept, tmp_path):
    store = JudgmentStore(Place.of(str(tmp_path)))
    part = sorted(Path(kept.path).glob("*.parquet"))[0]
    content = bytearray(part.read_bytes())
    content[-100] ^= 1
    part.unlink()
    part.write_bytes(content)
    with pytest.raises(OSError, match=part.name):
        await store.open()
