"""Writers, a reward server, readers, compactions, prunings and kills at once: every acknowledged row is there once.

Each process may open 256 files. ADJUDGE_SOAK_SECONDS is how long the long sieges last (120).
"""

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

import pytest
from aiohttp import ClientSession, web

from adjudge.engine.errors import StoreError
from adjudge.engine.rewards.source import LoopThread
from adjudge.engine.store import Place
from adjudge.engine.store.journal import live_parts, take_in_leftovers
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.parts import scan
from adjudge.engine.store.place import MissingFile
from adjudge.engine.store.scorecards import SCORECARDS
from tests.buckets import bucket
from tests.reward_server import judge_server, reward_server
from tests.worlds import world

__all__ = ["bucket"]

ROOT = Path(__file__).parents[1]
SECONDS = float(os.environ.get("ADJUDGE_SOAK_SECONDS", "120"))
DAY = 0.5  # seconds after which replaced parts are deleted: a day of upkeep
FILES = 256  # that a process may open
MOST_FILES = 64 + 32  # those of a store, and those that Python and its libraries have open
MOST_PARTS = 200
AGAIN, AT_ONCE = 1_000, 64  # rewards that are asked for again, and how many of them in one call
ASKED = 10  # judgments of a reward
KINDS = ["scores", "scores", "rewards", "upkeep", "upkeep"]
PRELUDE = """
import asyncio, resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
sys.path.insert(0, {root!r})
from adjudge.engine.errors import StoreError
import adjudge.engine.store.place as lease
from adjudge.engine.store import JudgmentStore, Place, ScorecardStore, compaction, upkeep
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Scorecard
from tests.stores import judgment
compaction.KEPT_SECONDS = {day}
lease.EXPIRY_SECONDS, lease.RETRY_SECONDS = 4 + 16 * {faulty}, 0.05
place = Place.of({uri!r})
rewards = place / "rewards"

async def main(store, keep):
    for number in range(1_000_000):
        try:
            keep(store, number)
        except StoreError:
            pass  # an earlier part cannot be written: the row is kept, and written with it
        print(f"{name}/{{number}}", flush=True)
        await asyncio.sleep(0.002)

def card(store, number):
    case = Case(task=Task(id=f"{name}/{{number}}", prompt="p"),
                report=Report(task_id=f"{name}/{{number}}", system="s", text="t"))
    store.put(Scorecard.of("race", case, {{"overall": 0.5}}), time.time_ns() // 1000)

def answer(store, number):
    store.put(judgment(({name} << 64) + number, at=time.time_ns() // 1000))
"""
WORK = {
    "scores": """asyncio.run(main(ScorecardStore(place, "run", flush_seconds=2 if {faulty} else 0.3), card))""",
    "rewards": """asyncio.run(main(JudgmentStore(place, flush_seconds=2), answer))""",
    "upkeep": """
while True:
    print("upkeep", flush=True)
    try:
        for each in (place, rewards):
            upkeep.compact(each)
            upkeep.prune(each, days=100)
    except StoreError as error:
        assert {faulty} or "lease expired" in str(error)  # this computer is slow
""",
}


SERVE = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
import adjudge.engine.store.place as lease
from adjudge.engine.commands.main import main
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.store import compaction
compaction.KEPT_SECONDS, lease.EXPIRY_SECONDS, lease.RETRY_SECONDS = {day}, 4 + 16 * {faulty}, 0.05
open_evaluator.__wrapped__.__kwdefaults__["flush_seconds"] = 2
while True:
    try:
        main()
    except SystemExit as ended:
        if not ({faulty} and ended.code == 1):  # it could not open the store: it is started again
            raise
"""


def files_of(process: "subprocess.Popen[str]") -> int:
    """How many files a process has open."""
    with contextlib.suppress(FileNotFoundError):
        return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    return 0


class Worker:
    """A process that does one KIND of work, and what it has acknowledged."""

    def __init__(self, uri: str, folder: Path, number: int, kind: str, faulty: bool) -> None:
        self.kind = kind
        self._said = folder / str(number)
        script = PRELUDE.format(root=str(ROOT), day=DAY, uri=uri, name=number, files=FILES, faulty=faulty)
        with self._said.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-c", script + WORK[kind].format(faulty=faulty)], stdout=out
            )

    def is_at_work(self) -> bool:
        """Whether it has said something. It never ends by itself."""
        assert self._process.poll() is None, "a worker ended by itself"
        return self._said.stat().st_size > 0

    @property
    def files(self) -> int:
        """How many files it has open."""
        return files_of(self._process)

    def killed(self) -> set[str]:
        """Kill it; the rows that it had put."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        said = self._said.read_text().splitlines(keepends=True)
        return {line[:-1] for line in said if line.endswith("\n") and line != "upkeep\n"}


