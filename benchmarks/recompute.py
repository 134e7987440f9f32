"""A leaderboard recomputed from 1,000,000 stored judgments after a change: time, memory, and questions asked again.

    python -m benchmarks.recompute [--quick] [--json] [--only WORDS]

20 systems x 1,000 tasks (quick: 10), reports of 6,000 characters, 50 judgments per report: one of RACE, whose weights
are in the gold, and 49 of rubrics, 20 of whose criteria are in a file for all tasks. The engine first fills the store,
using a scripted judge under the name of a server's; that leaves judgments alone, so the first run makes every scorecard
of them, and later ones those that a change is about. Each row is then one `adjudge evaluate` in a new process, from its
start to the written leaderboard, with that server in another process. A row fails unless the run record and the
server's own count agree that exactly the changed questions were asked. Memory is the sum of the peaks of all processes
of the run. There is no peer: rows of a million compare with fixed limits (60 s and 3 GB).
"""

import asyncio
import hashlib
import multiprocessing
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.assembly import make_judge, open_evaluator
from adjudge.engine.evaluation.memory import rare_collections
from adjudge.engine.formats.dataset import load_dataset
from adjudge.engine.runs.record import RunRecord
from adjudge.judges import Question, ScriptedJudge
from adjudge.judges.schema import schema_of
from adjudge.prompts import PromptBook
from benchmarks.judge_server import judge_server
from benchmarks.timing import Row, alone, main
from tests.mock_openai import valid
from tests.processes import descendants
from tests.worlds import ADJUDGE, lines

AIM_SECONDS, AIM_BYTES = 60.0, 3e9  # for a million judgments
SYSTEMS, TASKS, QUICK_TASKS = 20, 1_000, 10
OWN, SHARED, RACE = 29, 20, 1  # questions a report, by what they are about
DIMENSIONS = ("comprehensiveness", "insight", "instruction_following", "readability")
BUILDERS = 2


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated: the weight of RACE's first dimension, its variant, and words added at three places."""

    weight: float = 0.25
    variant: str = "full"
    criterion: str = ""
    shared: str = ""
    report: str = ""


class Change(msgspec.Struct, frozen=True):
    """A version that differs in one thing, and how many questions that makes new for so many tasks."""

    name: str
    version: Version
    asked: Callable[[int], int]


CHANGES = (
    Change("all but judgments", Version(), lambda tasks: 0),  # the first run: no scorecard is stored
    Change("nothing", Version(), lambda tasks: 0),
    Change("a weight of every task", Version(weight=0.4), lambda tasks: 0),
    Change("the metric's variant", Version(variant="no_criteria_weights"), lambda tasks: 0),
    Change("one criterion of one task", Version(criterion=" In euros."), lambda tasks: SYSTEMS),
    Change("one report", Version(report=" The end."), lambda tasks: OWN + SHARED + RACE),
    Change("one criterion of all tasks", Version(shared=" In full."), lambda tasks: SYSTEMS * tasks),
)


class World:
    """Tasks, reports, criteria and a configuration in `folder`, for a judge at `url`."""

    def __init__(self, folder: Path, tasks: int, url: str) -> None:
        self.folder = folder
        self.tasks = tasks
        self.judgments = tasks * SYSTEMS * (OWN + SHARED + RACE)
        self.config = folder / "adjudge.yaml"
        self._url = url
        self._rng = np.random.default_rng(0)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        words = ["".join(self._rng.choice(letters, size)) for size in self._rng.integers(3, 10, 4_000)]
        self.sentences = [
            " ".join(words[i] for i in self._rng.integers(0, len(words), 14)).capitalize() + "."
            for _ in range(20_000)
        ]
        for system in range(SYSTEMS):
            self._reports(system, "")

    def write(self, version: Version) -> None:
        """All files as `version` has them."""
        lines(self.folder / "tasks.jsonl", [self._task(task, version) for task in range(self.tasks)])
        lines(self.folder / "criteria.jsonl", self._criteria(SHARED, "every", version.shared))
        self._reports(0, version.report)
        config = {
            "tasks": "tasks.jsonl",
            "reports": ["reports/*.jsonl"],
            "protocols": [
                {"name": "race", "variant": version.variant},
                {"name": "rubrics", "file": "criteria.jsonl"},
            ],
            "judge": {"backend": "openai", "url": self._url, "model": "mock"},
            "judge_check": "off",  # its questions would be counted beside those that a change is about
            "fetch": {"mode": "off"},
            "store": "store",
            "out": "run",
        }
        self.config.write_bytes(msgspec.yaml.encode(config))

    def _task(self, task: int, version: Version) -> dict[str, object]:
        rest = (1 - version.weight) / (len(DIMENSIONS) - 1)
        weights = dict.fromkeys(DIMENSIONS, rest) | {DIMENSIONS[0]: version.weight}
        criteria = {
            name: [
                {"criterion": f"Number {i} of {name}.", "weight": weight}
                for i, weight in ((1, 0.7), (2, 0.3))
            ]
            for name in DIMENSIONS
        }
        race = {
            "dimension_weight": weights,
            "criterions": criteria,
            "reference": self._text(task, SYSTEMS, 10),
        }
        own = self._criteria(OWN, f"task {task}", version.criterion if task == 0 else "")
        return {"id": str(task), "prompt": f"What of {task}?", "gold": {"race": race, "rubrics": own}}

    def _criteria(self, count: int, of: str, added: str) -> list[object]:
        return [
            {
                "criterion": f"It states fact {i} of {of}.{added if i == 0 else ''}",
                "points": 1 + i % 5,
                "tags": [("facts", "depth")[i % 2]],
            }
            for i in range(count)
        ]

    def _reports(self, system: int, added: str) -> None:
        name = f"system{system:02d}"
        rows: list[object] = [
            {
                "task_id": str(task),
                "system": name,
                "text": f"# {name}\n\n{self._text(task, system, 60)}{added if task == 0 else ''}",
            }
            for task in range(self.tasks)
        ]
        lines(self.folder / "reports" / f"{name}.jsonl", rows)

    def _text(self, task: int, system: int, sentences: int) -> str:
        start = (task * (SYSTEMS + 1) + system) * 7919
        return " ".join(self.sentences[(start + i * 31) % len(self.sentences)] for i in range(sentences))


