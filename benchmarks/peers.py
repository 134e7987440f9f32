"""Complete tools on the same work: inspect_ai, a pool of processes, Ray Data LLM, deepeval, Scrapy, a plain loop.

    python -m benchmarks.peers [--quick] [--json] [--only WORDS]

Needs `make peers`, which installs them into a separate environment (benchmarks/peers.txt; PEERS_VENV names its
folder). Each peer runs in its own process and is timed inside it after imports and warm-up; our side also stores its
answers.

- Questions: the same texts for one mock server with 200 ms latency, at most 256 at once. inspect_ai treats them as
  samples with given answers and a model-graded scorer; ten processes send them with a blocking client; Ray Data LLM
  maps its processor for HTTP servers over them.
- Statements: ten about each of many pages. Our side asks once per page; deepeval's faithfulness asks three times, for
  truths, claims and verdicts.
- Pages: the documents of benchmarks.fetch from one server, 64 at once, with the same hash, title, description and
  text, which is checked. Scrapy extracts in its callback; the loop reads one page after the other.

Ratios compare work per second, or client CPU. A peer's name ends with the largest number of failures in one run. With
--quick each peer runs once, because starting takes longer than working.
"""

import contextlib
import gc
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from adjudge.engine.evaluation.memory import rare_collections
from adjudge.fetchers.page import Page
from adjudge.judges import Context
from adjudge.scoring.deepresearch_bench.fact_questions import Backed
from benchmarks.extraction import measures
from benchmarks.fetch import IN_FLIGHT, PAGES, Ours
from benchmarks.judge_server import judge_server
from benchmarks.orchestration import bodies_of, questions, through_engine
from benchmarks.page_server import page_server
from benchmarks.pages import documents
from benchmarks.timing import RUNS, SETTLE_SECONDS, Row, alternating, main

HERE = Path(__file__).parent
VENV = Path(os.environ.get("PEERS_VENV") or Path.home() / ".cache/adjudge/peers")
TIMEOUT, ENDING = 600.0, 60.0  # seconds of one run of a peer, and of its end
STATEMENTS = 10
SENTENCE = "The sea is deep. "


class Run(msgspec.Struct, frozen=True):
    """One run of one side: wall and client CPU seconds, the number of answers, and the pages read, by URL."""

    seconds: float
    cpu: float
    answered: int
    version: str = ""
    fields: dict[str, dict[str, str]] = {}


def ours(work: Callable[[], object], count: int) -> Run:
    """`work`, which raises unless all of `count` are answered."""
    gc.collect()
    time.sleep(SETTLE_SECONDS)
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Run(time.perf_counter() - wall, time.process_time() - cpu, count)


