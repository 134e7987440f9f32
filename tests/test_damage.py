"""Damaged files of a store: what changed is noticed and named, `store repair` moves it aside, and the rest goes on."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.engine.errors import StoreError
from adjudge.engine.store import PageStore, Place
from adjudge.engine.store.journal import live_parts, open_part
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.pages import PAGES
from adjudge.engine.store.part import SCHEMA_VERSION, TableKind, stamped
from adjudge.engine.store.scorecards import SCORECARDS
from adjudge.engine.store.upkeep import compact, contents, prune, repair
from tests.commands import one_line, run
from tests.stores import QUESTION, cards, judgment, opened, parts
from tests.tools import page
from tests.worlds import world

Fill = Callable[[Path], object]


async def judgments(folder: Path) -> TableKind[object]:
    store = await opened(folder)
    for key in range(60):
        store.put(judgment(key << 64, f"answer {key}" * (key % 3), at=key))
    await store.close()
    return JUDGMENTS


async def pages(folder: Path) -> TableKind[object]:
    store = PageStore(Place.of(str(folder)), "live")
    for number in range(40):
        store.put(f"http://a.test/{number}", page(f"http://a.test/{number}", text=f"Page {number}. " * 9))
    await store.close()
    return PAGES


async def flips(folder: Path, fill: Fill, count: int) -> tuple[int, int]:
    """How many of `count` flipped bits of a part were noticed, and how many changed nothing. No other is allowed."""
    kind = await fill(folder)
    place = Place.of(str(folder)) / kind.name
    path = next((folder / kind.name).glob("*.parquet"))
    whole = path.read_bytes()

    def read() -> tuple[pa.Table, list[object]]:
        found = [open_part(place, kind, name) for name in live_parts(place)]
        blocks = [part.block(0, 100, kind) for part in found]
        return pa.concat_tables(part.read() for part in found), [row for block in blocks for row in block]

    (table, rows), noticed = read(), 0
    for bit in random.Random(0).sample(range(8 * len(whole)), count):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = read()
            assert found[0].equals(table) and found[1] == rows, bit
        except StoreError as error:
            assert path.name in str(error) and "\n" not in str(error)
            noticed += 1
    return noticed, count - noticed


@pytest.mark.parametrize("fill", [judgments, pages])
async def test_flipped_bit_that_changes_a_row_is_noticed(tmp_path, fill):
    noticed, harmless = await flips(tmp_path, fill, 150)
    assert noticed >= 140 and harmless <= 10


@pytest.mark.soak
@pytest.mark.parametrize("fill", [judgments, pages])
async def test_thousand_flipped_bits_that_change_rows_are_noticed(tmp_path, fill):
    noticed, harmless = await flips(tmp_path, fill, 1_000)
    assert noticed >= 980 and harmless <= 20


async def test_part_cut_at_any_length_is_noticed(tmp_path):
    await judgments(tmp_path)
    (path,) = parts(tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError, match="damaged"):
            await opened(tmp_path)


async def test_part_with_check_sums_is_read_by_any_reader(tmp_path):
    await judgments(tmp_path)
    assert pq.read_table(tmp_path / "judgments").num_rows == 60
    assert pq.ParquetFile(parts(tmp_path)[0]).read().num_rows == 60


def spoil(path: Path) -> None:
    """Change one bit in the rows of a part."""
    data = bytearray(path.read_bytes())
    data[40] ^= 4
    path.write_bytes(data)


async def test_repair_moves_damaged_parts_aside_and_the_rest_goes_on(tmp_path, capsys):
    for key in (1, 2):
        store = await opened(tmp_path)
        store.put(judgment(key))
        await store.close()
    damaged = parts(tmp_path)[0]
    spoil(damaged)
    code, _, error = run(capsys, "store", "compact", tmp_path)
    assert code == 1 and f"{damaged}: damaged" in (line := one_line(error))
    assert f"adjudge store repair {tmp_path}" in line
    code, out, _ = run(capsys, "store", "repair", tmp_path)
    assert code == 0 and f"judgments/damaged/{damaged.name}" in out
    assert (tmp_path / "judgments" / "damaged" / damaged.name).exists()
    store = await opened(tmp_path)
    assert await store.get(judgment(1).key, QUESTION) is None
    assert await store.get(judgment(2).key, QUESTION) == judgment(2)
    code, out, _ = run(capsys, "store", "repair", tmp_path, "--json")
    assert code == 0 and [table["moved"] for table in json.loads(out)] == [[], [], []]


async def test_repair_brings_back_what_a_damaged_part_replaced(tmp_path):
    for key in (1, 2):
        store = await opened(tmp_path)
        store.put(judgment(key))
        await store.close()
    compact(Place.of(str(tmp_path)))
    spoil(next(part for part in parts(tmp_path) if "rewritten" in part.name))
    assert [len(table.moved) for table in repair(Place.of(str(tmp_path)))] == [1, 0, 0]
    store = await opened(tmp_path)
    assert await store.get(judgment(1).key, QUESTION) == judgment(1)


def test_damaged_scores_are_named_before_anything_is_asked(tmp_path, capsys):
    config = world(tmp_path)
    assert run(capsys, "evaluate", config)[0] == 0
    for path in (tmp_path / "store" / "scores").glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-9])
    shutil.rmtree(tmp_path / "store" / "judgments")
    code, _, error = run(capsys, "evaluate", config)
    assert code == 1 and "/scores/" in one_line(error) and "store repair" in one_line(error)
    assert not list((tmp_path / "store" / "judgments").glob("*.parquet"))


def test_damaged_cards_of_a_run_are_named(tmp_path, capsys):
    config = world(tmp_path)
    assert run(capsys, "evaluate", config)[0] == 0
    for path in (tmp_path / "store" / "scores").glob("*.parquet"):
        where = pq.read_metadata(path).row_group(0)
        columns = [where.column(number) for number in range(where.num_columns)]
        cards_at = next(one for one in columns if one.path_in_schema == "card").data_page_offset + 30
        data = bytearray(path.read_bytes())
        data[cards_at] ^= 1
        path.write_bytes(data)
    code, _, error = run(capsys, "show", tmp_path / "run", "--task", "0", "--system", "system0")
    assert code == 1 and "damaged" in one_line(error)


ACTIONS: list[Callable[[Place], object]] = [compact, contents, repair, lambda place: prune(place, days=1)]


@pytest.mark.parametrize("action", ACTIONS, ids=["compact", "contents", "repair", "prune"])
@pytest.mark.parametrize("kind", [JUDGMENTS, PAGES, SCORECARDS], ids=lambda kind: kind.name)
def test_later_version_is_refused_everywhere_alike(tmp_path, action, kind):
    folder = tmp_path / kind.name
    folder.mkdir()
    schema = stamped(kind.schema)
    later = schema.with_metadata(schema.metadata | {b"adjudge.schema": str(SCHEMA_VERSION + 1).encode()})
    pq.write_table(later.empty_table(), folder / "1-later.parquet")
    with pytest.raises(
        StoreError,
        match=rf"1-later\.parquet: schema version {SCHEMA_VERSION + 1}, and this .* up to {SCHEMA_VERSION}; use",
    ):
        action(Place.of(str(tmp_path)))
    assert [path.name for path in folder.iterdir()] == ["1-later.parquet"]


def test_part_without_check_sums_of_version_3_is_damaged(tmp_path):
    place = cards(tmp_path, "a")
    (path,) = (tmp_path / "scores").glob("*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.cast(stamped(table.schema)), path)
    with pytest.raises(StoreError, match="check sums are missing"):
        contents(place)
