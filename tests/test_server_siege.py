"""`adjudge serve` before everything hostile at once: it answers throughout, and SIGTERM ends it.

    python -m pytest tests/test_server_siege.py -m soak -s

Half heads, slow bodies and silence by the hundred, rollouts of 30 million characters, and rollouts made of fragments
that are slow to parse.
"""

import contextlib
import itertools
import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adjudge.engine.serving.server import DRAIN_S
from tests.golds import GOLD as RIGOROUS
from tests.growth import GRAMMAR, hostile
from tests.reward_server import reward_server
from tests.worlds import CRITERIA, lines, world

HALF = b"POST /v1/rewards HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
SLOW = b"POST /v1/rewards HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"
HUGE = 30_000_000
WORST = ("[1†-1", "word 15. ", "国", "A b. [1] ", "|a[1]|", "¹,")
PATIENCE_S = 10.0


def hostile_world(folder: Path) -> Path:
    """Rewards by four protocols, one of them against a long reference; nothing is fetched."""
    reference = hostile(("It grew by 3% in the year [1]. ",), 200_000, listed=True)
    protocols = ["race", {"name": "fact", "extraction": "markers"}, "rubrics", "rigorous"]
    reward = {"protocols": protocols, "penalties": {"injection": 1.0, "citation_stuffing": 1.0}}
    path = world(folder, reward={**reward, "deadline_s": 20, "limits": {"body_s": 2.0}})
    gold = {"rubrics": CRITERIA, "race": {"reference": reference}, "rigorous": RIGOROUS}
    lines(folder / "tasks.jsonl", [{"id": "0", "prompt": "What is fact 0?", "gold": gold}])
    return path


class Siege:
    """Threads that call a server until `close`; `statuses` and the `longest` answer of /healthz, in seconds."""

    def __init__(self, url: str, texts: Iterator[str], sockets: int) -> None:
        self.statuses: Counter[int | str] = Counter()
        self.longest = 0.0
        self.answers = 0
        self.errors: list[AssertionError | OSError] = []
        self._url = url
        self._texts = texts
        self._sockets = sockets
        self._taking = threading.Lock()
        self._over = threading.Event()
        work = (self._healthz, self._half_open, self._huge, self._rollouts, self._rollouts)
        self._threads = [threading.Thread(target=self._run, args=(one,)) for one in work]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the siege."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            while not self._over.is_set():
                work()
        except (AssertionError, OSError) as error:
            self.errors.append(error)

    def _healthz(self) -> None:
        start = time.monotonic()
        with urllib.request.urlopen(f"{self._url}/healthz", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
        self.longest = max(self.longest, time.monotonic() - start)
        self.answers += 1
        self._over.wait(0.05)

    def _half_open(self) -> None:
        with contextlib.ExitStack() as opened:
            for head in itertools.islice(itertools.cycle((HALF, SLOW, b"")), self._sockets):
                address = ("127.0.0.1", int(self._url.rpartition(":")[2]))
                one = opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
                with contextlib.suppress(ConnectionError):
                    one.sendall(head)
            self._over.wait(1.0)

    def _huge(self) -> None:
        self._post(hostile(("[1†-1",), HUGE))
        self._over.wait(1.0)

    def _rollouts(self) -> None:
        with self._taking:
            text = next(self._texts)
        self._post(text)

    def _post(self, text: str) -> None:
        body = json.dumps({"items": [{"task_id": "0", "text": text}], "deadline_s": 20}).encode()
        try:
            with urllib.request.urlopen(f"{self._url}/v1/rewards", data=body, timeout=90) as answer:
                status: int | str = answer.status
                json.loads(answer.read())
        except urllib.error.HTTPError as error:
            status = error.code
        except OSError as error:  # the oldest waiting connection goes where there are too many
            status = type(error).__name__
        self.statuses[status] += 1


def besiege(folder: Path, texts: Iterator[str], seconds: float, sockets: int) -> None:
    """Call a server for so many seconds, then end it while it is at work."""
    with reward_server(hostile_world(folder)) as (url, process):
        siege = Siege(url, texts, sockets)
        try:
            time.sleep(seconds)
            while not siege.statuses[200] and process.poll() is None and siege.errors == []:
                time.sleep(0.1)  # a busy machine takes longer to answer the first
            assert process.poll() is None and siege.errors == []
            assert siege.answers and siege.statuses[200], siege.statuses
            print(f"\n{siege.answers} healthy, slowest {siege.longest:.2f} s; {dict(siege.statuses)}")
            began = time.monotonic()
            process.terminate()
            assert ended_within(process, DRAIN_S + PATIENCE_S)
            print(f"ended in {time.monotonic() - began:.1f} s")
        finally:
            siege.close()


def ended_within(process: "subprocess.Popen[str]", seconds: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(seconds) == 0
    return False


def test_server_answers_and_ends_under_siege(tmp_path):
    texts = itertools.cycle(hostile((fragment,), 100_000, listed=True) for fragment in WORST)
    besiege(tmp_path, texts, 5.0, sockets=100)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_server_answers_and_ends_under_a_long_siege(tmp_path):
    """Every fragment, at the longest that is scored."""
    texts = (
        hostile((fragment,), 500_000 - size, listed)
        for size in itertools.count()
        for fragment in GRAMMAR
        for listed in (False, True)
    )
    besiege(tmp_path, texts, 300.0, sockets=900)
