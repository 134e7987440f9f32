"""The store of judgments, written, indexed and read, at one million and at ten million rows.

    python -m benchmarks.store [--quick] [--json] [--only WORDS]

Rows are judgments of about 300 bytes, ten about each context, added one by one as answers are; creating them is timed
too. Index is the time to open a store before the first question. Look-ups are by key: at random, where nearly every one
reads its own frame of records, and context by context, as a resumed run asks. Every measurement runs in its own
process, and memory is the growth of that process. The peer is SQLite: the same columns, the key primary, a transaction
every 50,000 rows; it needs no index at opening, and runs only at one million rows. Files are warm in the page cache.
"""

import asyncio
import hashlib
import multiprocessing
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

import msgspec

from adjudge.engine.evaluation.memory import rare_collections
from adjudge.engine.store import JudgmentStore, Place
from adjudge.engine.store.journal import Journal
from adjudge.engine.store.judgments import JUDGMENTS, row_of
from adjudge.judges import Context, Judgment, Usage
from benchmarks.orchestration import Check, Verdict
from benchmarks.timing import QUICK_RUNS, RUNS, Row, alone, main

SIZES, QUICK_SIZES = (1_000_000, 10_000_000), (100_000,)
A_PART = 50_000  # rows: what 32 MB of the engine's own parts hold, about
A_CONTEXT = 10
AT_RANDOM = 500
IN_ORDER = 50_000
DRAWN = random.Random(0)
WORDS = "the of and in a year rate value city page says that was found by 12 40 cost study measured".split()
TEXT = " ".join(DRAWN.choices(WORDS, k=40_000))
QUESTION = Check(context=Context.of(page=""), statement="")


class Taken(msgspec.Struct, frozen=True):
    """Seconds, and by how many bytes the process had grown at the end and at its peak."""

    seconds: float
    grown: int
    peak: int


def key(number: int) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "big"), digest_size=16).digest()


