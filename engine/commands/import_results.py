"""`adjudge import`: recorded results of a published benchmark as a run."""

import argparse
import asyncio
import hashlib
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from adjudge.engine.commands.exits import DONE, INCOMPLETE
from adjudge.engine.commands.notices import print_leaderboard, rejected
from adjudge.engine.commands.output import out, print_result
from adjudge.engine.commands.run_folder import make_folder, versions, write_run
from adjudge.engine.config.metrics import headlines
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import StoreError, UsageError, nearest, unwritable
from adjudge.engine.exports.forms import BENCHMARKS
from adjudge.engine.formats.dataset import FormatError
from adjudge.engine.formats.folders import (
    READERS,
    read_results,
)
from adjudge.engine.formats.recorded import ROWS, Identity, Results
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord, TaskRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import leaderboard_of
from adjudge.engine.statistics.placement import Statistics
from adjudge.engine.store import PageStore, Place, ScorecardStore
from adjudge.engine.store.scorecards import score_table
from adjudge.engine.tables.files import write_leaderboard
from adjudge.fetchers.files import write_whole
from adjudge.fetchers.snapshot import write_pages
from adjudge.judges import JudgeIdentity
from adjudge.judges.plural import plural
from adjudge.scoring.contract.protocol import ScoringProtocol
from adjudge.scoring.contract.scorecard import Bounds, Metric, Scorecard, explained

TASKS, REPORTS, PAGES = "tasks.jsonl", "reports.jsonl", "pages"
_UNKNOWN = "an unknown judge"


class RecordedRow(msgspec.Struct, frozen=True):
    """A line of recorded.jsonl: what a scorecard of the run was read from."""

    identity: Identity
    row: str


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was imported into the run folder `out`; `pages` counts recorded pages, a snapshot in its folder `pages`."""

    out: str
    scorecards: int
    unscored: int
    systems: tuple[str, ...]
    tasks: int
    pages: int
    rejected: tuple[Rejected, ...]
    leaderboard: Leaderboard


def import_results(
    folder: str | Path,
    benchmark: str,
    out: str | Path,
    *,
    judge: str | None = None,
    system: str | None = None,
) -> ImportResult:
    """Write the results of `benchmark` in `folder` as a run into the new folder `out`.

    `judge` names who judged, `system` the one that results of a single file are about. Raises UsageError.
    """
    target = Path(out)
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise UsageError(f"out: {target} {_why_not(target)}")
    read = READERS.get(benchmark)
    if read is None:
        raise FormatError(f"format: unknown format {benchmark!r}; {nearest(benchmark, BENCHMARKS)}")
    results = read_results(Path(folder), benchmark, read, system)
    make_folder(target)
    record = _record(results, benchmark, target, judge or _UNKNOWN)
    with ExitStack() as unfinished:
        unfinished.callback(shutil.rmtree, target, ignore_errors=True)  # it was new; half a run is in the way
        try:
            board = _write(results, record, target)
        except StoreError:
            raise
        except OSError as error:
            raise UsageError(f"out: {unwritable(error, target)}") from error
        unfinished.pop_all()
    return ImportResult(
        out=str(target),
        scorecards=len(results.found),
        unscored=sum(one.card.status == "unscored" for one in results.found),
        systems=tuple(record.systems),
        tasks=len(record.tasks),
        pages=len(results.pages),
        rejected=tuple(results.rejected),
        leaderboard=board,
    )


def _why_not(target: Path) -> str:
    """What is in the way of a new run in `target`, and what to do."""
    left = {TASKS, REPORTS, ROWS, PAGES, "store"}
    if target.is_dir() and left >= {one.name for one in target.iterdir()} >= {ROWS}:
        return "holds half an import, whose process was killed; remove it, or pass a new folder"
    return "is not empty; pass a new folder"


def _write(results: Results, record: RunRecord, out: Path) -> Leaderboard:
    """Write everything of the run into `out`; its leaderboard. Raises UsageError, StoreError, OSError."""
    _write_input(results, out)
    place = Place.of(record.config.store)
    asyncio.run(_store(results, place, record))
    scores = score_table(place, record.run)
    write_run(out, record, scores, b"")
    board = leaderboard_of([Run.open(out).written], scores, Statistics())
    write_leaderboard(board, out)
    return board


def _record(results: Results, benchmark: str, out: Path, judge: str) -> RunRecord:
    now = time.time()
    names = sorted({one.card.protocol for one in results.found})
    config = RunConfig.of(
        {
            "tasks": str(out / TASKS),
            "reports": [str(out / REPORTS)] if any(report.text for report in results.reports) else [],
            "protocols": names,
            "store": str(out / "store"),
            "out": str(out),
        }
    )
    digest = hashlib.blake2b(judge.encode(), digest_size=8).hexdigest()
    return RunRecord(
        run=f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now))}-{secrets.token_hex(4)}",
        started=now,
        ended=now,
        command=sys.argv,
        config=config,
        versions=versions(),
        python=sys.version.split()[0],
        judge=JudgeIdentity(judge, f"recorded@{digest}", "as recorded"),
        prompts={},
        metrics={protocol.name: _metrics(protocol, results) for protocol in config.resolved.protocols},
        tasks={
            name: msgspec.structs.replace(TaskRecord.of(task), digest="")
            for name, task in results.tasks.items()
        },
        systems=sorted({one.card.system for one in results.found}),
        pages="recorded",
        rejected=tuple(results.rejected),
        from_store=0,
        from_judge=0,
        began_in=os.path.relpath(Path.cwd(), out),
        recorded=benchmark,
    )


def _metrics(protocol: ScoringProtocol, results: Results) -> tuple[Metric, ...]:
    """The metrics that were recorded and those pooled from them, in the protocol's order; at least one ranks."""
    cards = [one.card for one in results.found if one.card.protocol == protocol.name]
    names = dict.fromkeys(name for card in cards for name in card.scores)
    known = {metric.name for metric in protocol.metrics}
    found = [one for one in protocol.metrics if names.keys() >= {*(one.ratio or (one.name,))}]
    found += [
        Metric(name=name, scale=headlines(protocol.metrics)[0].scale) for name in names if name not in known
    ]
    found = [explained(protocol, one) for one in found]
    wanted = results.ranked_by.get(protocol.name)
    if wanted is not None and any(one.name == wanted for one in found):
        return _headed(found, wanted)
    if {one.name for one in headlines(protocol.metrics)} & {one.name for one in found}:
        return tuple(found)
    head = next((metric for metric in found if metric.name.startswith("average")), found[0])
    return _headed(found, head.name)


