"""The main flow: report files in; scores, their evidence and a leaderboard out.

`adjudge evaluate`: reports scored, and their leaderboard.
"""

import argparse
import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import pyarrow as pa

from adjudge.engine.commands.exits import DONE, INCOMPLETE
from adjudge.engine.commands.interruption import ENDS_S, interruptible, to_its_end
from adjudge.engine.commands.judge import check_judges
from adjudge.engine.commands.notices import print_leaderboard, rejected
from adjudge.engine.commands.output import out, print_result, run_config
from adjudge.engine.commands.progress import Step, following, progress_on
from adjudge.engine.commands.run_folder import RunFolder, begun, make_folder
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import LimitReached
from adjudge.engine.evaluation.assembly import open_evaluator, rejected_pages
from adjudge.engine.evaluation.budget import Spent
from adjudge.engine.evaluation.dry_run import complaint, dry_run, longest
from adjudge.engine.evaluation.evaluator import Counts, Evaluator
from adjudge.engine.evaluation.gate import Check, Patience, RunGates
from adjudge.engine.evaluation.memory import give_back, rare_collections
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.runs.course import Course
from adjudge.engine.runs.lacking import absent_pages, lacking_gold
from adjudge.engine.runs.pulse import Reading
from adjudge.engine.runs.record import Efforts, Failures, Judging, Resolution, RunRecord, Spending
from adjudge.engine.runs.tallies import (
    AnswersOfRun,
    ConstantVerdicts,
    ReportLengths,
    SignedReports,
    UnreadPages,
)
from adjudge.engine.store import Place, ScorecardStore
from adjudge.engine.store.scorecards import score_table
from adjudge.engine.tables.terminal import Terminal
from adjudge.engine.telemetry.endpoint import metrics_served
from adjudge.engine.telemetry.logs import about, event
from adjudge.engine.telemetry.metrics import note, page
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import Verdict
from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.scorecard import Scorecard

if TYPE_CHECKING:
    from adjudge.engine.cluster.driver import Cluster

_log = logging.getLogger(__name__)

CHECKED_CASES = 2_000
LONGEST_CASES = 50
CLUSTER_ENDS_S = 60.0
WAITS_S = 5.0
_FINISHING = "everything is scored, so the leaderboard is still written; interrupt again to end at once"

Progress = Callable[[Scorecard], None]
OnStart = Callable[[int, Callable[[], Reading]], Progress]


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
        ends_s = CLUSTER_ENDS_S if config.resolved.is_on_cluster else ENDS_S
        return interruptible(evaluate_async(config, on_start, patience), ends_s)


