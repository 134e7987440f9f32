"""The run viewer on 1,000,000 judgments: `python -m benchmarks.viewer [--quick] [--json]`.

Creates a run of 20 systems x 1,000 tasks (quick: 100) with 50 judgments, 50 cited statements and 6,000 characters per
report, and 5,000 pages, in the store's own tables; then starts `adjudge view` on it in a new process and opens it in
Chromium. First paint is the browser's first contentful paint, counted from the start of the navigation, with nothing
cached. The first row is the very first page after the command, while indexes are still being read. Peak memory is the
server's, after all pages and searches. Nothing else does this work, so figures are compared with fixed limits (0.5 s
and 450 MB). Needs Chromium, which `make debian` installs.
"""

import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser, sync_playwright

from adjudge.engine.commands.run_folder import SCORE_GROUP
from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.record import RunRecord, TaskRecord
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.store import Place
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.pages import PAGES
from adjudge.engine.store.part import TableKind, stamped, write_part
from adjudge.engine.store.scorecards import SCORECARDS, score_table
from adjudge.engine.tables.files import write_leaderboard
from adjudge.judges import JudgeIdentity
from adjudge.scoring.contract.scorecard import Evidence, Outcome, Scorecard, count_kinds
from adjudge.scoring.deepresearch_bench.fact import Fact
from benchmarks.timing import RUNS, Row, alone, main
from tests.browser import NAMES

AIM_SECONDS, AIM_BYTES = 0.5, 450e6
SYSTEMS, TASKS, QUICK_TASKS, CITED, PAGES_READ = 20, 1_000, 100, 50, 5_000
RUN, JUDGE, SOURCE = "benchmark", "made up", "live trafilatura"
VIEW = [sys.executable, "-m", "adjudge.engine", "view", "--port", "0"]
AT = 1_700_000_000_000_000


