"""The main flow: report files in; scores, their evidence and a leaderboard out."""

import asyncio
import logging
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.commands.interruption import ENDS_S, interruptible
from adjudge.engine.config.errors import ConfigError
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import LimitReached
from adjudge.engine.evaluation.assembly import make_book, open_evaluator, rejected_pages
from adjudge.engine.evaluation.dry_run import complaint, dry_run, longest
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.evaluation.gc_tuning import rare_collections
from adjudge.engine.evaluation.trust import Check, Patience, RunTrust
from adjudge.engine.formats import Dataset, Rejected
from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.leaderboard.build import leaderboard_of
from adjudge.engine.leaderboard.statistics import Statistics
from adjudge.engine.records.choice import chosen_dataset
from adjudge.engine.records.course import Course
from adjudge.engine.records.effort import Effort, Efforts
from adjudge.engine.records.failures import Failures
from adjudge.engine.records.judging import Judging
from adjudge.engine.records.record import RunRecord, TaskRecord, metrics_of
from adjudge.engine.records.resolution import Resolution
from adjudge.engine.records.spending import Spending
from adjudge.engine.rendering.files import write_leaderboard
from adjudge.engine.store import Place, ScorecardStore
from adjudge.engine.store.scorecards import score_table
from adjudge.engine.telemetry.endpoint import metrics_served
from adjudge.engine.telemetry.families import page
from adjudge.engine.telemetry.logs import about, event
from adjudge.engine.telemetry.scorecard import note
from adjudge.judges.errors import JudgeError
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.scorecard import Scorecard

if TYPE_CHECKING:
    from adjudge.engine.cluster.driver import Cluster

__all__ = ["Progress", "RunResult", "evaluate", "evaluate_async", "make_folder", "versions", "write_run"]

_log = logging.getLogger(__name__)

CHECKED_CASES = 2_000
CLUSTER_ENDS_S = 60.0
SCORE_GROUP = 1 << 16  # rows: a reader of one system's scores opens few of them

Progress = Callable[[Scorecard], None]
OnStart = Callable[[int], Progress]


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to. `from_store` and `from_judge` count judgments, `pages_*` pages, `unscored` scorecards.

    `stopped` says how a run ended that was to stop when its comparisons were resolved.
    """

    out: str
    scorecards: int
    unscored: int
    rejected: tuple[Rejected, ...]
    from_store: int
    from_judge: int
    pages_from_store: int
    pages_read: int
    seconds: float
    leaderboard: Leaderboard
    stopped: Resolution | None = None

    @property
    def complete(self) -> bool:
        """Whether every line was taken and every scorecard scored."""
        return not self.unscored and not self.rejected


def evaluate(
    config: RunConfig, on_start: OnStart | None = None, patience: Patience | None = None
) -> RunResult:
    """`evaluate_async`, in an event loop of its own."""
    with rare_collections():
        ends_s = CLUSTER_ENDS_S if config.is_on_cluster() else ENDS_S
        return interruptible(evaluate_async(config, on_start, patience), ends_s)


async def evaluate_async(
    config: RunConfig, on_start: OnStart | None = None, patience: Patience | None = None
) -> RunResult:
    """Evaluate what `config` names, and write its run folder.

    `on_start` gets the number of scorecards to come, and returns a function that is called with each. Whatever ends
    the run early, all that was answered until then is in the store, and the same call goes on from there. A judge that
    no longer answers is waited for with `patience`, or as the configuration says. Raises UsageError, StoreError,
    JudgeError and LimitReached.
    """
    started = time.time()
    dataset = await asyncio.to_thread(chosen_dataset, config)
    dataset.rejected += await asyncio.to_thread(rejected_pages, config.fetch)
    out, place = Path(config.out), Place.of(config.store)
    make_folder(out)
    run = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(started))}-{secrets.token_hex(4)}"
    course, spending, efforts, failures = Course(config, dataset), Spending(), Efforts(), Failures()
    steps = [*course.steps, efforts.take, failures.take]
    if on_start is not None:
        steps.append(on_start(course.scorecards))
    with about(run=run):
        check = partial(_check_window, config, course)
        async with _open(config, place, patience, check) as evaluator, metrics_served(evaluator):
            evaluator.metrics.planned(course.scorecards)
            names = ", ".join(dict.fromkeys(judge.name for judge in evaluator.judges.values()))
            event(_log, "run started", judge=names, scorecards=course.scorecards)
            with _saying_what_is_stored(evaluator):
                made, unscored = await _score_all(
                    ScorecardStore(place, run), course.batches(spending), evaluator, steps
                )
        counts = evaluator.counts
        event(_log, "run ended", scorecards=made, unscored=unscored, **msgspec.structs.asdict(counts))
    stopped = course.stopped()
    record = _record(config, dataset, evaluator, run, started, spending, efforts.result(), failures, stopped)
    scores = await asyncio.to_thread(score_table, place, run)
    await asyncio.to_thread(write_run, out, record, scores, page(evaluator.measured()))
    written = [RunRecord.read(out)]  # numbers as any later leaderboard reads them: 100 is 100.0
    board = await asyncio.to_thread(leaderboard_of, written, scores, Statistics())
    await asyncio.to_thread(write_leaderboard, board, out)
    return RunResult(
        out=str(out),
        scorecards=made,
        unscored=unscored,
        rejected=tuple(dataset.rejected),
        from_store=counts.from_store,
        from_judge=counts.from_judge,
        pages_from_store=counts.pages_from_store,
        pages_read=counts.pages_read,
        seconds=time.time() - started,
        leaderboard=board,
        stopped=stopped,
    )


def _open(
    config: RunConfig, place: Place, patience: Patience | None, check: Check
) -> AbstractAsyncContextManager["Evaluator | Cluster"]:
    """The evaluator in this process, or the cluster's: they look the same from here."""
    if not config.is_on_cluster():
        return open_evaluator(config, place, trust=RunTrust(config, patience, check=check))
    from adjudge.engine.cluster.driver import open_cluster

    return open_cluster(config, patience=patience, check=check)


