"""The records of a part: a look-up reads a few rows, and finds what the columns hold."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from adjudge.engine.store import JudgmentStore, Place
from adjudge.engine.store.journal import live_parts, open_part
from adjudge.engine.store.judgments import JUDGMENTS, JudgmentRow
from adjudge.engine.store.part import Frames, current, encoded, framed, listed, record_of, write_part
from adjudge.engine.store.place import DamagedPart, StoredFile
from adjudge.engine.store.rows import table_of
from adjudge.engine.store.upkeep import compact, repair
from tests.nightly import quick_or_whole
from tests.stores import QUESTION, judgment, opened, parts

ROWS = 3000
WITHOUT = msgspec.structs.replace(JUDGMENTS, frame=0, row_group=1024, unique=())  # as parts of schema 3 were


@pytest.fixture
def reads(monkeypatch) -> list[int]:
    """The bytes of each read of a file."""
    found: list[int] = []
    read = StoredFile.read

    def counted(self: StoredFile, offset: int, length: int) -> bytes:
        found.append(length)
        return read(self, offset, length)

    monkeypatch.setattr(StoredFile, "read", counted)
    return found


async def filled(folder: Path, rows: int = ROWS) -> None:
    store = await opened(folder)
    for key in range(rows):
        store.put(judgment(key << 64, f"answer {key}", at=key))
    await store.close()


def as_schema_3(folder: Path, monkeypatch: Any) -> None:
    """Write the parts in `folder` as the schema before records did."""
    place = Place.of(str(folder / "judgments"))
    with monkeypatch.context() as patch:
        patch.setattr("adjudge.engine.store.part.SCHEMA_VERSION", 3)
        for path in parts(folder):
            rows = current(pq.read_table(path), JUDGMENTS)
            table = table_of(JUDGMENTS, list(map(JudgmentRow, *map(listed, rows.columns))))
            write_part(place, path.name, table, WITHOUT)


async def test_look_up_reads_a_few_rows(tmp_path, reads):
    await filled(tmp_path)
    store = await opened(tmp_path)
    reads.clear()
    for key in random.Random(0).sample(range(ROWS), 100):
        assert await store.get(judgment(key << 64).key, QUESTION) == judgment(
            key << 64, f"answer {key}", at=key
        )
    assert len(reads) <= 100 and max(reads) < 100 * JUDGMENTS.frame


async def test_look_ups_in_order_read_each_row_once(tmp_path, reads):
    await filled(tmp_path)
    store = await opened(tmp_path)
    reads.clear()
    for key in range(ROWS):
        assert await store.get(judgment(key << 64).key, QUESTION) is not None
    assert len(reads) == -(-ROWS // JUDGMENTS.frame) and sum(reads) < parts(tmp_path)[0].stat().st_size


async def test_object_store_is_asked_for_many_frames_at_once(tmp_path, reads):
    await filled(tmp_path)
    store = JudgmentStore(Place("far://store", SubTreeFileSystem(str(tmp_path), LocalFileSystem()), "."))
    await store.open()
    reads.clear()
    for key in range(ROWS):
        assert await store.get(judgment(key << 64).key, QUESTION) is not None
    assert len(reads) == 3


async def test_part_without_records_answers_until_it_is_compacted(tmp_path, monkeypatch):
    await filled(tmp_path)
    as_schema_3(tmp_path, monkeypatch)
    place = Place.of(str(tmp_path)) / "judgments"
    for has_records in (False, True):
        (name,) = live_parts(place)
        assert (open_part(place, JUDGMENTS, name).records is not None) is has_records
        store = await opened(tmp_path)
        for key in (0, 1023, 1024, ROWS - 1):
            assert await store.get(judgment(key << 64).key, QUESTION) == judgment(
                key << 64, f"answer {key}", at=key
            )
        compact(Place.of(str(tmp_path)))


async def test_memory_holds_as_many_rows_as_it_is_meant_to(tmp_path):
    await filled(tmp_path)
    store = JudgmentStore(Place.of(str(tmp_path)), cached=100)
    await store.open()
    for key in range(ROWS):
        await store.get(judgment(key << 64).key, QUESTION)
    blocks = store._parts._blocks
    assert blocks._held == sum(map(len, blocks._rows.values())) <= 100


async def test_damaged_records_are_named_and_moved_aside(tmp_path):
    await filled(tmp_path, 2 * JUDGMENTS.frame)
    (path,) = parts(tmp_path)
    records = open_part(Place.of(str(tmp_path)) / "judgments", JUDGMENTS, path.name).records
    data = bytearray(path.read_bytes())
    data[int(records._entries[1]["at"]) + 9] ^= 1
    path.write_bytes(data)
    store = await opened(tmp_path)
    assert await store.get(judgment(3 << 64).key, QUESTION) is not None
    with pytest.raises(DamagedPart, match=path.name):
        await store.get(judgment((JUDGMENTS.frame + 4) << 64).key, QUESTION)
    assert repair(Place.of(str(tmp_path)))[0].moved == [path.name]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ROW = st.builds(
    JudgmentRow,
    key=st.binary(min_size=16, max_size=16),
    group=st.binary(min_size=16, max_size=16),
    question=TEXTS,
    answer=st.none() | TEXTS,
    status=st.sampled_from(["scored", "unscored"]),
    reason=st.none() | st.sampled_from(["judge_timeout", "judge_refused"]),
    text=TEXTS,
    finish_reason=TEXTS,
    prompt_tokens=st.integers(0, 2**31 - 1),
    cached_tokens=st.integers(0, 9),
    completion_tokens=st.integers(0, 9),
    seconds=st.floats(allow_nan=False),
    judge=TEXTS,
    engine=TEXTS,
    written_at=st.integers(-(2**60), 2**60),
)


@settings(max_examples=quick_or_whole(20, 60))
@given(rows=st.lists(ROW, min_size=1, max_size=70))
def test_frames_of_rows_that_come_are_those_of_the_table(rows):
    """Whichever way a part is made, its bytes are the same."""
    assert JUDGMENTS.columns == JudgmentRow.__struct_fields__
    frames = Frames(JUDGMENTS.frame)
    for row in rows:
        frames.add(record_of(row))
    table = table_of(JUDGMENTS, rows)
    assert frames.pieces(9) == framed(table, JUDGMENTS.frame).pieces(9)
    assert encoded(table, JUDGMENTS, frames) == encoded(table, JUDGMENTS)


@settings(max_examples=quick_or_whole(20, 60))
@given(rows=st.lists(ROW, min_size=1, max_size=70), frames=st.integers(1, 9))
def test_records_hold_the_rows_of_the_columns(tmp_path_factory, rows, frames):
    place = Place.of(str(tmp_path_factory.mktemp("part")))
    write_part(place, "1-a-0.parquet", table_of(JUDGMENTS, rows), JUDGMENTS)
    part = open_part(place, JUDGMENTS, "1-a-0.parquet")
    blocks = range(-(-len(rows) // (JUDGMENTS.frame * frames)))
    found = [row for number in blocks for row in part.block(number, frames, JUDGMENTS)]
    assert found == rows == list(map(JudgmentRow, *map(listed, current(part.read(), JUDGMENTS).columns)))
