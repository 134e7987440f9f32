"""`adjudge export`: a run as the files of a benchmark or another tool, and as tables."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pyarrow as pa

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.import_results import RecordedRow
from adjudge.engine.commands.judge_data import write_judge_data
from adjudge.engine.commands.notices import unfinished
from adjudge.engine.commands.output import out, print_result
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import StoreError, UsageError, nearest, unwritable
from adjudge.engine.exports.every_eval_ever import write_every_eval_ever
from adjudge.engine.exports.forms import FORMS, Form, JudgeData
from adjudge.engine.exports.harbor import write_rewards
from adjudge.engine.exports.huggingface import write_eval_results, write_space
from adjudge.engine.exports.score_rows import write_scores
from adjudge.engine.exports.trackers import write_mlflow, write_wandb
from adjudge.engine.formats import deepresearchgym, dr3, livedrbench
from adjudge.engine.formats.dataset import load_tasks
from adjudge.engine.formats.deepresearch_bench import write_fact, write_race
from adjudge.engine.formats.recorded import ROWS, Identity, RunToWrite
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.fetchers.files import own_files
from adjudge.judges.plural import plural


class ExportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The files written."""

    out: str
    files: tuple[str, ...]


def export_run(
    run: str | Path,
    form: str,
    out: str | Path,
    other: str | Path | None = None,
    labels: str | Path | None = None,
) -> ExportResult:
    """Write the run folder `run` into `out` in the form `form`: a benchmark's, another tool's, or a judge's data.

    Of repeated judgments, a benchmark's files hold the first. `other` and `labels` are for data to train a
    judge: the run of a stronger one, and people's labels. Raises UsageError, StoreError.
    """
    target = Path(out)
    known = next((one for one in FORMS if one == form), None)
    if known is None:
        raise UsageError(f"format: unknown format {form!r}; {nearest(form, FORMS)}")
    if known not in get_args(JudgeData) and (other is not None or labels is not None):
        raise UsageError("other, labels: only judge-sft and judge-preferences take them; leave them out")
    opened = Run.open(run)
    try:
        with own_files(target) as folder:
            written = list(_write(known, opened, folder, target, other, labels))
    except StoreError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"out: {unwritable(error, target)}") from error
    files = tuple(str(target / file.relative_to(folder)) for file in written)
    if not files:
        raise UsageError(f"format: {run} has no results for {form}; export protocols of this benchmark")
    return ExportResult(out=str(target), files=files)


def _write(
    form: Form, run: Run, out: Path, place: Path, other: str | Path | None, labels: str | Path | None
) -> Iterator[Path]:
    """Write `run` into `out`, which is then moved to `place`; the files. Raises UsageError, StoreError, OSError."""
    record = run.record
    match form:
        case "deepresearch-bench":
            whole = _whole(run)
            yield from write_race(whole, out)
            yield from write_fact(whole, out)
        case "livedrbench":
            categories = {name: task.domain for name, task in record.tasks.items()}
            yield from livedrbench.write_results(_whole(run), out, categories)
        case "dr3-eval":
            yield from dr3.write_results(_whole(run), out)
        case "deepresearchgym":
            yield from deepresearchgym.write_results(_whole(run), out)
        case "scores":
            yield from write_scores(run.scores, record, out)
        case "harbor":
            yield from write_rewards(run.cards, run.config, out)
        case "judge-sft" | "judge-preferences":
            yield from write_judge_data(form, run, out, other, labels)
        case "mlflow":
            yield from write_mlflow(_board(run), run.written, out, place)
        case _:
            yield from _OF_BOARDS[form](_board(run), run.written, out)


def _board(run: Run) -> Leaderboard:
    return run.board or build_leaderboard([run.folder])


_OF_BOARDS = {
    "every-eval-ever": write_every_eval_ever,
    "eval-results": write_eval_results,
    "space": write_space,
    "wandb": write_wandb,
}


def _whole(run: Run) -> RunToWrite:
    """The first judgments, and what they are about: the rows they were read from, or texts and pages."""
    cards = [card for card in run.cards if card.repeat == 0]
    rows = _rows(run.folder / ROWS) if run.record.recorded else {}
    recorded = all((card.protocol, card.system, card.task_id, card.sample) in rows for card in cards)
    return RunToWrite(
        cards=cards,
        rows=rows,
        prompts=_prompts(run.config),
        texts={} if recorded else _texts(run.config),
        pages={} if recorded else run.pages_of(cards),
    )


def _rows(file: Path) -> dict[Identity, str]:
    decoder = msgspec.json.Decoder(RecordedRow)
    try:
        with file.open("rb") as lines:
            found = [decoder.decode(line) for line in lines]
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{file}: cannot be read ({error}); import the results again") from error
    return {one.identity: one.row for one in found}


def _prompts(config: RunConfig) -> dict[str, str]:
    try:
        tasks = load_tasks(config.format, config.tasks, config.date)
    except UsageError:
        return {}  # the tasks are not where they were; the results do not depend on them
    return {name: task.prompt for name, task in tasks.items()}


def _texts(config: RunConfig) -> dict[tuple[str, str, int], str]:
    try:
        reports = chosen_dataset(config).reports
    except UsageError:
        return {}  # likewise
    return {(one.system, one.task_id, one.sample): one.load().text for one in reports}


def run(options: argparse.Namespace) -> int:
    """Write a run in another form."""
    unfinished(options.run_folder)
    exported = export_run(options.run_folder, options.format, options.out, options.other, options.labels)
    print_result(options, exported, _print_files)
    return DONE


def _print_files(found: ExportResult) -> None:
    """Print where files were written."""
    out().print(f"{plural(len(found.files), 'file')} in {found.out}", markup=False, soft_wrap=True)
