"""`call: published` beside DeepResearch Bench's own code: RACE (cleaning and scoring) and FACT (from recorded pages).

    ADJUDGE_SHARED=FOLDER ADJUDGE_REFERENCE=FOLDER python -m benchmarks.published [--quick] [--json] [--only WORDS]

The folders must hold the benchmark's data and its code (`tests.shared_data`); without them this measures nothing. Both
sides judge the same reports before the same server, which takes 200 ms per request, and must send it as many requests:
adjudge with 256 requests at once; the reference as its own script runs it, system by system, with ten threads (RACE) or
ten processes (FACT), and RACE also with 256 threads. Our side is timed after its imports; the reference's processes
start within their time, a fraction of a second per system. The reference's client library is replaced by a plain one
(`tests.reference_bench`), which is cheaper.

The published ten tasks are repeated under new numbers. FACT's pages are recorded before the clock runs, by the
reference's own step.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from benchmarks.published_judge import URLS, PublishedJudge, published_judge
from benchmarks.timing import Row, compare, main
from tests.reference_bench import SYSTEMS, bench_folder, reference_environment
from tests.reference_bench import rows as read_rows
from tests.shared_data import reference_folder, shared_folder

TASKS, QUICK_TASKS = 100, 10
COPIES, QUICK_COPIES = 2, 1  # of the two published systems
FACT_TASKS, QUICK_FACT_TASKS = 50, 5  # of one system: FACT takes the reference longer
WORKERS = 10  # N_TOTAL_PROCESS of the benchmark's run_benchmark.sh
MANY_WORKERS = 256
STEPS = (("extract", "raw"), ("deduplicate", "extracted"), ("validate", "scraped"))
WRITTEN = {"extract": "extracted", "deduplicate": "deduplicated", "validate": "validated"}


class Bench(msgspec.Struct, frozen=True):
    """The reference code and its data in `folder`; `tasks` tasks, and reports of `systems` on each."""

    folder: Path
    systems: tuple[str, ...]
    tasks: int
    judge: PublishedJudge

    @property
    def reports(self) -> int:
        """How many reports a run judges."""
        return self.tasks * len(self.systems)

    def race(self, workers: int) -> None:
        """The reference's RACE over all systems, from raw articles."""
        cleaned = self.folder / "data/test_data/cleaned_data"
        for system in self.systems:
            (cleaned / f"{system}.jsonl").unlink(missing_ok=True)
            self._reference(
                "deepresearch_bench_race.py", system, "--max_workers", str(workers), "--force",
                "--output_dir", f"results/race/{system}",
            )  # fmt: skip

    def fact(self) -> None:
        """The steps of the reference's FACT that ask the judge, over all systems."""
        for system in self.systems:
            out = Path("results/fact") / system
            for step, read in STEPS:
                (self.folder / out / f"{WRITTEN[step]}.jsonl").unlink(missing_ok=True)
                source = Path("data/test_data/raw_data") / f"{system}.jsonl"
                self._reference(
                    "-m", f"utils.{step}", "--raw_data_path", str(source if read == "raw" else out / f"{read}.jsonl"),
                    "--output_path", str(out / f"{WRITTEN[step]}.jsonl"), "--n_total_process", str(WORKERS),
                    "--query_data_path", "data/prompt_data/query.jsonl",
                )  # fmt: skip

    def record_pages(self) -> None:
        """Keep the reports on the first tasks, with the result of the reference's scraping for every URL."""
        page = {"url_content": "Sorts grew by up to 29 %, and then a little more. " * 60}
        for system in self.systems:
            out = self.folder / "results/fact" / system
            out.mkdir(parents=True)
            groups = {url: page | {"facts": [f"Growth {n}." for n in range(3)]} for url in URLS}
            raw = self.folder / "data/test_data/raw_data" / f"{system}.jsonl"
            reports = read_rows(raw)[: self.tasks]
            _write(raw, reports)
            lines = [row | {"citations": [], "citations_deduped": groups} for row in reports]
            _write(out / "scraped.jsonl", lines)

    def evaluate(self, protocol: dict[str, str]) -> None:
        """The same evaluation by adjudge in this process, with a new store."""
        with self._config(protocol) as config:
            evaluate(RunConfig.of(config))

    @contextmanager
    def _config(self, protocol: dict[str, str]) -> Iterator[dict[str, object]]:
        with tempfile.TemporaryDirectory() as place:
            yield {
                "tasks": str(self.folder),
                "format": "deepresearch-bench",
                "articles": "raw",
                "protocols": [{"call": "published", "checkout": str(self.folder), **protocol}],
                "judge": {"backend": "openai", "url": self.judge.url, "model": "judge"},
                "judge_check": "off",  # the reference tries no judge before it asks
                "fetch": {"mode": "off"},
                "select": {"systems": list(self.systems)},
                "store": f"{place}/store",
                "out": f"{place}/run",
            }

    def _reference(self, *command: str) -> None:
        environment = reference_environment(self.folder, JUDGE_URL=self.judge.url)
        done = subprocess.run(
            [sys.executable, *command], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]