class World:
    """A run of `tasks` tasks in `folder`."""

    def __init__(self, folder: Path, tasks: int) -> None:
        self.folder = folder
        self.tasks = tasks
        self.rng = np.random.default_rng(0)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        self.words = ["".join(self.rng.choice(letters, size)) for size in self.rng.integers(3, 10, 4_000)]
        self.sentences = [self.text(14).capitalize() for _ in range(20_000)]
        self.place = Place.of(str(folder / "store"))
        self.keys = self.rng.integers(0, 256, (self.judgments, 16), np.uint8)
        self.verdicts = self.rng.choice(
            ["supported", "unsupported", "unknown"], self.judgments, p=[0.7, 0.2, 0.1]
        )

    @property
    def judgments(self) -> int:
        return SYSTEMS * self.tasks * CITED

    def text(self, size: int) -> str:
        return " ".join(self.words[i] for i in self.rng.integers(0, len(self.words), size))

    def some(self, count: int) -> list[str]:
        return [self.sentences[i] for i in self.rng.integers(0, len(self.sentences), count)]

    def write(self) -> Path:
        """The run's folder."""
        self._judgments()
        self._pages()
        self._reports()
        return self._run()

    def _part(self, kind: TableKind[Any], number: int, columns: dict[str, object]) -> None:
        arrays = [
            _array(columns.get(field.name), field.type, len(columns["written_at"])) for field in kind.schema
        ]  # type: ignore[arg-type]
        table = pa.Table.from_arrays(arrays, schema=stamped(kind.schema))
        write_part(self.place / kind.name, f"{number:020d}-0000-000000.parquet", table, kind)

    def _judgments(self) -> None:
        replies = pa.array([self.text(60) for _ in range(5_000)])
        size = 40_000
        for number, start in enumerate(range(0, self.judgments, size)):
            keys = self.keys[start : start + size]
            n = len(keys)
            analysis = replies.take(pa.array(self.rng.integers(0, len(replies), n))).to_pylist()
            verdicts = self.verdicts[start : start + n].tolist()
            answers = [
                f'{{"analysis":"{said}","items":{{"c01":"{verdict}"}}}}'
                for said, verdict in zip(analysis, verdicts, strict=True)
            ]
            columns: dict[str, object] = {
                "key": [key.tobytes() for key in keys],
                "group": [key.tobytes() for key in keys[::-1]],
                "question": "Backed",
                "answer": answers,
                "status": "scored",
                "text": answers,
                "finish_reason": "stop",
                "prompt_tokens": np.full(n, 2_000),
                "cached_tokens": np.full(n, 1_500),
                "completion_tokens": np.full(n, 150),
                "seconds": self.rng.random(n),
                "judge": JUDGE,
                "engine": "adjudge",
                "written_at": np.arange(AT + start, AT + start + n),
            }
            self._part(JUDGMENTS, number, columns)

    def _pages(self) -> None:
        size = 1_000
        for number, start in enumerate(range(0, PAGES_READ, size)):
            urls = [f"https://site{i}.example/page" for i in range(start, start + size)]
            texts = [". ".join(self.some(200)) for _ in range(size)]
            columns: dict[str, object] = {
                "key": [_page_key(url) for url in urls],
                "source": SOURCE,
                "url": urls,
                "final_url": urls,
                "status": "read",
                "content_type": "text/html",
                "sha256": "",
                "title": [self.text(6) for _ in urls],
                "description": "",
                "text": texts,
                "detail": "",
                "written_at": np.full(size, AT),
            }
            self._part(PAGES, number, columns)

    def _reports(self) -> None:
        at = 0
        names = [f"system {number:02d}" for number in range(SYSTEMS)]
        (self.folder / "reports").mkdir()
        files = [(self.folder / "reports" / f"{name}.jsonl").open("wb") for name in names]
        size = 2_000
        cards: list[Scorecard] = []
        for task in range(self.tasks):
            for name, file in zip(names, files, strict=True):
                card, text = self._report(str(task), name, at)
                file.write(msgspec.json.encode({"task_id": str(task), "system": name, "text": text}) + b"\n")
                cards.append(card)
                at += CITED
            if len(cards) >= size or task == self.tasks - 1:
                self._cards(cards, task, at)
                cards = []
        for file in files:
            file.close()
        lines = [{"id": str(task), "prompt": self.text(40)} for task in range(self.tasks)]
        (self.folder / "tasks.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, lines)))

    def _report(self, task: str, system: str, at: int) -> tuple[Scorecard, str]:
        pages = self.rng.integers(0, PAGES_READ, CITED).tolist()
        facts = [f"{sentence}." for sentence in self.some(CITED)]
        text = " ".join(
            f"{fact[:-1]} [{i}](https://site{page}.example/page)."
            for i, (fact, page) in enumerate(zip(facts, pages, strict=True))
        )
        verdicts = self.verdicts[at : at + CITED].tolist()
        keys = [key.tobytes().hex() for key in self.keys[at : at + CITED]]
        supported = float(verdicts.count("supported"))
        scores: dict[str, float | None] = {
            metric.name: supported / CITED for metric in Fact().metrics if metric.ratio is None
        }
        scores |= {"supported": supported, "pairs": float(CITED), "judged": float(CITED), "cited": 1.0}
        evidence = tuple(
            Evidence(
                what=fact,
                outcome=Outcome(verdict, words=verdict),
                judgment=key,
                url=f"https://site{page}.example/page",
            )
            for fact, verdict, key, page in zip(facts, verdicts, keys, pages, strict=True)
        )
        card = Scorecard(
            protocol="fact", system=system, task_id=task, sample=0, repeat=0, scores=scores, status="scored",
            evidence=evidence, judgments=tuple(keys), pages=tuple(line.url for line in evidence),
        )  # fmt: skip
        sources = "\n".join(f"{i}. {line.url}" for i, line in enumerate(evidence))
        return card, f"# Report\n\n{text}\n\n## References\n{sources}\n"

    def _cards(self, cards: list[Scorecard], number: int, at: int) -> None:
        self._rows(cards, number, "fact", at)

    def _rows(self, cards: list[Scorecard], number: int, protocol: str, at: int) -> None:
        """Write `cards`, the last of them when `at` judgments are, one a microsecond."""
        metrics = [
            [{"metric": name, "value": value, "reason": None} for name, value in card.scores.items()]
            for card in cards
        ]
        columns: dict[str, object] = {
            "key": [bytes(16)] * len(cards),
            "run": RUN,
            "protocol": protocol,
            "system": [card.system for card in cards],
            "task_id": [card.task_id for card in cards],
            "sample": np.zeros(len(cards)),
            "repeat": np.zeros(len(cards)),
            "metrics": metrics,
            "card": [msgspec.json.encode(card).decode() for card in cards],
            "verdicts": [msgspec.json.encode(count_kinds(card.evidence)).decode() for card in cards],
            "written_at": AT + at - CITED * np.arange(len(cards))[::-1],
        }
        self._part(SCORECARDS, number, columns)

    def _run(self) -> Path:
        run = self.folder / "run"
        run.mkdir()
        pq.write_table(score_table(self.place, RUN), run / "scores.parquet", row_group_size=SCORE_GROUP)
        RunRecord(
            run=RUN,
            started=0.0,
            ended=0.0,
            command=[],
            config=RunConfig(
                tasks=str(self.folder / "tasks.jsonl"),
                reports=[str(self.folder / "reports" / "*.jsonl")],
                protocols=[{"name": "fact", "extraction": "markers"}],
                store=str(self.folder / "store"),
                fetch=FetchConfig(mode="snapshot"),
            ),
            versions={},
            python="",
            judge=JudgeIdentity(JUDGE, JUDGE, "none"),
            prompts={},
            metrics={"fact": Fact().metrics},
            tasks={str(task): TaskRecord("en", f"domain {task % 10}") for task in range(self.tasks)},
            systems=[f"system {number:02d}" for number in range(SYSTEMS)],
            pages=SOURCE,
            rejected=(),
            from_store=0,
            from_judge=self.judgments,
        ).write(run)
        write_leaderboard(build_leaderboard([run]), run)
        return run


def _array(values: object, kind: pa.DataType, length: int) -> pa.Array:
    if values is None:
        return pa.nulls(length, kind)
    if isinstance(values, str):
        values = [values] * length
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind) if isinstance(values, list) else pa.array(values).cast(kind)


