"""`adjudge export`: a run as the files of a benchmark or another tool, and as tables."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from adjudge.engine.cli.exits import DONE
from adjudge.engine.cli.notices import unfinished
from adjudge.engine.cli.output import out, print_result
from adjudge.engine.commands.import_results import ROWS, RecordedRow
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.exports.every_eval_ever import write_every_eval_ever
from adjudge.engine.exports.harbor import write_rewards
from adjudge.engine.exports.huggingface import write_eval_results, write_space
from adjudge.engine.exports.names import FORMS
from adjudge.engine.exports.trackers import write_mlflow, write_wandb
from adjudge.engine.formats import deepresearch_bench, dr3, livedrbench, rigorous
from adjudge.engine.formats.dataset import load_tasks
from adjudge.engine.formats.recorded import Identity, RunToWrite
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.store.scorecards import SCORE_TYPES
from adjudge.engine.work.choice import chosen_dataset

__all__ = ["WRITERS", "export_run"]

Form = Callable[[Run, Path], Iterator[Path]]
"""Writes a run into a folder; the files written."""


class ExportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The files written."""

    out: str
    files: tuple[str, ...]


def export_run(run: str | Path, form: str, out: str | Path) -> ExportResult:
    """Write the run folder `run` into `out` in the form `form`: a benchmark's, or another tool's.

    Of repeated judgments, a benchmark's files hold the first. Raises UsageError, StoreError.
    """
    target = Path(out)
    if form not in FORMS:
        raise UsageError(f"format: unknown format {form!r}; use one of {', '.join(FORMS)}")
    opened = Run.open(run)
    try:
        files = tuple(str(file) for file in WRITERS[form](opened, target))
    except OSError as error:
        raise UsageError(f"out: {target} cannot be written: {error.strerror}") from error
    if not files:
        raise UsageError(
            f"format: {opened.folder} has no results for {form}; export protocols of this benchmark"
        )
    return ExportResult(out=str(target), files=files)


def _deepresearch_bench(run: Run, out: Path) -> Iterator[Path]:
    whole = _to_write(run)
    yield from deepresearch_bench.write_race(whole, out)
    yield from deepresearch_bench.write_fact(whole, out)


def _livedrbench(run: Run, out: Path) -> Iterator[Path]:
    categories = {name: task.domain for name, task in run.record.tasks.items()}
    yield from livedrbench.write_results(_to_write(run), out, categories)


def _dr3(run: Run, out: Path) -> Iterator[Path]:
    yield from dr3.write_results(_to_write(run), out)


def _rigorous(run: Run, out: Path) -> Iterator[Path]:
    yield from rigorous.write_results(_to_write(run), out)


def _scores(run: Run, out: Path) -> Iterator[Path]:
    """The score rows with the run, its judge, and the tasks' language and domain, in three forms."""
    record, scores = run.record, run.scores
    scores = scores.cast(
        pa.schema({name: SCORE_TYPES.get(name, pa.string()) for name in scores.column_names})
    )
    tasks = [record.tasks.get(name) for name in scores["task_id"].to_pylist()]
    more = {
        "language": [task.language if task else None for task in tasks],
        "domain": [task.domain if task else None for task in tasks],
        "judge": [record.judging.said_of(name) for name in scores["protocol"].to_pylist()],
        "run": [record.run] * len(scores),
    }
    for name, values in more.items():
        scores = scores.append_column(name, pa.array(values, pa.string()))
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(scores, out / "scores.parquet")
    pacsv.write_csv(scores, out / "scores.csv")
    encoder = msgspec.json.Encoder()
    with (out / "scores.jsonl").open("wb") as lines:
        for batch in scores.to_batches(max_chunksize=10_000):
            lines.writelines(encoder.encode(row) + b"\n" for row in batch.to_pylist())
    yield from (out / f"scores.{ending}" for ending in ("parquet", "csv", "jsonl"))


def _board(write: Callable[[Leaderboard, RunRecord, Path], Iterator[Path]]) -> Form:
    """A form that is made of the run's leaderboard."""
    return lambda run, out: write(build_leaderboard([run.folder]), run.written, out)


def _harbor(run: Run, out: Path) -> Iterator[Path]:
    yield from write_rewards(run.cards, run.config, out)


WRITERS: dict[str, Form] = {
    "deepresearch-bench": _deepresearch_bench,
    "livedrbench": _livedrbench,
    "dr3-eval": _dr3,
    "rigorous": _rigorous,
    "scores": _scores,
    "every-eval-ever": _board(write_every_eval_ever),
    "eval-results": _board(write_eval_results),
    "space": _board(write_space),
    "wandb": _board(write_wandb),
    "mlflow": _board(write_mlflow),
    "harbor": _harbor,
}


def _to_write(run: Run) -> RunToWrite:
    """The whole run, its input and its pages as far as they are still there."""
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
    print_result(options, export_run(options.run_folder, options.format, options.out), _print_files)
    return DONE


def _print_files(found: ExportResult) -> None:
    """Print where files were written."""
    out().print(f"{len(found.files)} files in {found.out}", markup=False, soft_wrap=True)
