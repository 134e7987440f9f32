"""Whole cases per second, from files to leaderboard, with a judge server of 200 ms latency.

    python -m benchmarks.pipeline [--quick] [--json] [--only WORDS]

A run is `evaluate` in this process: reports of 6,000 characters are read, judged, stored in a new store and summarised
in a leaderboard. Rubrics ask ten questions about a report. FACT parses a report's citation marks by rule, reads the ten
pages it cites, of 500 (`benchmarks.pages`), and asks ten questions, some of them again of what stands beside a page's
main text: once with pages read and extracted during the run, once with pages from the store. CPU is that of this
process and its workers; both servers run in their own processes. The peer is the limit set by the server's latency at
256 questions at once. The rows "beside a bare loop" compare FACT with an aiohttp loop that sends as many bodies, of the
same bytes, and does nothing else.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from adjudge.engine.commands.evaluate import RunResult, evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.judges.completions import Requests
from benchmarks.judge_server import LATENCY, judge_server
from benchmarks.orchestration import LIMIT, bare_loop
from benchmarks.page_server import page_server
from benchmarks.pages import Document, documents
from benchmarks.timing import Row, alone, main
from tests.worlds import CRITERIA, lines

SYSTEMS, CASES, QUICK_CASES, WARM_CASES = 20, 4_000, 100, 40
PAGES, QUICK_PAGES, CITED = 500, 50, 10
FACT = {"name": "fact", "extraction": "markers"}


class Pipeline:
    """Reports in `folder` that cite so many pages at `address`, for a judge at `url`."""

    def __init__(self, folder: Path, url: str, address: str, pages: int) -> None:
        self._folder = folder
        self._url = url
        self._address = address
        self._pages = documents(pages)

    def write(self, cases: int) -> None:
        """The files of `cases` cases."""
        tasks = range(cases // SYSTEMS)
        gold = {"rubrics": CRITERIA}
        lines(
            self._folder / "tasks.jsonl",
            [{"id": str(t), "prompt": f"What of {t}?", "gold": gold} for t in tasks],
        )
        for number in range(SYSTEMS):
            rows: list[object] = [
                {"task_id": str(task), "system": f"system{number:02d}", "text": self._text(task, number)}
                for task in tasks
            ]
            lines(self._folder / "reports" / f"system{number:02d}.jsonl", rows)

    def cited(self, task: int, system: int) -> list[Document]:
        """The pages that a report cites."""
        places = ((task * 31 + system * 7 + place * 53) % len(self._pages) for place in range(CITED))
        return [self._pages[place] for place in places]

    def _text(self, task: int, system: int) -> str:
        parts = [f"# Report {task} of system {system}"]
        for place, page in enumerate(self.cited(task, system)):
            said = f"The {page.title} had the value number {place} of {system}, {task} units"
            parts.append(
                "It was measured again and again. " * 15
                + f"{said} [source](http://{self._address}{page.path})."
            )
        return "\n\n".join(parts)

    def run(self, protocol: object, store: str, pages: str) -> tuple[RunResult, float]:
        """One run under `protocol`, and its CPU seconds."""
        config = RunConfig.of(
            {
                "tasks": str(self._folder / "tasks.jsonl"),
                "reports": [str(self._folder / "reports" / "*.jsonl")],
                "protocols": [protocol],
                "judge": {"backend": "openai", "url": self._url, "model": "mock", "max_in_flight": LIMIT},
                "fetch": {"mode": pages, "allow": [self._address], "limits": {"per_host": 64}},
                "store": str(self._folder / store),
                "out": str(self._folder / "run"),
            }
        )
        before = sum(os.times()[:4])
        result = evaluate(config)
        assert result.complete, result.unscored
        return result, sum(os.times()[:4]) - before

    def keep_pages(self, store: str, other: str) -> None:
        """Give the store `other` the pages that `store` holds."""
        source = self._folder / store / "pages"
        target = self._folder / other / "pages"
        target.mkdir(parents=True)
        for part in source.glob("*.parquet"):
            target.joinpath(part.name).hardlink_to(part)


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """A small run of each kind comes first, so that all code is loaded."""
    cases, pages = (QUICK_CASES, QUICK_PAGES) if quick else (CASES, PAGES)
    with tempfile.TemporaryDirectory() as folder, judge_server() as url, page_server(pages) as address:
        pipeline = Pipeline(Path(folder), url, address, pages)
        pipeline.write(WARM_CASES)
        pipeline.run("rubrics", "warm", "live")
        with recorded() as bodies:
            pipeline.run(FACT, "warm", "live")
        asked = bodies[-WARM_CASES * CITED :]  # the first is the probe
        pipeline.write(cases)
        if wanted("pipeline: rubrics"):
            yield from _rows("pipeline: rubrics", *pipeline.run("rubrics", "rubrics", "off"))
        if wanted("pipeline: FACT"):
            rates: dict[str, tuple[float, int]] = {}
            for store, how in (("fact", "pages read on the way"), ("kept", "pages stored")):
                result, cpu = pipeline.run(FACT, store, "live")
                yield from _rows(f"pipeline: FACT, {how}", result, cpu)
                rates[how] = result.scorecards / result.seconds, result.from_judge
                if store == "fact":
                    pipeline.keep_pages("fact", "kept")
            for how, (rate, questions) in rates.items():
                most = _bare_rate(url, asked, cases, questions)
                name = f"pipeline: FACT, {how}, beside a bare loop"
                yield Row(name, rate, most, "bare aiohttp loop, same bytes", rate / most, "cases/s", cases, 1)


@contextmanager
def recorded() -> Iterator[list[bytes]]:
    """The bodies that judges are sent while the block runs."""
    bodies: list[bytes] = []
    made = Requests.body

    def body(requests: Requests, *args: Any, **named: Any) -> bytes:
        bodies.append(made(requests, *args, **named))
        return bodies[-1]

    Requests.body = body  # type: ignore[method-assign]
    try:
        yield bodies
    finally:
        Requests.body = made  # type: ignore[method-assign]


def _bare_rate(url: str, bodies: list[bytes], cases: int, questions: int) -> float:
    """How many cases a second a loop asks that sends `bodies` again and again, all `questions` of `cases`."""
    sent = list(islice(cycle(bodies), questions))
    began = time.perf_counter()
    bare_loop(url, sent)
    return cases / (time.perf_counter() - began)


def _rows(name: str, result: RunResult, cpu: float) -> Iterator[Row]:
    cases = result.scorecards
    rate, most = cases / result.seconds, LIMIT / LATENCY / (result.from_judge / cases)
    yield Row(name, rate, most, "the latency's bound", rate / most, "cases/s", cases, 1)
    yield alone(f"{name}: CPU a case", cpu / cases * 1e3, "ms", n=cases)
    yield alone(f"{name}: questions a case", result.from_judge / cases, "", n=cases)
    yield alone(f"{name}: pages read", result.pages_read, "", n=cases)


if __name__ == "__main__":
    main(__doc__, rows)