@contextlib.contextmanager
def started(script: str, peer: str, where: str, lines: Sequence[bytes]) -> Iterator[Callable[[], Run]]:
    """`peer` of `script`; each call is a run on `lines`. A failure of the whole peer ends the benchmark."""
    python = VENV / "bin/python"
    if not python.exists():
        raise SystemExit(f"no peers in {VENV}: make peers")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        asked = Path(folder, "asked")
        asked.write_bytes(b"\n".join(lines))
        process = subprocess.Popen(
            [str(python), "-P", str(HERE / f"{script}.py"), peer, where, str(asked)],
            cwd=folder,  # where they write their logs
            env=os.environ
            | {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "XDG_CACHE_HOME": folder, "XDG_DATA_HOME": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )

        def run() -> Run:
            assert process.stdin is not None and process.stdout is not None
            hung = threading.Timer(TIMEOUT, process.kill)
            hung.start()
            try:
                process.stdin.write(b"\n")
                process.stdin.flush()
                return msgspec.json.decode(process.stdout.readline(), type=Run)
            except (OSError, msgspec.DecodeError) as error:
                errors.seek(0)
                raise SystemExit(
                    f"{peer} failed:\n{errors.read().decode(errors='replace')[-4_000:]}"
                ) from error
            finally:
                hung.cancel()

        try:
            yield run
        finally:
            try:
                process.communicate(timeout=ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def theirs(script: str, peer: str, where: str, lines: Sequence[bytes]) -> Run:
    """One run of `peer`, which is started for it."""
    with started(script, peer, where, lines) as run:
        return run()


class Sides(msgspec.Struct, frozen=True):
    """The runs of both sides on the same `count` things."""

    peer: str
    count: int
    ours: list[Run]
    theirs: list[Run]

    def rate(self, name: str, things: str) -> Row:
        """How many were answered a second."""
        ours, theirs = (
            statistics.median(run.answered / run.seconds for run in runs) for runs in (self.ours, self.theirs)
        )
        return self._row(name, ours, theirs, ours / theirs, f"{things}/s")

    def cpu(self, name: str) -> Row:
        """Client CPU milliseconds of each."""
        ours, theirs = (
            statistics.median(run.cpu for run in runs) / self.count * 1e3 for runs in (self.ours, self.theirs)
        )
        return self._row(name, ours, theirs, theirs / ours, "ms")

    def _row(self, name: str, ours: float, theirs: float, ratio: float, unit: str) -> Row:
        failed = self.count - min(run.answered for run in self.theirs)
        peer = f"{self.peer.format(self.theirs[0].version)}, {failed} failed"
        return Row(name, ours, theirs, peer, ratio, unit, self.count, len(self.ours))


def beside_judges(url: str, count: int, runs: int, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """`count` questions for a server, by inspect_ai, a pool of processes and Ray Data LLM; statements by deepeval."""
    asked = questions(count)
    bodies = bodies_of(asked)
    pages = [f"Page {number}. {SENTENCE * 140}" for number in range(count)]
    statements = tuple(f"Statement {number} is in it." for number in range(STATEMENTS))
    backed = [Backed(context=Context.of(page=page), statements=statements) for page in pages]
    cited = [msgspec.json.encode({"page": page, "statements": statements}) for page in pages]
    peers = (
        ("inspect_ai", "inspect_ai {}, model-graded scorer", "question", count, asked, bodies),
        ("processes", "10 processes, blocking openai {}", "question", count, asked, bodies),
        ("ray_data", "Ray Data LLM {}, HTTP processor", "question", count, asked, bodies),
        ("deepeval", "deepeval {}, faithfulness", "statement", count * STATEMENTS, backed, cited),
    )
    for peer, named, thing, things, mine, lines in peers:
        name = f"{things:,} {thing}s with store, beside {peer}"
        if wanted(name):
            with started("peer_judges", peer, url, lines) as run:
                given = alternating(partial(ours, partial(through_engine, url, mine), things), run, runs)
            sides = Sides(named, things, *given)
            yield sides.rate(name, f"{thing}s")
            yield sides.cpu(f"CPU a {thing}, beside {peer}")


def beside_pages(count: int, runs: int, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """`count` pages with the same fields, through Scrapy and in a loop."""
    peers = (
        ("scrapy", "scrapy {}, trafilatura in its callback"),
        ("loop", "requests and trafilatura {} in a loop"),
    )
    with page_server(count) as address:
        urls = [f"http://{address}{document.path}" for document in documents(count)]
        lines = [url.encode() for url in urls]
        with Ours(urls, address, "trafilatura") as fetcher:
            for peer, named in peers:
                name = f"{count} pages, beside {peer}"
                if wanted(name):
                    given = alternating(
                        partial(ours, fetcher, count),
                        partial(theirs, "peer_pages", peer, str(IN_FLIGHT), lines),
                        runs,
                    )
                    sides = Sides(named, count, *given)
                    _check_fields(fetcher.pages, sides.theirs)
                    yield sides.rate(name, "pages")


def _check_fields(pages: list[Page], runs: list[Run]) -> None:
    """Check that every run of the peer found the same in each page as ours, which keeps what trafilatura keeps."""
    for page in pages:
        for found in (run.fields[page.url] for run in runs):
            assert all(getattr(page, name) == found[name] for name in ("sha256", "title", "description")), (
                page.url
            )
            assert measures(page.text, found["text"])["recall"] > 0.9, page.url


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Every peer, the sides alternating within each."""
    runs = 1 if quick else RUNS
    with rare_collections():  # as in every run of ours
        with judge_server() as url:
            yield from beside_judges(url, 100 if quick else 2_000, runs, wanted)
        yield from beside_pages(PAGES // 10 if quick else PAGES, runs, wanted)


if __name__ == "__main__":
    main(__doc__, rows)