async def evaluate_async(
    config: RunConfig, on_start: OnStart | None = None, patience: Patience | None = None
) -> RunResult:
    """Evaluate what `config` names, and write its run folder.

    `on_start` gets the number of scorecards to come, and what reads how much was asked and spent; it returns a function
    that is called with each scorecard. Whatever ends the run early, all that was answered until then is in the store,
    and the same call goes on from there. A judge that no longer answers is waited for with `patience`, or as the
    configuration says. Raises UsageError, StoreError, JudgeError and LimitReached.
    """
    started = time.time()
    dataset = await asyncio.to_thread(chosen_dataset, config)
    dataset.rejected += await asyncio.to_thread(rejected_pages, config.fetch)
    reported = {one.task_id for one in dataset.reports}
    judged = list(islice((task for name, task in dataset.tasks.items() if name in reported), CHECKED_CASES))
    for lacking in lacking_gold(config.resolved.protocols, judged):
        _log.warning("%s", lacking)
    if (absent := await asyncio.to_thread(absent_pages, config.fetch, dataset.reports)) is not None:
        _log.warning("%s", absent)
    out, place = Path(config.out), Place.of(config.store)
    make_folder(out)
    run = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(started))}-{secrets.token_hex(4)}"
    course, ledger, gauge = Course(config, dataset), _Ledger(), _Gauge(config)
    await check_judges(config, course, partial(_log.warning, "%s"))
    record = await asyncio.to_thread(begun, config, dataset, run, started, course.scorecards)
    with about(run=run), RunFolder(out, record, gauge) as folder:
        steps = [*course.steps, *ledger.steps, folder.take]
        check = partial(_check_window, config, course)
        async with _open(config, place, patience, check, gauge) as evaluator, metrics_served(evaluator):
            folder.opened(Judging.of(config.resolved.bench, evaluator.judges), evaluator.pages)
            if on_start is not None:
                steps.append(on_start(course.scorecards, gauge))
            evaluator.metrics.planned(course.scorecards)
            names = ", ".join(dict.fromkeys(judge.name for judge in evaluator.judges.values()))
            event(_log, "run started", judge=names, scorecards=course.scorecards)
            with _saying_what_is_stored(evaluator, folder):
                made, unscored = await _score_all(
                    ScorecardStore(place, run), course.batches(ledger.spending), evaluator, steps
                )
        counts = evaluator.counts
        event(_log, "run ended", scorecards=made, unscored=unscored, **msgspec.structs.asdict(counts))
        stopped = course.stopped()
        record = ledger.close(
            folder.record, counts, stopped, {} if gauge.source is None else gauge.source.probed
        )
        give_back()  # what judging took: the leaderboard takes as much again
        numbers = page(evaluator.measured())

        def finish() -> Leaderboard:
            scores = score_table(place, run)
            return folder.finish(record, scores, numbers, lambda read: _leaderboard(read, scores))

        board = await to_its_end(asyncio.to_thread(finish), _FINISHING)
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


def _leaderboard(read: RunRecord, scores: pa.Table) -> Leaderboard:
    # What computes it is imported only then: judging needs none of it.
    from adjudge.engine.statistics.build import leaderboard_of
    from adjudge.engine.statistics.placement import Statistics

    return leaderboard_of([read], scores, Statistics())


class _Ledger:
    """What a run adds up while its scorecards pass."""

    def __init__(self) -> None:
        self.spending = Spending()
        self._efforts = Efforts()
        self._failures = Failures()
        self._unread = UnreadPages()
        self._answers = AnswersOfRun()
        self._constant = ConstantVerdicts()
        self._signs = SignedReports()
        self._lengths = ReportLengths()

    @property
    def steps(self) -> list[Progress]:
        """What takes in every scorecard."""
        return [
            self._efforts.take,
            self._failures.take,
            self._unread.take,
            self._answers.take,
            self._constant.take,
            self._signs.take,
            self._lengths.take,
        ]

    def close(
        self,
        record: RunRecord,
        counts: Counts,
        stopped: Resolution | None,
        probed: dict[str, tuple[Verdict, ...]],
    ) -> RunRecord:
        """The record of the run, which has finished."""
        return msgspec.structs.replace(
            record,
            state="finished",
            due=None,
            ended=time.time(),
            spent=self.spending.result(),
            signs=self._signs.result(),
            lengths=self._lengths.result(),
            effort=self._efforts.result(),
            failures=self._failures.result(),
            unread=self._unread.result(),
            answers=self._answers.result(),
            constant=self._constant.result(),
            from_store=counts.from_store,
            from_judge=counts.from_judge,
            stopped=stopped,
            probed=probed,
        )


class _Spender(Protocol):
    """What asks judges: it knows what was spent, and whether it waits for a judge that does not answer."""

    @property
    def spent(self) -> Spent: ...
    @property
    def is_waiting(self) -> bool: ...
    @property
    def probed(self) -> dict[str, tuple[Verdict, ...]]: ...