class Server:
    """`adjudge serve`, and a client that asks it for one reward after the other, each of a report of its own."""

    kind = "served"

    def __init__(self, config: Path, number: int, faulty: bool) -> None:
        script = SERVE.format(files=FILES, day=DAY, faulty=faulty)
        command = [sys.executable, "-c", script, "serve", str(config), "--port", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.rewarded: dict[str, float] = {}
        self._number = number
        self._faulty = faulty
        self._client = threading.Thread(target=self._ask, daemon=True)
        self._client.start()

    def _ask(self) -> None:
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        for number in range(1_000_000):
            text = f"Report {number} of {self._number}. It states fact number {number % 10}."
            try:
                (self.rewarded[text],) = rewarded(url, [text])
            except HTTPError as error:  # the store could not be read or written
                assert self._faulty and error.code == 503, error
            except (OSError, HTTPException, ValueError):
                return  # it was killed

    def is_at_work(self) -> bool:
        assert self._process.poll() is None, "the server ended by itself"
        return bool(self.rewarded)

    @property
    def files(self) -> int:
        """How many files it has open."""
        return files_of(self._process)

    def killed(self) -> set[str]:
        """Kill it; no row of the tables that others write is its own."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._client.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return set()


def rewarded(url: str, texts: Sequence[str]) -> list[float]:
    """The rewards that the server at `url` gives reports. Raises OSError, HTTPException, ValueError."""
    body = json.dumps({"items": [{"task_id": "0", "text": text} for text in texts]}).encode()
    request = urllib.request.Request(f"{url}/v1/rewards", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        found = json.load(answer)["rewards"]
    assert all(reward["value"] is not None for reward in found), found
    return [float(reward["value"]) for reward in found]


@contextlib.contextmanager
def rewards_kept(uri: str, folder: Path, faulty: bool = False) -> Iterator[Callable[[int], Server]]:
    """Makes reward servers on the store `uri`; in the end, a reward that any of them gave is given without a judge.

    Of each that was given, the store has all judgments.
    """
    made: list[Server] = []
    with judge_server() as judge:
        asked = {"backend": "openai", "url": judge, "model": "m"}
        config = world(folder / "served", tasks=1, judge=asked, reward={"metric": "score_clipped"}, store=uri)

        def make(number: int) -> Server:
            made.append(Server(config, number, faulty))
            return made[-1]

        yield make
        given = {text: value for server in made for text, value in server.rewarded.items()}
        asked_before = calls(judge)
        with reward_server(config) as (url, _):
            texts = random.Random(0).sample(list(given), min(len(given), AGAIN))
            for at in range(0, len(texts), AT_ONCE):
                again = texts[at : at + AT_ONCE]
                assert rewarded(url, again) == [given[text] for text in again]
        assert calls(judge) == asked_before, "of a reward that was given, something is not in the store"
    kept = Counter(
        key
        for table in scan(Place.of(uri) / "rewards", JUDGMENTS, ["key"])
        for key in table["key"].to_pylist()
    )
    assert set(kept.values()) == {1} and len(kept) >= ASKED * len(given) > 0
    print(f"\n{len(given)} rewards acknowledged by {len(made)} servers, {len(kept)} judgments found")
    assert len(live_parts(Place.of(uri) / "rewards" / "judgments")) < MOST_PARTS


def calls(judge: str) -> int:
    """How often the judge was asked."""
    with urllib.request.urlopen(judge.removesuffix("/v1") + "/stats") as found:
        return int(json.load(found)["calls"])


def rows(place: Place) -> Counter[str]:
    """How often each row is there, as a reader sees it."""
    cards = scan(place, SCORECARDS, ["task_id"])
    found = Counter(task for table in cards for task in table["task_id"].to_pylist())
    for table in scan(place, JUDGMENTS, ["key"]):
        keys = (int.from_bytes(key, "big") for key in table["key"].to_pylist())
        found.update(f"{key >> 64}/{key & (1 << 64) - 1}" for key in keys)
    return found


def read(place: Place, faulty: bool) -> Counter[str]:
    while True:
        try:
            return rows(place)
        except StoreError as error:  # a reader may need longer than a day of upkeep
            assert faulty or isinstance(error, MissingFile), error


def siege(
    uri: str,
    folder: Path,
    seconds: float,
    faulty: bool = False,
    served: Callable[[int], Server] | None = None,
) -> None:
    """Run all KINDS, a server if `served` makes one, and a reader; kill one after another, and start it anew."""
    drawn, place = random.Random(0), Place.of(uri)
    acknowledged: set[str] = set()
    kills, until, most_parts, most_files = 0, time.monotonic() + seconds, 0, 0
    kinds = [*KINDS, *(["served"] if served else [])]

    def begun(kind: str, number: int) -> Worker | Server:
        if served is not None and kind == "served":
            return served(number)
        return Worker(uri, folder, number, kind, faulty)

    workers = [begun(kind, number) for number, kind in enumerate(kinds)]
    try:
        while not kills or time.monotonic() < until:
            while not all(worker.is_at_work() for worker in workers):
                time.sleep(0.02)
            time.sleep(drawn.uniform(0, 0.5))
            assert set(read(place, faulty).values()) == {1}
            for table in (SCORECARDS, JUDGMENTS):
                with contextlib.suppress(StoreError):
                    most_parts = max(most_parts, len(live_parts(place / table.name)))
            most_files = max([most_files, *(worker.files for worker in workers)])
            at = drawn.randrange(len(workers))
            acknowledged |= workers[at].killed()
            workers[at] = begun(workers[at].kind, len(kinds) + kills)
            kills += 1
    finally:
        for worker in workers:
            acknowledged |= worker.killed()
    found = read(place, faulty)
    assert not acknowledged - set(found) and set(found.values()) == {1}
    for table in (SCORECARDS, JUDGMENTS):
        while True:
            try:
                take_in_leftovers(place / table.name, table)
                break
            except StoreError:
                assert faulty
    assert read(place, faulty) == found and len(acknowledged) > 20 * kills
    print(f"\n{len(acknowledged)} rows acknowledged, {sum(found.values())} found, {kills} kills")
    print(f"at most {most_parts} parts, and {most_files} files open in a process")
    assert most_parts < MOST_PARTS and most_files <= MOST_FILES


def test_siege_of_a_folder_loses_and_doubles_nothing(tmp_path):
    siege(str(tmp_path / "store"), tmp_path, seconds=5)


@pytest.mark.soak
@pytest.mark.timeout(600 + 2 * SECONDS)
def test_long_siege_of_a_folder_loses_and_doubles_nothing(tmp_path):
    uri = str(tmp_path / "store")
    with rewards_kept(uri, tmp_path) as served:
        siege(uri, tmp_path, SECONDS, served=served)


def test_siege_of_a_bucket_loses_and_doubles_nothing(tmp_path, bucket, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    siege(bucket("siege"), tmp_path, seconds=0)


class Faulty:
    """A server of objects in front of another that now and then fails: before it did what was asked, or after."""

    def __init__(self, behind: str) -> None:
        self._behind = behind
        self._drawn = random.Random(0)
        self.is_calm = False

    async def __aenter__(self) -> "Faulty":
        self._session = await ClientSession(auto_decompress=False).__aenter__()
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _answer(self, request: web.Request) -> web.Response:
        fate = 1.0 if self.is_calm else self._drawn.random()
        if fate < 0.03:
            return _refused(503, "SlowDown")
        async with self._session.request(
            request.method,
            f"{self._behind}{request.raw_path}",
            headers={name: value for name, value in request.headers.items() if name not in _OF_A_CONNECTION},
            data=io.BytesIO(await request.read()),  # aiohttp warns of large bodies that are bytes
            allow_redirects=False,
        ) as found:
            body = await found.read()
        if fate < 0.05:
            return _refused(500, "InternalError")
        kept = {name: value for name, value in found.headers.items() if name not in _OF_A_CONNECTION}
        response = web.Response(status=found.status, body=body, headers=kept)
        if request.method == "HEAD":
            response.headers["Content-Length"] = found.headers.get("Content-Length", "0")
        return response


_OF_A_CONNECTION = {"Host", "Expect", "Connection", "Transfer-Encoding", "Content-Length", "Date", "Server"}


def _refused(status: int, code: str) -> web.Response:
    text = f"<Error><Code>{code}</Code><Message>try again</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml")


@pytest.fixture
def faulty(bucket: Callable[[str], str]) -> Iterator[tuple[Callable[[str], str], Callable[[], None]]]:
    """As `bucket`, through a server that fails at one request in twenty; and what makes it fail no more."""
    where = bucket("").partition("endpoint_override=")[2].partition("&")[0]
    thread: LoopThread[Faulty] = LoopThread("faulty", lambda: Faulty(f"http://{where}"))
    port = thread.submit(_port).result()
    yield (
        lambda path: bucket(path).replace(where, f"127.0.0.1:{port}"),
        lambda: thread.submit(_calmed).result(),
    )
    thread.close()


async def _port(server: Faulty) -> int:
    return server.port


async def _calmed(server: Faulty) -> None:
    server.is_calm = True


@pytest.mark.soak
@pytest.mark.timeout(600 + 2 * SECONDS)
def test_long_siege_of_a_failing_bucket_loses_nothing(tmp_path, faulty, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place, calm = faulty
    uri = place("long-siege")
    with rewards_kept(uri, tmp_path, faulty=True) as served:
        siege(uri, tmp_path, SECONDS, faulty=True, served=served)
        calm()
