"""The forms of results by the names of `--format`: how each is read, if it is a benchmark's own, and written.

The modules of a form are imported when it is read or written: the parser and shell completion need the names alone.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from adjudge.engine.formats.recorded import Results, RunToWrite
    from adjudge.engine.runs.board import Leaderboard
    from adjudge.engine.runs.run import Run

__all__ = ["BENCHMARKS", "FORMS", "Form", "RunToExport"]


class RunToExport(Protocol):
    """A run to be written in another form. A part is read when it is asked for. Raises UsageError, StoreError."""

    run: "Run"

    def whole(self) -> "RunToWrite":
        """Its scorecards, with the rows that they were imported from, and its tasks, reports and pages."""
        ...

    def board(self) -> "Leaderboard":
        """Its leaderboard."""
        ...


Reader = Callable[[Path, str | None, "Results"], None]
"""Adds the results in a folder or file, as a system's where its name is given. Raises FormatError."""
Writer = Callable[[RunToExport, Path], Iterator[Path]]
"""Writes a run into a folder; the files written. Raises UsageError, StoreError, OSError."""


class Form(NamedTuple):
    """A form that a run is written in; results in the form of a benchmark are read too.

    What `adds` writes itself into a folder that may hold more, and replaces nothing there.
    """

    write: Writer
    read: Reader | None = None
    adds: bool = False


def _read_deepresearch_bench(folder: Path, system: str | None, results: "Results") -> None:
    from adjudge.engine.formats.folders import read_deepresearch_bench

    read_deepresearch_bench(folder, system, results)


def _write_deepresearch_bench(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.formats.deepresearch_bench import write_fact, write_race

    whole = source.whole()
    yield from write_race(whole, out)
    yield from write_fact(whole, out)


def _read_livedrbench(folder: Path, system: str | None, results: "Results") -> None:
    from adjudge.engine.formats.folders import read_livedrbench

    read_livedrbench(folder, system, results)


def _write_livedrbench(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.formats.livedrbench import write_results

    categories = {name: task.domain for name, task in source.run.record.tasks.items()}
    return write_results(source.whole(), out, categories)


def _read_dr3(folder: Path, system: str | None, results: "Results") -> None:
    from adjudge.engine.formats.folders import read_dr3

    read_dr3(folder, system, results)


def _write_dr3(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.formats.dr3 import write_results

    return write_results(source.whole(), out)


def _read_rigorous(folder: Path, system: str | None, results: "Results") -> None:
    from adjudge.engine.formats.folders import read_rigorous

    read_rigorous(folder, system, results)


def _write_rigorous(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.formats.rigorous import write_results

    return write_results(source.whole(), out)


def _write_scores(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.exports.score_rows import write_scores

    return write_scores(source.run.scores, source.run.record, out)


def _write_every_eval_ever(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.exports.every_eval_ever import write_every_eval_ever

    return write_every_eval_ever(source.board(), source.run.written, out)


def _write_eval_results(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.exports.huggingface import write_eval_results

    return write_eval_results(source.board(), source.run.written, out)


def _write_space(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.exports.huggingface import write_space

    return write_space(source.board(), source.run.written, out)


def _write_wandb(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.exports.trackers import write_wandb

    return write_wandb(source.board(), source.run.written, out)


def _write_mlflow(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.exports.trackers import write_mlflow

    return write_mlflow(source.board(), source.run.written, out)


def _write_harbor(source: RunToExport, out: Path) -> Iterator[Path]:
    from adjudge.engine.exports.harbor import write_rewards

    return write_rewards(source.run.cards, source.run.config, out)


FORMS: dict[str, Form] = {
    "deepresearch-bench": Form(_write_deepresearch_bench, _read_deepresearch_bench),
    "livedrbench": Form(_write_livedrbench, _read_livedrbench),
    "dr3-eval": Form(_write_dr3, _read_dr3),
    "rigorous": Form(_write_rigorous, _read_rigorous),
    "scores": Form(_write_scores),
    "every-eval-ever": Form(_write_every_eval_ever),
    "eval-results": Form(_write_eval_results),
    "space": Form(_write_space),
    "wandb": Form(_write_wandb, adds=True),
    "mlflow": Form(_write_mlflow, adds=True),
    "harbor": Form(_write_harbor),
}
BENCHMARKS = tuple(name for name, form in FORMS.items() if form.read is not None)
"""The forms that results can be imported from."""