def _page_key(url: str) -> bytes:
    return hashlib.blake2b(f"{SOURCE}\n{url}".encode(), digest_size=16).digest()


def paths(world: World) -> dict[str, str]:
    """The pages to look at, by name."""
    report = {"system": "system 07", "task": str(world.tasks // 2), "protocol": "fact"}
    system = {"system": "system 07", "protocol": "fact", "metric": "c_acc"}
    at = (world.tasks // 2 * SYSTEMS + 7) * CITED
    key = world.keys[at].tobytes().hex()
    return {
        "systems": "",
        "a system's reports": f"system?{urlencode({**system, 'sort': '-value'})}",
        "tasks": "tasks?page=3",
        "a task": f"task?{urlencode({'task': str(world.tasks // 2), 'protocol': 'fact'})}",
        "a report": f"report?{urlencode(report)}",
        "evidence and its page": f"evidence?{urlencode({**report, 'n': 20})}",
        "the questions of a report": f"questions?{urlencode(report)}",
        "a question": f"question?{urlencode({**report, 'key': key})}",
        "a question without its report": f"question?key={key}",
        "a search of statements": f"search?{urlencode({'q': world.words[5], 'where': 'statements'})}",
        "a search of answers for what is nowhere": "search?q=zyzzyva&where=answers",
        "a search of pages for what is nowhere": "search?q=zyzzyva&where=pages",
    }


def first_paint(browser: Browser, url: str) -> float:
    """Seconds from the start of the navigation to the first contentful paint, in a new profile."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    painted = page.evaluate(
        """() => new Promise((done) => new PerformanceObserver((list) => {
          const found = list.getEntriesByName("first-contentful-paint");
          if (found.length) done(found[0].startTime);
        }).observe({ type: "paint", buffered: true }))"""
    )
    context.close()
    return float(painted) / 1e3


def peak(process: int) -> float:
    """Bytes of memory that a process held at most."""
    status = Path(f"/proc/{process}/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Make the run, then look at it."""
    runs = 1 if quick else RUNS
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        raise SystemExit("viewer: no Chromium here: `make debian` installs it, as root")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        world = World(Path(folder), QUICK_TASKS if quick else TASKS)
        run = world.write()
        browser = playwright.chromium.launch(executable_path=executable, args=["--headless", "--no-sandbox"])
        browser.new_context().new_page().close()
        began = time.perf_counter()
        with subprocess.Popen([*VIEW, "--json", str(run)], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                url = json.loads(process.stdout.readline())["url"]
                yield alone("viewer: command to address", time.perf_counter() - began, "s", n=world.judgments)
                cold = first_paint(browser, url)
                yield _row(
                    "viewer: first paint right after the start", cold, AIM_SECONDS, "s", world.judgments, 1
                )
                for name, path in paths(world).items():
                    spent = [first_paint(browser, url + path) for _ in range(runs)]
                    yield _row(
                        f"viewer: first paint of {name}",
                        statistics.median(spent),
                        AIM_SECONDS,
                        "s",
                        world.judgments,
                        runs,
                    )
                    yield alone(f"viewer: the first time of {name}", spent[0], "s", n=world.judgments)
                yield _row("viewer: peak memory", peak(process.pid), AIM_BYTES, "bytes", world.judgments, 1)
            finally:
                process.terminate()
                process.wait(30)
        browser.close()


def _row(name: str, ours: float, aim: float, unit: str, n: int, runs: int) -> Row:
    return Row(name, ours, aim, "aim", aim / ours, unit, n, runs)


if __name__ == "__main__":
    main(__doc__, rows)