class _Gauge:
    """Reads what a run has asked and spent until now, from its `source` once it is open.

    It is waiting once it was seen to wait for a while: a single question may wait for the answer to the next.
    """

    def __init__(self, config: RunConfig) -> None:
        self.source: _Spender | None = None
        self._priced = bool(config.prices)
        self._waits_since = math.inf

    def __call__(self) -> Reading:
        if self.source is None:
            return Reading()
        now, spent = time.monotonic(), self.source.spent
        self._waits_since = min(self._waits_since, now) if self.source.is_waiting else math.inf
        waiting = now - self._waits_since >= WAITS_S
        return Reading(spent.questions, spent.cost if self._priced else None, waiting)


@asynccontextmanager
async def _open(
    config: RunConfig, place: Place, patience: Patience | None, check: Check, gauge: _Gauge
) -> AsyncIterator["Evaluator | Cluster"]:
    """The evaluator in this process, or the cluster's, read by `gauge`: they look the same from here."""
    if not config.resolved.is_on_cluster:
        gauge.source = gates = RunGates(config, patience, check=check)
        async with open_evaluator(config, place, gates=gates) as evaluator:
            yield evaluator
        return
    from adjudge.engine.cluster.driver import open_cluster

    async with open_cluster(config, patience=patience, check=check) as cluster:
        gauge.source = cluster
        yield cluster


async def _check_window(config: RunConfig, course: Course, judge: str, window: int) -> None:
    """Say in one line which prompts do not fit into a judge's window.

    Of many reports, the fifty longest are looked at, and more only if a prompt of these does not fit.
    """
    for count in (LONGEST_CASES, CHECKED_CASES):
        line = complaint((await dry_run(config, longest(course.sample(), count))).notes[judge], window)
        if line is None:
            return
    _log.warning("%s", line)


@contextmanager
def _saying_what_is_stored(evaluator: "Evaluator | Cluster", folder: RunFolder) -> Iterator[None]:
    """A run that ends early inside the block says how much of it is kept."""
    try:
        yield
    except JudgeError as error:
        if not evaluator.counts.from_judge:
            folder.unanswered()
        raise JudgeError(f"{error}{_kept(evaluator.counts.from_judge)}", error.trouble) from error
    except LimitReached as error:
        raise LimitReached(f"{error}{_kept(evaluator.counts.from_judge)}") from error


def _kept(answers: int) -> str:
    if not answers:
        return "; nothing was stored"
    kept = f"{plural(answers, 'answer')} of this run {'is' if answers == 1 else 'are'} stored"
    return f"; {kept}, and the same command continues from there"


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
            async for some in evaluator.scored(cases):
                await scorecards.keep(some, time.time_ns() // 1000)
                made += len(some)
                for card, _ in some:
                    unscored += card.status == "unscored"
                    note(card, evaluator.metrics)
                    for step in steps:
                        step(card)
    finally:
        await scorecards.close()
    return made, unscored


def run(options: argparse.Namespace) -> int:
    """Score reports and print the leaderboard."""
    config, console = run_config(options), Terminal(stderr=True)
    with progress_on(console) as on_start, following(config.out, console, view=options.view) as follow:

        def begin(total: int, reading: Callable[[], Reading]) -> Step:
            follow()
            return on_start(total, reading)

        result = evaluate(config, begin)
    rejected(result.rejected)
    print_result(options, result, _print_run)
    return DONE if result.complete else INCOMPLETE


def _print_run(run: RunResult) -> None:
    """Print a finished run: its leaderboard, and the work it took."""
    print_leaderboard(run.leaderboard, Path(run.out) / "leaderboard.html")
    console = out()
    asked = " (all answered from the store)" if run.from_store and not run.from_judge else ""
    console.print(
        f"{plural(run.scorecards, 'scorecard')}, {run.unscored} unscored; judgments: {run.from_judge} asked, "
        f"{run.from_store} from the store{asked}; pages: {run.pages_read} read, {run.pages_from_store} from the store; "
        f"{run.seconds:.1f} s",
        markup=False,
        soft_wrap=True,
    )