def _headed(metrics: Sequence[Metric], head: str) -> tuple[Metric, ...]:
    """`metrics` ranked by the one that is called `head`."""
    return tuple(msgspec.structs.replace(metric, headline=metric.name == head) for metric in metrics)


def _write_input(results: Results, out: Path) -> None:
    """Write the tasks, the reports where the results hold them, the rows as they were, and the pages."""
    rows = [RecordedRow(one.identity, one.row) for one in results.found]
    reports = [report for report in results.reports if report.text]
    # The rows first: they tell half an import from a folder of somebody's.
    for name, each in ((ROWS, rows), (TASKS, results.tasks.values()), (REPORTS, reports)):
        encoder = msgspec.json.Encoder()
        write_whole(out / name, b"".join(encoder.encode(one) + b"\n" for one in each))
    if results.pages:
        write_pages(results.pages.values(), out / PAGES)


async def _store(results: Results, place: Place, record: RunRecord) -> None:
    """Keep the scorecards, and the pages that they name, in the run's own store."""
    cards, pages = ScorecardStore(place, record.run), PageStore(place, record.pages)
    at = round(record.started * 1e6)
    await cards.open()
    await pages.open()
    try:
        for one in results.found:
            cards.put(_bounded(one.card, record.metrics[one.card.protocol]), at)
        for url, page in results.pages.items():
            pages.put(url, page)
    finally:
        await cards.close()
        await pages.close()


def _bounded(card: Scorecard, metrics: Iterable[Metric]) -> Scorecard:
    """`card` with bounds for what was not recorded."""
    lacking = [one for one in metrics if one.name in card.scores and card.scores[one.name] is None]
    unknown = {one.name: Bounds.unknown(one) for one in lacking if one.name not in card.bounds}
    return msgspec.structs.replace(card, bounds=card.bounds | unknown) if unknown else card


def run(options: argparse.Namespace) -> int:
    """Write recorded results as a run and print its leaderboard."""
    found = import_results(
        options.folder, options.format, options.out, judge=options.judge, system=options.system
    )
    rejected(found.rejected)
    print_result(options, found, _print_run)
    return INCOMPLETE if found.rejected or found.unscored else DONE


def _print_run(run: ImportResult) -> None:
    """Print an imported run: its leaderboard, and what was read."""
    print_leaderboard(run.leaderboard, Path(run.out) / "leaderboard.html")
    pages = f"; pages: {run.pages} recorded, in {Path(run.out) / PAGES}" if run.pages else ""
    out().print(
        f"{plural(run.scorecards, 'recorded scorecard')}, {run.unscored} unscored{pages}",
        markup=False,
        soft_wrap=True,
    )