def build(config: Path, sentences: list[str], part: int) -> int:
    """Put the judgments of every `BUILDERS`th task into the store, by the engine; how many."""

    def judge(book: PromptBook) -> ScriptedJudge:
        named = make_judge(settings.resolved.bench.default, book)
        made = ScriptedJudge(lambda question: _said(question, sentences))
        made.identity = named.identity
        return made

    async def ask() -> int:
        data = load_dataset(settings.format, settings.tasks, settings.reports)
        tasks = {name: place for place, name in enumerate(data.tasks)}
        data.reports = [one for one in data.reports if tasks[one.task_id] % BUILDERS == part]
        async with open_evaluator(settings, judge=judge) as evaluator:
            async for card in evaluator.run(data.cases()):
                assert card.status == "scored", card.reason
        return evaluator.counts.from_judge

    settings = RunConfig.load(config)
    with rare_collections():
        return asyncio.run(ask())


def _said(question: Question[Any], sentences: list[str]) -> str:
    seed = hashlib.blake2b(question.context.digest + question.identity(), digest_size=32).digest()
    place = int.from_bytes(seed[:8], "big")
    analysis = " ".join(sentences[(place + i) % len(sentences)] for i in range(4))
    answer = valid(_schema(question), seed)
    if "analysis" in answer:
        answer["analysis"] = analysis[:400]
    return msgspec.json.encode(answer).decode()


_schemas: dict[tuple[object, ...], dict[str, Any]] = {}


def _schema(question: Question[Any]) -> dict[str, Any]:
    kind = (type(question), question.count, question.options)
    if kind not in _schemas:
        _schemas[kind] = schema_of(question, True)
    return _schemas[kind]


class Spent(msgspec.Struct, frozen=True):
    """What a run took: seconds from start to end of its process, and the peaks of all its processes in bytes, added."""

    seconds: float
    bytes: float


def evaluate(config: Path) -> Spent:
    """`adjudge evaluate` in a process of its own. Raises CalledProcessError if it fails or leaves anything unscored."""
    command = [*ADJUDGE, "evaluate", str(config)]
    peaks: dict[int, float] = {}
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for pid in (process.pid, *descendants(process.pid)):
                peaks[pid] = max(peaks.get(pid, 0.0), peak(pid, process.pid))
            time.sleep(0.2)
        seconds = time.perf_counter() - began
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Spent(seconds, sum(peaks.values()))


def peak(process: int, parent: int) -> float:
    """Bytes of memory that a process held at most until now; 0 if it has ended, or is not yet more than a fork."""
    try:
        started, forked = (Path(f"/proc/{one}/cmdline").read_bytes() for one in (process, parent))
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    if process != parent and started == forked:  # its pages are its parent's
        return 0.0
    return (
        float(next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), 0)) * 1024
    )


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Build the store, then change one thing after the other; each change is of the first version."""
    changes = [change for change in CHANGES if wanted(f"recompute: {change.name} changed")]
    if not changes:
        return
    with tempfile.TemporaryDirectory() as folder, judge_server() as url:
        world = World(Path(folder), QUICK_TASKS if quick else TASKS, url)
        world.write(Version())
        yield _built(world)
        for change in changes:
            world.write(change.version)
            yield from _changed(world, change, url.replace("/v1", "/stats"))


def _built(world: World) -> Row:
    began = time.perf_counter()
    work = [(world.config, world.sentences, part) for part in range(BUILDERS)]
    with multiprocessing.get_context("spawn").Pool(BUILDERS) as pool:
        built = sum(pool.starmap(build, work))
    assert built == world.judgments, built
    name = f"recompute: asking {built:,} scripted questions first, {BUILDERS} processes"
    return alone(name, time.perf_counter() - began, "s", n=built)


def _changed(world: World, change: Change, stats: str) -> Iterator[Row]:
    before = _calls(stats)
    spent = evaluate(world.config)
    record = RunRecord.read(world.folder / "run")
    asked = change.asked(world.tasks)
    assert record.from_judge == _calls(stats) - before == asked, (record.from_judge, asked)
    assert record.from_store == world.judgments - asked, record.from_store
    name, n = f"recompute: {change.name} changed", world.judgments
    yield _row(f"{name}, {asked:,} asked again", spent.seconds, AIM_SECONDS, "s", n)
    yield _row(f"{name}: peak memory", spent.bytes, AIM_BYTES, "bytes", n)


def _calls(stats: str) -> int:
    with urllib.request.urlopen(stats) as response:
        calls: int = msgspec.json.decode(response.read())["calls"]
    return calls


def _row(name: str, ours: float, aim: float, unit: str, n: int) -> Row:
    return (
        Row(name, ours, aim, "aim", aim / ours, unit, n, 1)
        if n >= 1_000_000
        else alone(name, ours, unit, n=n)
    )


if __name__ == "__main__":
    main(__doc__, rows)
