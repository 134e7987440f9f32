"""Evaluations from Python: of what a configuration names, or of rows."""

import os
from functools import partial
from pathlib import Path

from adjudge.engine.commands import evaluate as command
from adjudge.engine.commands.run_folder import make_folder
from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.memory import rare_collections
from adjudge.engine.library.rows import Rows, write_rows
from adjudge.engine.library.runs import Run
from adjudge.engine.library.waiting import awaited, finished

__all__ = ["evaluate", "evaluate_async"]

StrPath = str | os.PathLike[str]


def evaluate(
    config: StrPath | None = None,
    *,
    tasks: StrPath | Rows | None = None,
    reports: StrPath | Rows | list[StrPath] | None = None,
    **options: object,
) -> Run:
    """Evaluate what the file `config` names, changed by the keywords, which are the keys of a configuration.

    `tasks` and `reports` are paths, or rows: dictionaries or a data frame with the fields of tasks.jsonl and of
    reports.jsonl. Rows are written into the run's folder (`out`), so that the run can be continued and viewed.
    The same call continues a run that ended early. Raises UsageError, StoreError, JudgeError and LimitReached.
    """
    with rare_collections():
        return finished(partial(_evaluate, config, tasks, reports, options))


async def evaluate_async(
    config: StrPath | None = None,
    *,
    tasks: StrPath | Rows | None = None,
    reports: StrPath | Rows | list[StrPath] | None = None,
    **options: object,
) -> Run:
    """`evaluate`, in an event loop of its own."""
    return await awaited(partial(_evaluate, config, tasks, reports, options))


async def _evaluate(
    config: StrPath | None,
    tasks: StrPath | Rows | None,
    reports: StrPath | Rows | list[StrPath] | None,
    options: dict[str, object],
) -> Run:
    made = _config(config, options)
    out = Path(made.out)
    make_folder(out)
    named: dict[str, object] = {}
    if tasks is not None:
        [named["tasks"]] = _sources(tasks, out / "tasks.jsonl", "tasks")
    if reports is not None:
        named["reports"] = _sources(reports, out / "reports.jsonl", "reports")
    result = await command.evaluate_async(_config(config, options | named) if named else made)
    return Run(result.out)


def _config(config: StrPath | None, options: dict[str, object]) -> RunConfig:
    return RunConfig.of(options, "arguments") if config is None else RunConfig.load(config, **options)


def _sources(given: StrPath | Rows | list[StrPath], file: Path, name: str) -> list[str]:
    """The paths that are given, or that of `file`, in which the given rows then are."""
    if isinstance(given, str | os.PathLike):
        return [os.fspath(given)]
    paths = (
        [os.fspath(one) for one in given if isinstance(one, str | os.PathLike)]
        if isinstance(given, list)
        else []
    )
    return paths or [write_rows(file, name, given)]