async def _check_window(config: RunConfig, course: Course, judge: str, window: int) -> None:
    """Say in one line which prompts do not fit into a judge's window; of many reports, the longest are looked at."""
    cases = longest(course.sample(), CHECKED_CASES)
    line = complaint((await dry_run(config, cases)).notes[judge], window)
    if line is not None:
        _log.warning("%s", line)


@contextmanager
def _saying_what_is_stored(evaluator: "Evaluator | Cluster") -> Iterator[None]:
    """A run that ends early inside the block says how much of it is kept."""
    try:
        yield
    except JudgeError as error:
        raise JudgeError(f"{error}{_kept(evaluator.counts.from_judge)}", error.trouble) from error
    except LimitReached as error:
        raise LimitReached(f"{error}{_kept(evaluator.counts.from_judge)}") from error


def _kept(answers: int) -> str:
    if not answers:
        return "; nothing was stored"
    return f"; {answers:,} answers of this run are stored, and the same command continues from there"


async def _score_all(
    scorecards: ScorecardStore,
    batches: Iterable[Iterable[Case]],
    evaluator: "Evaluator | Cluster",
    steps: list[Progress],
) -> tuple[int, int]:
    """Score cases, batch by batch, into `scorecards`; how many there are, and how many are unscored."""
    evaluator.metrics.watch(scorecards)
    made = unscored = 0
    await scorecards.open()  # what cannot be read at the end is said before anything is asked
    try:
        for cases in batches:
            async for card in evaluator.run(cases):
                scorecards.put(card, time.time_ns() // 1000)
                made += 1
                unscored += card.status == "unscored"
                note(card, evaluator.metrics)
                for step in steps:
                    step(card)
    finally:
        await scorecards.close()
    return made, unscored


def _record(
    config: RunConfig,
    dataset: Dataset,
    evaluator: "Evaluator | Cluster",
    run: str,
    started: float,
    spending: Spending,
    effort: dict[str, Effort],
    failures: Failures,
    stopped: Resolution | None,
) -> RunRecord:
    protocols = config.scoring_protocols()
    judging = Judging.of(config.bench, evaluator.judges)
    return RunRecord(
        run=run,
        started=started,
        ended=time.time(),
        command=sys.argv,
        config=config,
        versions=versions(),
        python=sys.version.split()[0],
        judge=judging.judge,
        judges=judging.judges,
        media=judging.media,
        prompts=make_book(config).digests() | config.published_prompts(),
        metrics={protocol.name: metrics_of(protocol, dataset.tasks.values()) for protocol in protocols},
        tasks={task.id: TaskRecord.of(task, protocols) for task in dataset.tasks.values()},
        systems=dataset.systems,
        spent=spending.result(),
        effort=effort,
        pages=evaluator.pages,
        rejected=tuple(dataset.rejected),
        from_store=evaluator.counts.from_store,
        from_judge=evaluator.counts.from_judge,
        stopped=stopped,
        criteria=config.criteria_digests(),
        failures=failures.result(),
        lacking={
            name: why for name, why in dataset.lacking.items() if any(name == one.name for one in protocols)
        },
        revisions=dataset.revisions,
        began_in=os.path.relpath(Path.cwd(), config.out),
    )


def make_folder(out: Path) -> None:
    """Make the run's folder, before anything is asked. Raises ConfigError if nothing can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            return
    except OSError as error:
        raise ConfigError(f"out: {out} cannot be written: {error.strerror}") from error


def versions() -> dict[str, str]:
    """The versions that numbers may depend on, by package."""
    return {name: version(name) for name in ("adjudge", "numpy", "numba", "pyarrow", "trafilatura")}


def write_run(out: Path, record: RunRecord, scores: pa.Table, numbers: bytes) -> None:
    """Write run.json, scores.parquet and metrics.prom into `out`. Raises ConfigError if that cannot be done."""
    try:
        written = out / ".scores.parquet.tmp"
        pq.write_table(scores, written, compression="zstd", compression_level=1, row_group_size=SCORE_GROUP)
        written.rename(out / "scores.parquet")
        (out / "metrics.prom").write_bytes(numbers)
        record.write(out)
    except OSError as error:
        raise ConfigError(f"out: {out} cannot be written: {error.strerror}") from error