def judgment(number: int) -> Judgment[Verdict]:
    start = number * 7919 % (len(TEXT) - 240)
    return Judgment(
        key=key(number),
        group=key(number // A_CONTEXT),
        question="Check",
        answer=Verdict(analysis=f"{number} {TEXT[start : start + 240]}", verdict="supported"),
        status="scored",
        reason=None,
        text="",
        finish_reason="stop",
        usage=Usage(3000, 2900, 60),
        seconds=0.5,
        judge="openai:mock",
        engine="adjudge",
        written_at=1_700_000_000_000_000 + number,
    )


def write(folder: str, count: int) -> None:
    async def run() -> None:
        store = JudgmentStore(Place.of(folder), flush_seconds=3600)
        await store.open()
        for first in range(0, count, A_PART):
            for number in range(first, min(first + A_PART, count)):
                store.put(judgment(number))
            await store.flush()
        await store.close()

    with rare_collections():
        asyncio.run(run())


def index(folder: str, count: int) -> JudgmentStore:
    store = JudgmentStore(Place.of(folder))
    asyncio.run(store.open())
    assert store.rows == count
    return store


def look_up(store: JudgmentStore, numbers: Iterable[int]) -> None:
    async def run() -> None:
        for number in numbers:
            found = await store.get(key(number), QUESTION)
            assert found is not None and found.written_at % 1_000_000 == number % 1_000_000

    asyncio.run(run())


def at_random(count: int) -> list[int]:
    return random.Random(0).sample(range(count), AT_RANDOM)


def in_order(count: int) -> range:
    return range(count // 2, count // 2 + IN_ORDER)


def write_sqlite(folder: str, count: int) -> None:
    names = ", ".join(name if name != "key" else "key BLOB PRIMARY KEY" for name in _COLUMNS)
    with sqlite3.connect(f"{folder}/judgments.db") as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(f"CREATE TABLE judgments ({names}) WITHOUT ROWID")
        for first in range(0, count, A_PART):
            rows = [
                msgspec.structs.astuple(row_of(judgment(number))) for number in range(first, first + A_PART)
            ]
            database.executemany(f"INSERT INTO judgments VALUES ({', '.join('?' * len(_COLUMNS))})", rows)
            database.commit()


def look_up_sqlite(folder: str, numbers: Iterable[int]) -> None:
    with sqlite3.connect(f"{folder}/judgments.db") as database:
        for number in numbers:
            row = database.execute("SELECT * FROM judgments WHERE key = ?", (key(number),)).fetchone()
            assert msgspec.json.decode(row[3], type=Verdict).verdict == "supported"


_COLUMNS = [f'"{name}"' if name == "group" else name for name in JUDGMENTS.schema.names]


def _write(folder: str, count: int) -> Taken:
    return _taken(lambda: write(folder, count))


def _journal(folder: str, count: int) -> Taken:
    numbered = [judgment(number) for number in range(count)]

    async def run() -> None:
        store = JudgmentStore(Place.of(folder), flush_seconds=3600)
        for one in numbered:
            store.put(one)

    return _taken(lambda: asyncio.run(run()))


def _write_sqlite(folder: str, count: int) -> Taken:
    return _taken(lambda: write_sqlite(folder, count))


def _index(folder: str, count: int) -> Taken:
    return _taken(lambda: index(folder, count))


def _look_up(folder: str, count: int, order: Callable[[int], Iterable[int]]) -> Taken:
    store = index(folder, count)
    return _taken(lambda: look_up(store, order(count)))


def _look_up_sqlite(folder: str, count: int, order: Callable[[int], Iterable[int]]) -> Taken:
    return _taken(lambda: look_up_sqlite(folder, order(count)))


def _taken(work: Callable[[], object]) -> Taken:
    with tempfile.TemporaryDirectory() as folder:  # what is loaded at first use is loaded now
        write(folder, A_CONTEXT)
        look_up(index(folder, A_CONTEXT), range(A_CONTEXT))
    before = _resident()
    began = time.perf_counter()
    kept = work()
    seconds = time.perf_counter() - began
    grown = _resident() - before
    del kept
    return Taken(seconds, grown, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _apart(work: Callable[..., Taken], *arguments: object) -> Taken:
    """`work` in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterable[Row]:
    for count in QUICK_SIZES if quick else SIZES:
        if wanted(f"{count:,} rows"):
            yield from _of_size(count, QUICK_RUNS if quick else RUNS)


def _of_size(count: int, runs: int) -> Iterator[Row]:
    with_peer = count < SIZES[-1]
    runs = runs if with_peer else 1
    name = f"{count:,} rows"
    with tempfile.TemporaryDirectory() as parent:
        folders = [[f"{parent}/{side}{run}" for run in range(runs)] for side in ("ours", "peer")]
        for folder in (folder for side in folders for folder in side):
            Path(folder).mkdir()
        written: list[list[Taken]] = [[], []]
        for run in range(runs):
            written[0].append(_apart(_write, folders[0][run], count))
            if with_peer:
                written[1].append(_apart(_write_sqlite, folders[1][run], count))
        yield _row(f"write {name}", written, count, "us", 1e6 / count)
        yield alone(
            f"write {name}: memory, at its peak", _worst(written[0], "peak"), "MB", n=count, runs=runs
        )
        yield alone(f"{name} on disk", _size(folders[0][0]), "MB", n=count)
        if with_peer:
            yield from _journal_cost(parent, min(count, A_PART), runs)
        folder, peer = folders[0][0], folders[1][0]
        opened = [_apart(_index, folder, count) for _ in range(runs)]
        yield _row(f"index {name}", [opened, []], count, "s", 1.0)
        yield alone(f"index {name}: memory", _worst(opened, "grown"), "MB", n=count, runs=runs)
        yield alone(f"index {name}: memory, at its peak", _worst(opened, "peak"), "MB", n=count, runs=runs)
        for how, order, asked in (("at random", at_random, AT_RANDOM), ("in order", in_order, IN_ORDER)):
            found: list[list[Taken]] = [[], []]
            for _ in range(runs):
                found[0].append(_apart(_look_up, folder, count, order))
                if with_peer:
                    found[1].append(_apart(_look_up_sqlite, peer, count, order))
            yield _row(f"look up {how} in {name}", found, asked, "us", 1e6 / asked)


def _journal_cost(parent: str, count: int, runs: int) -> Iterator[Row]:
    """What a row costs until `put` returns, and how much of that is the journal's."""
    taken: list[list[Taken]] = [[], []]
    for run in range(runs):
        for side, kept in enumerate((_journal, _unjournaled)):
            folder = f"{parent}/journal{side}{run}"
            Path(folder).mkdir()
            taken[side].append(_apart(kept, folder, count))
    with_it, without = (statistics.median(one.seconds for one in side) for side in taken)
    yield alone("put a row", with_it * 1e6 / count, "us", n=count, runs=runs)
    yield alone("journal, cost per row", (with_it - without) * 1e6 / count, "us", n=count, runs=runs)


def _unjournaled(folder: str, count: int) -> Taken:
    with patch.object(Journal, "begun", side_effect=OSError("without a journal")):
        return _journal(folder, count)


def _row(name: str, taken: list[list[Taken]], n: int, unit: str, scale: float) -> Row:
    ours, peer = ([one.seconds * scale for one in side] for side in taken)
    mine = statistics.median(ours)
    if not peer:
        return alone(name, mine, unit, n=n, runs=len(ours))
    other = statistics.median(peer)
    return Row(name, mine, other, "SQLite", other / mine, unit, n, len(ours))


def _worst(taken: list[Taken], field: str) -> float:
    return float(max(getattr(one, field) for one in taken) / 2**20)


def _size(folder: str) -> float:
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 2**20


if __name__ == "__main__":
    main(__doc__, rows)