def repeated(bench: Path, tasks: int, copies: int) -> tuple[str, ...]:
    """Make `tasks` tasks of the published ones, and `copies` of each system; the systems' names."""
    data = bench / "data"
    for stale in (data / "test_data/cleaned_data").glob("*tickr*"):
        stale.unlink()
    files = ["prompt_data/query", "criteria_data/criteria", "test_data/cleaned_data/reference"]
    for name in (*files, *(f"test_data/raw_data/{system}" for system in SYSTEMS)):
        found = sorted(read_rows(data / f"{name}.jsonl"), key=lambda row: row["id"])
        again = [_numbered(found[n % len(found)], n, n // len(found)) for n in range(tasks)]
        _write(data / f"{name}.jsonl", again)
    (data / "test_data/raw_data/reference.jsonl").unlink(missing_ok=True)
    names = [f"{system}-{copy}" for copy in range(copies) for system in SYSTEMS]
    for name in names:
        raw = data / "test_data/raw_data"
        articles = read_rows(raw / f"{name.rpartition('-')[0]}.jsonl")
        _write(raw / f"{name}.jsonl", [row | {"article": f"{row['article']}\n\n{name}"} for row in articles])
    for system in SYSTEMS:
        (data / f"test_data/raw_data/{system}.jsonl").unlink()
    return tuple(names)


def _numbered(row: dict[str, object], number: int, repetition: int) -> dict[str, object]:
    changed = {"id": number + 1, "prompt": f"{row['prompt']} ({repetition})"}
    if "article" in row:
        changed["article"] = f"{row['article']}\n\n{repetition}"
    return row | changed


def _write(file: Path, lines: list[dict[str, object]]) -> None:
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def beside(name: str, bench: Bench, ours: Callable[[], None], theirs: Callable[[], None], quick: bool) -> Row:
    """Reports a second of both sides, whose requests are as many."""
    calls: dict[str, set[int]] = {"ours": set(), "peer": set()}

    def counted(side: str, work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            bench.judge.calls()
            work()
            calls[side].add(bench.judge.calls())

        return run

    row = compare(
        name,
        counted("ours", ours),
        counted("peer", theirs),
        peer_name="the benchmark's own code",
        n=bench.reports,
        quick=quick,
    )
    assert calls["ours"] == calls["peer"] and len(calls["ours"]) == 1, calls
    return msgspec.structs.replace(
        row,
        peer_name=f"{row.peer_name}; {calls['ours'].pop():,} calls each",
        ours=row.n / row.ours,
        peer=row.n / (row.peer or 1),
        unit="reports/s",
    )


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """The published scripts' ten workers, and RACE with many."""
    if shared_folder() is None or reference_folder() is None:
        sys.stderr.write(
            "No rows: set ADJUDGE_SHARED and ADJUDGE_REFERENCE to the folders with the benchmark's data and code\n"
        )
        return
    tasks, copies = (QUICK_TASKS, QUICK_COPIES) if quick else (TASKS, COPIES)
    with tempfile.TemporaryDirectory() as place:
        folder = bench_folder(Path(place), "deep_research_bench_tickr")
        systems = repeated(folder, tasks, copies)
        with published_judge(folder) as judge:
            bench = Bench(folder, systems, tasks, judge)
            race = {"name": "race"}
            for workers in (WORKERS, MANY_WORKERS):
                name = f"RACE by published calls, reference with {workers} threads"
                if wanted(name):
                    theirs = partial(bench.race, workers)
                    yield beside(name, bench, partial(bench.evaluate, race), theirs, quick)
            name = f"FACT by published calls, reference with {WORKERS} processes"
            if wanted(name):
                tasks = QUICK_FACT_TASKS if quick else FACT_TASKS
                bench = msgspec.structs.replace(bench, systems=systems[:1], tasks=tasks)
                bench.record_pages()
                scraped = {"name": "fact", "scraped": str(folder / "results/fact")}
                yield beside(name, bench, partial(bench.evaluate, scraped), bench.fact, quick)


if __name__ == "__main__":
    main(__doc__, rows)
