"""Writers, readers, compactions, prunings and kills at once: every acknowledged row is there once."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from adjudge.engine.store import Place
from adjudge.engine.store.journal import take_in_leftovers
from adjudge.engine.store.parts import scan
from adjudge.engine.store.scorecards import SCORECARDS
from tests.test_object_store import bucket

__all__ = ["bucket"]

ROOT = Path(__file__).parents[1]
DAY = 0.5  # seconds after which replaced parts are deleted: a day of upkeep
PRELUDE = """
import asyncio, sys, time
sys.path.insert(0, {root!r})
from adjudge.engine.errors import StoreError
import adjudge.engine.store.place as lease
from adjudge.engine.store import Place, ScorecardStore, compaction, upkeep
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Scorecard
compaction.KEPT_SECONDS = compaction.MERGED_KEPT_SECONDS = {day}
lease.EXPIRY_SECONDS, lease.RETRY_SECONDS = 5, 0.05
place = Place.of({uri!r})
"""
WRITER = """
async def main():
    store = ScorecardStore(place, "run", flush_seconds=0.3)
    for number in range(1_000_000):
        case = Case(task=Task(id=f"{name}/{{number}}", prompt="p"),
                    report=Report(task_id=f"{name}/{{number}}", system="s", text="t"))
        store.put(Scorecard.of("race", case, {{"overall": 0.5}}), time.time_ns() // 1000)
        print(f"{name}/{{number}}", flush=True)
        await asyncio.sleep(0.002)
asyncio.run(main())
"""
UPKEEP = """
while True:
    print("upkeep", flush=True)
    try:
        upkeep.compact(place)
        upkeep.prune(place, days=100)
    except StoreError as error:
        assert "lease expired" in str(error)  # this computer is slow
"""


class Worker:
    """A process that writes or keeps house, and what it has acknowledged."""

    def __init__(self, uri: str, said: Path, name: str) -> None:
        prelude = PRELUDE.format(root=str(ROOT), day=DAY, uri=uri)
        script = prelude + (UPKEEP if name == "upkeep" else WRITER.format(name=name))
        self._said = said
        with said.open("wb") as out:
            self._process = subprocess.Popen([sys.executable, "-c", script], stdout=out)

    def is_at_work(self) -> bool:
        """Whether it has said something. It never ends by itself."""
        assert self._process.poll() is None, "a worker ended by itself"
        return self._said.stat().st_size > 0

    def killed(self) -> set[str]:
        """Kill it; the rows that it had put."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        said = self._said.read_text().splitlines(keepends=True)
        return {line[:-1] for line in said if line.endswith("\n") and line != "upkeep\n"}


def rows(place: Place) -> Counter[str]:
    """How often each row is there, as a reader sees it."""
    tables = scan(place, SCORECARDS, ["task_id"])
    return Counter(task for table in tables for task in table["task_id"].to_pylist())


def siege(uri: str, folder: Path, seconds: float) -> None:
    """Run three writers, two housekeepers and a reader; kill one process after another, and start it anew."""
    drawn, place = random.Random(0), Place.of(uri)
    acknowledged: set[str] = set()
    kills, until = 0, time.monotonic() + seconds

    def start(number: int, upkeep: bool) -> Worker:
        return Worker(uri, folder / str(number), "upkeep" if upkeep else str(number))

    workers = [start(number, upkeep=number >= 3) for number in range(5)]
    while not kills or time.monotonic() < until:
        while not all(worker.is_at_work() for worker in workers):
            time.sleep(0.02)
        time.sleep(drawn.uniform(0, 0.5))
        assert set(rows(place).values()) == {1}
        at = drawn.randrange(5)
        acknowledged |= workers[at].killed()
        workers[at] = start(5 + kills, upkeep=at >= 3)
        kills += 1
    for worker in workers:
        acknowledged |= worker.killed()
    found = rows(place)
    assert not acknowledged - set(found) and set(found.values()) == {1}
    take_in_leftovers(place / SCORECARDS.name, SCORECARDS)
    assert rows(place) == found and len(acknowledged) > 20 * kills
    print(f"\n{len(acknowledged)} rows acknowledged, {sum(found.values())} found, {kills} kills")


def test_siege_of_a_folder_loses_and_doubles_nothing(tmp_path):
    siege(str(tmp_path / "store"), tmp_path, seconds=5)


@pytest.mark.soak
def test_long_siege_of_a_folder_loses_and_doubles_nothing(tmp_path):
    siege(str(tmp_path / "store"), tmp_path, seconds=120)


def test_siege_of_a_bucket_loses_and_doubles_nothing(tmp_path, bucket, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    siege(bucket("siege"), tmp_path, seconds=0)


@pytest.mark.soak
def test_long_siege_of_a_bucket_loses_and_doubles_nothing(tmp_path, bucket, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    siege(bucket("long-siege"), tmp_path, seconds=120)
