"""`adjudge export`: a run as the files of a benchmark or another tool, and as tables."""

import argparse
import asyncio
from functools import cached_property
from pathlib import Path

import msgspec
import pyarrow as pa

from adjudge.engine.cli.exits import DONE
from adjudge.engine.cli.notices import unfinished
from adjudge.engine.cli.output import out, print_result
from adjudge.engine.commands.import_results import ROWS, RecordedRow
from adjudge.engine.commands.snapshot import pages_read
from adjudge.engine.errors import UsageError
from adjudge.engine.exports.forms import FORMS
from adjudge.engine.formats.dataset import load_tasks
from adjudge.engine.formats.recorded import Identity, RunToWrite
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.scores import read_scores
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.store import Place
from adjudge.engine.store.scorecards import run_cards
from adjudge.engine.work.choice import chosen_dataset
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["export_run"]


class ExportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The files written."""

    out: str
    files: tuple[str, ...]


def export_run(run: str | Path, form: str, out: str | Path) -> ExportResult:
    """Write the run folder `run` into `out` in the form `form`: a benchmark's, or another tool's.

    Of repeated judgments, a benchmark's files hold the first. Raises UsageError, StoreError.
    """
    folder, target = Path(run), Path(out)
    if form not in FORMS:
        raise UsageError(f"format: unknown format {form!r}; use one of {', '.join(FORMS)}")
    source = _Run(folder)
    try:
        files = tuple(str(file) for file in FORMS[form].write(source, target))
    except OSError as error:
        raise UsageError(f"out: {target} cannot be written: {error.strerror}") from error
    if not files:
        raise UsageError(f"format: {folder} has no results for {form}; export protocols of this benchmark")
    return ExportResult(out=str(target), files=files)


class _Run:
    """The run in `folder`, for the writers of forms."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.record = RunRecord.read(folder)

    @cached_property
    def found(self) -> RunRecord:
        return self.record.found_from_here(self._folder)

    def whole(self) -> RunToWrite:
        return _to_write(self._folder, self.record)

    def cards(self) -> list[Scorecard]:
        return run_cards(Place.of(self.found.config.store), self.found.run)

    def scores(self) -> pa.Table:
        return read_scores([self._folder])

    def board(self) -> Leaderboard:
        return build_leaderboard([self._folder])


def _to_write(folder: Path, record: RunRecord) -> RunToWrite:
    """The whole run, its input and its pages as far as they are still there."""
    record = record.found_from_here(folder)
    place = Place.of(record.config.store)
    cards = [card for card in run_cards(place, record.run) if card.repeat == 0]
    rows = _rows(folder / ROWS) if record.recorded else {}
    recorded = all((card.protocol, card.system, card.task_id, card.sample) in rows for card in cards)
    return RunToWrite(
        cards=cards,
        rows=rows,
        prompts=_prompts(record),
        texts={} if recorded else _texts(record),
        pages={} if recorded else asyncio.run(pages_read(place, record, cards)),
    )


def _rows(file: Path) -> dict[Identity, str]:
    decoder = msgspec.json.Decoder(RecordedRow)
    try:
        with file.open("rb") as lines:
            found = [decoder.decode(line) for line in lines]
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{file}: cannot be read ({error}); import the results again") from error
    return {one.identity: one.row for one in found}


def _prompts(record: RunRecord) -> dict[str, str]:
    try:
        tasks = load_tasks(record.config.format, record.config.tasks, record.config.date)
    except UsageError:
        return {}  # the tasks are not where they were; the results do not depend on them
    return {name: task.prompt for name, task in tasks.items()}


def _texts(record: RunRecord) -> dict[tuple[str, str, int], str]:
    try:
        reports = chosen_dataset(record.config).reports
    except UsageError:
        return {}  # likewise
    return {(one.system, one.task_id, one.sample): one.load().text for one in reports}


def run(options: argparse.Namespace) -> int:
    """Write a run in another form."""
    unfinished(options.run_folder)
    print_result(options, export_run(options.run_folder, options.format, options.out), _print_files)
    return DONE


def _print_files(found: ExportResult) -> None:
    """Print where files were written."""
    out().print(f"{len(found.files)} files in {found.out}", markup=False, soft_wrap=True)
