"""The store: real Parquet parts in real folders."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from adjudge.engine.errors import StoreError
from adjudge.engine.store import JudgmentStore, PageStore, Place, ScorecardStore
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.part import stamped, write_part
from adjudge.engine.store.scorecards import SCORE_COLUMNS, find_cards, score_table, with_bounds
from adjudge.engine.store.writer import KeyIndex
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Bounds, Missing, Scorecard
from tests.nightly import quick_or_whole
from tests.stores import QUESTION, judgment, opened, parts
from tests.tools import page


async def test_stored_answer_is_readable_before_and_after_writing(tmp_path):
    store = await opened(tmp_path)
    store.put(judgment(1))
    assert await store.get(judgment(1).key, QUESTION) == judgment(1)
    await store.flush()
    assert await store.get(judgment(1).key, QUESTION) == judgment(1)
    again = await opened(tmp_path)
    assert await again.get(judgment(1).key, QUESTION) == judgment(1)
    assert await again.get(judgment(2).key, QUESTION) is None
    await store.close()


async def test_store_says_which_groups_of_judgments_it_holds(tmp_path):
    """Whether they are written or not, and whichever groups are asked about together."""
    store = await opened(tmp_path)
    near = 1 << 64  # the first 8 bytes of a key tell: keep these apart there
    for number in (1, 2, 3):
        store.put(judgment(number * near))
    await store.flush()
    store.put(judgment(4 * near))
    store.put(judgment(5 * near, None, "judge_timeout"))
    hexes = [(number * near).to_bytes(16, "big").hex() for number in range(7)]
    groups = [[hexes[1], hexes[3]], [], [hexes[2], hexes[6]], [hexes[4]], [hexes[5]], [hexes[0]], [hexes[3]]]
    assert store.holds(groups) == [True, True, False, True, False, False, True]
    assert [store.holds([group]) for group in groups] == [[held] for held in store.holds(groups)]
    await store.close()


async def test_cached_answer_equals_the_stored_one(tmp_path):
    for at, text in ((9, "late"), (5, "early")):
        store = JudgmentStore(Place.of(str(tmp_path)))
        store.put(judgment(1, answer=text, at=at))
        store.put(judgment((7 << 64) + at, answer=text, at=at))
        store.put(judgment(at, None, "judge_refused"))
        store.put(judgment(100 + at, None, "judge_timeout"))
        await store.close()
    store, other = await opened(tmp_path), await opened(tmp_path)
    store.put(judgment(3))
    other.put(judgment(3))
    for number in (1, 3, 5, 9, 105, 109, (7 << 64) + 5, (7 << 64) + 9, (7 << 64) + 6, 77):
        key = number.to_bytes(16, "big")
        assert store.at_hand([key], [QUESTION]) == [await other.get(key, QUESTION)]
    keys = [judgment(number).key for number in (1, 3, 105, 77)]
    assert [found is None for found in store.at_hand(keys, [QUESTION] * 4)] == [False, False, True, True]
    await store.close()
    await other.close()


async def test_remote_place_is_read_off_the_event_loop(tmp_path):
    store = await opened(tmp_path)
    for number in range(100):
        store.put(judgment(number))
    await store.close()
    far = JudgmentStore(Place("far", SubTreeFileSystem(str(tmp_path), LocalFileSystem()), ""))
    await far.open()
    keys = [judgment(number).key for number in range(100)]
    assert far.at_hand(keys, [QUESTION] * 100) == [None] * 100
    assert await asyncio.gather(*(far.get(key, QUESTION) for key in keys)) == list(map(judgment, range(100)))
    assert far.at_hand(keys, [QUESTION] * 100) == list(map(judgment, range(100)))


async def test_keys_with_equal_first_64_bits_are_distinguished(tmp_path):
    store = await opened(tmp_path)
    twins = [judgment((7 << 64) + i, answer=f"answer {i}") for i in range(5)]
    for twin in twins:
        store.put(twin)
    await store.close()
    again = await opened(tmp_path)
    for twin in twins:
        assert await again.get(twin.key, QUESTION) == twin
    assert await again.get(((7 << 64) + 9).to_bytes(16, "big"), QUESTION) is None


@pytest.mark.parametrize("order", [(5, 9), (9, 5)])
async def test_earliest_answer_wins_in_any_part_order(tmp_path, order):
    for at in order:
        store = JudgmentStore(Place.of(str(tmp_path)))
        store.put(judgment(1, answer=f"written at {at}", at=at))
        await store.close()
    found = await (await opened(tmp_path)).get(judgment(1).key, QUESTION)
    assert found is not None and found.answer.text == "written at 5"


async def test_lasting_failures_answer_and_transient_ones_do_not(tmp_path):
    store = await opened(tmp_path)
    store.put(judgment(1, None, "judge_timeout"))
    store.put(judgment(2, None, "judge_refused"))
    assert await store.get(judgment(1).key, QUESTION) is None
    await store.close()
    again = await opened(tmp_path)
    assert await again.get(judgment(1).key, QUESTION) is None
    lasting = await again.get(judgment(2).key, QUESTION)
    assert lasting is not None and lasting.reason == "judge_refused"
    retrying = await opened(tmp_path, retry_unscored=True)
    assert await retrying.get(judgment(2).key, QUESTION) is None
    assert pq.read_table(tmp_path / "judgments").num_rows == 2


async def test_success_after_a_transient_failure_answers(tmp_path):
    store = await opened(tmp_path)
    store.put(judgment(1, None, "judge_timeout", at=1))
    await store.flush()
    store.put(judgment(1, "late", at=2))
    await store.close()
    found = await (await opened(tmp_path)).get(judgment(1).key, QUESTION)
    assert found is not None and found.answer.text == "late"


async def test_answer_beats_failures_and_the_last_failure_the_others(
    tmp_path,
):
    store = await opened(tmp_path)
    store.put(judgment(1, None, "judge_timeout", at=1))
    store.put(judgment(2, None, "judge_timeout", at=1))
    await store.flush()
    store.put(judgment(1, "late", at=2))
    store.put(judgment(1, None, "judge_unavailable", at=3))
    store.put(judgment(2, None, "judge_unavailable", at=2))
    await store.close()
    every = JudgmentStore(Place.of(str(tmp_path)), cached=1)
    await every.open(every=True)
    found = [await every.raw(judgment(key).key) for key in (1, 2, 3)]
    assert [None if row is None else (row.answer, row.reason) for row in found] == [
        ('{"text":"late"}', None),
        (None, "judge_unavailable"),
        None,
    ]


async def test_part_is_written_on_time_without_another_put(tmp_path):
    store = await opened(tmp_path, flush_seconds=0.01)
    store.put(judgment(1))
    async with asyncio.timeout(10):
        while not parts(tmp_path):
            await asyncio.sleep(0.01)
    assert await store.get(judgment(1).key, QUESTION) == judgment(1)
    await store.close()
    assert len(parts(tmp_path)) == 1


@pytest.fixture
def held(monkeypatch) -> tuple[threading.Event, threading.Event]:
    """Writing a part is slow: one event says that it has begun, the other lets it continue."""
    begun, go_on, write = threading.Event(), threading.Event(), Place.write

    def slow(*arguments) -> int:
        begun.set()
        assert go_on.wait(60)
        return write(*arguments)

    monkeypatch.setattr(Place, "write", slow)
    return begun, go_on


async def test_rows_due_during_a_slow_write_follow_it(tmp_path, held):
    begun, go_on = held
    store = await opened(tmp_path, flush_seconds=0.01)
    store.put(judgment(1))
    assert await asyncio.to_thread(begun.wait, 60)
    store.put(judgment(2))
    await asyncio.sleep(0.1)  # the second row is due now, and the first is still being written
    go_on.set()
    async with asyncio.timeout(10):
        while store.unwritten or len(parts(tmp_path)) < 2:
            await asyncio.sleep(0.01)
    await store.close()


async def test_cancelled_flush_finishes_before_closing(tmp_path, held):
    begun, go_on = held
    store = await opened(tmp_path)
    store.put(judgment(1))
    flushing = asyncio.ensure_future(store.flush())
    assert await asyncio.to_thread(begun.wait, 60)
    flushing.cancel()
    asyncio.get_running_loop().call_later(0.1, go_on.set)
    await store.close()
    assert len(parts(tmp_path)) == 1 and flushing.cancelled()


async def test_parts_are_whole_and_never_edited(tmp_path):
    store = await opened(tmp_path)
    store.put(judgment(1))
    await store.flush()
    first = parts(tmp_path)[0].read_bytes()
    store.put(judgment(2))
    await store.close()
    assert parts(tmp_path)[0].read_bytes() == first
    assert not list((tmp_path / "judgments").glob(".*"))
    assert pq.read_table(tmp_path / "judgments").num_rows == 2


async def test_half_written_part_of_a_killed_process_is_not_seen(tmp_path):
    store = await opened(tmp_path)
    store.put(judgment(1))
    await store.close()
    (tmp_path / "judgments" / ".0-x.parquet.tmp").write_bytes(b"PAR1 half")
    assert await (await opened(tmp_path)).get(judgment(1).key, QUESTION) == judgment(1)


async def test_part_that_replaces_others_hides_them(tmp_path):
    store = await opened(tmp_path)
    store.put(judgment(1, "old"))
    await store.close()
    old = parts(tmp_path)[0]
    table = pq.read_table(old)
    table = table.set_column(3, "answer", pa.array(['{"text":"new"}']))
    table = table.cast(stamped(table.schema, [old.name]))
    write_part(Place.of(str(old.parent)), "9-new.parquet", table, JUDGMENTS)
    found = await (await opened(tmp_path)).get(judgment(1).key, QUESTION)
    assert found is not None and found.answer.text == "new"


@pytest.mark.parametrize(("codec", "frame"), [("zstd", 64), ("snappy", 3)])
async def test_a_part_is_read_as_it_was_packed(tmp_path, monkeypatch, codec, frame):
    """Records of a part may be packed otherwise than those of a new one."""
    store = await opened(tmp_path)
    for number in range(200):
        store.put(judgment(number << 64))
    await store.close()
    (old,) = parts(tmp_path)
    table = pq.read_table(old)
    old.unlink()
    monkeypatch.setattr("adjudge.engine.store.part._CODEC", codec)
    write_part(Place.of(str(old.parent)), old.name, table, msgspec.structs.replace(JUDGMENTS, frame=frame))
    again = await opened(tmp_path)
    for number in (0, 2, 3, 63, 64, 199):
        assert await again.get((number << 64).to_bytes(16, "big"), QUESTION) == judgment(number << 64)
    await again.close()


async def test_newer_schema_is_refused_with_its_version(tmp_path):
    store = await opened(tmp_path)
    store.put(judgment(1))
    await store.close()
    table = pq.read_table(parts(tmp_path)[0])
    newer = table.replace_schema_metadata({b"adjudge.schema": b"999"})
    pq.write_table(newer, parts(tmp_path)[0])
    with pytest.raises(StoreError, match="schema version 999"):
        await opened(tmp_path)


async def test_unwritable_store_raises(tmp_path):
    (tmp_path / "judgments").write_text("a file where a folder should be")
    store = JudgmentStore(Place.of(str(tmp_path)))
    store.put(judgment(1))
    with pytest.raises(StoreError, match="judgments"):
        await store.close()


async def test_pages_of_different_sources_are_separate(tmp_path):
    live, frozen = (PageStore(Place.of(str(tmp_path)), source) for source in ("live", "snapshot 1"))
    live.put("http://a.example/", page("http://a.example/", text="live text"))
    await live.close()
    await frozen.open()
    assert await frozen.get("http://a.example/") is None
    again = PageStore(Place.of(str(tmp_path)), "live")
    await again.open()
    assert await again.get("http://a.example/") == page("http://a.example/", text="live text")


async def test_scorecards_become_one_sorted_row_per_metric(tmp_path):
    place = Place.of(str(tmp_path))
    store = ScorecardStore(place, "run")
    other = ScorecardStore(place, "another run")
    cards = []
    for system in ("b", "a"):
        case = Case(task=Task(id="1", prompt="p"), report=Report(task_id="1", system=system, text="t"))
        card = Scorecard.of("race", case, {"overall": 0.5, "insight": Missing("judge_timeout")})
        cards.append(card)
        store.put(card, 1)
        other.put(card, 1)
    await store.close()
    await other.close()
    rows = score_table(place, "run").to_pylist()
    assert [(row["system"], row["metric"], row["value"], row["status"], row["reason"]) for row in rows] == [
        ("a", "insight", None, "unscored", "judge_timeout"),
        ("a", "overall", 0.5, "scored", None),
        ("b", "insight", None, "unscored", "judge_timeout"),
        ("b", "overall", 0.5, "scored", None),
    ]
    assert find_cards(place, "run", "b", "1") == [cards[0]]
    assert score_table(place, "no run").num_rows == 0


async def test_score_rows_hold_bounds_of_any_version(tmp_path):
    place = Place.of(str(tmp_path))
    store = ScorecardStore(place, "run")
    case = Case(task=Task(id="1", prompt="p"), report=Report(task_id="1", system="a", text="t"))
    card = Scorecard.of("p", case, {"count": Missing("deadline"), "share": 0.5, "whole": 1.0})
    bounds = {"count": Bounds(0, None, 0, 1), "share": Bounds(0.25, 0.75, 2, 4)}
    store.put(msgspec.structs.replace(card, bounds=bounds), 1)
    await store.close()

    def bounded(table: pa.Table) -> list[list[object]]:
        assert table.column_names == list(SCORE_COLUMNS)
        names = ("value", "low", "high", "answered", "parts")
        return [[row[name] for name in names] for row in table.to_pylist()]

    unbounded = [[None, None, None, 0, 1], [0.5, 0.5, 0.5, 1, 1], [1, 1, 1, 1, 1]]
    scores = score_table(place, "run")
    assert bounded(scores) == [[None, 0, None, 0, 1], [0.5, 0.25, 0.75, 2, 4], [1, 1, 1, 1, 1]]
    assert bounded(with_bounds(scores.drop(["low", "high", "answered", "parts"]))) == unbounded
    (part,) = (tmp_path / "scores").iterdir()
    older = pq.read_table(part).drop(["bounds"])  # as a store written before there were bounds
    pq.write_table(older.replace_schema_metadata({b"adjudge.schema": b"2"}), part)
    assert bounded(score_table(place, "run")) == unbounded
    assert find_cards(place, "run", "a", "1")[0].bounds == bounds


PREFIX = st.integers(0, 40) | st.integers(0, 2**64 - 1) | st.integers(0, 31).map(lambda high: high << 59)


@settings(max_examples=quick_or_whole(20, 100))
@given(st.lists(st.lists(PREFIX, max_size=20), max_size=40), st.lists(PREFIX, max_size=20))
def test_index_finds_every_row_of_a_prefix_in_order(batches, others):
    import numpy as np

    index, expected = KeyIndex(), {value: [] for value in others}
    for part, batch in enumerate(batches):
        prefix = np.array(batch, np.uint64)
        rows = np.arange(len(batch), dtype=np.uint64)
        index.add(prefix, np.full(len(batch), part, np.uint64), rows)
        for row, value in enumerate(batch):
            expected.setdefault(value, []).append((part, row))
    found = index.find([value.to_bytes(8, "big") + bytes(8) for value in expected])
    assert found == list(expected.values())


def test_threads_adding_to_the_index_lose_nothing():
    import numpy as np

    index, parts, rows = KeyIndex(), 64, 50
    row = np.arange(rows, dtype=np.uint64)

    def add(part):
        index.add(row * np.uint64(parts) + np.uint64(part), np.full(rows, part, np.uint64), row)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(parts)))
    assert len(index) == parts * rows
    found = index.find([value.to_bytes(8, "big") + bytes(8) for value in range(parts * rows)])
    assert found == [[(value % parts, value // parts)] for value in range(parts * rows)]


def test_unsupported_place_is_a_store_error():
    with pytest.raises(StoreError, match="nonsense://"):
        Place.of("nonsense://somewhere")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_read_only_folder_is_a_store_error(tmp_path):
    tmp_path.chmod(0o500)
    store = JudgmentStore(Place.of(str(tmp_path)))
    store.put(judgment(1))
    with pytest.raises(StoreError):
        await store.close()
