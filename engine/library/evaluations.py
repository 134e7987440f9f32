"""Evaluations from Python: of what a configuration names, or of rows.

Rows of tasks and reports are lists of dictionaries, data frames or Arrow tables. Results can be waited for from plain
code, an event loop, or a notebook whose loop is already running.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec
import pyarrow as pa

from adjudge.engine.commands import evaluate as command
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.commands.run_folder import is_run, make_folder
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.memory import rare_collections
from adjudge.engine.library.runs import Run
from adjudge.engine.rewards.reward import plain
from adjudge.engine.rewards.source import LoopThread
from adjudge.fetchers.files import whole_file


@runtime_checkable
class Columns(Protocol):
    """A table that others can read as Arrow: a data frame of pandas or polars, an Arrow table, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Rows = Iterable[Mapping[str, object]] | Columns
_IDS = ("id", "task_id")


def write_rows(file: Path, name: str, given: Iterable[object] | Columns) -> str:
    """Write the rows of the argument `name` into `file` as JSON Lines; its path. Raises UsageError."""
    with whole_file(file) as unfinished, unfinished.open("wb") as lines:
        for number, row in enumerate(_rows(given), 1):
            if not isinstance(row, Mapping):
                raise UsageError(f"{name}: row {number}: {type(row).__name__} instead of a mapping")
            try:
                lines.write(msgspec.json.encode(_plain(row), enc_hook=plain) + b"\n")
            except (TypeError, ValueError, RecursionError) as error:
                raise UsageError(f"{name}: row {number}: cannot be written as JSON: {error}") from error
    return str(file)


def _rows(given: Iterable[object] | Columns) -> Iterator[object]:
    if not isinstance(given, Columns):
        yield from given
        return
    for batch in pa.table(given).to_batches():
        yield from batch.to_pylist()


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    """The row without nulls, which data frames put where a row has nothing, and with ids as text."""
    found = {str(key): _without_nulls(value) for key, value in row.items() if value is not None}
    for name in _IDS:
        if isinstance(number := found.get(name), int) and not isinstance(number, bool):
            found[name] = str(number)
    return found


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _without_nulls(each) for key, each in value.items() if each is not None}
    return value


T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]


def finished(work: Work[T]) -> T:
    """The result of `work`, also where an event loop is running in this thread. Ctrl-C lets it write what it has."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return interruptible(work())
    thread = LoopThread("adjudge", _nothing)
    future = thread.submit(lambda _: work())
    try:
        return future.result()
    finally:
        future.cancel()
        thread.close()


async def awaited(work: Work[T]) -> T:
    """The result of `work`, which runs in a separate loop: the caller's need not be free. Cancelling cancels it."""
    thread = await asyncio.to_thread(LoopThread, "adjudge", _nothing)
    future = thread.submit(lambda _: work())
    try:
        return await asyncio.wrap_future(future)
    finally:
        future.cancel()
        await asyncio.to_thread(thread.close)


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield


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
    """`evaluate`, in its own event loop."""
    return await awaited(partial(_evaluate, config, tasks, reports, options))


async def _evaluate(
    config: StrPath | None,
    tasks: StrPath | Rows | None,
    reports: StrPath | Rows | list[StrPath] | None,
    options: dict[str, object],
) -> Run:
    made = _config(config, options)
    out = Path(made.out)
    given: dict[str, Any] = {"tasks": tasks, "reports": reports}
    named = {name: _paths(each) for name, each in given.items() if each is not None}
    files = {name: out / f"{name}.jsonl" for name, paths in named.items() if not paths}
    make_folder(out, files.values())
    try:
        for name, file in files.items():
            named[name] = [write_rows(file, name, given[name])]
        sources = {name: paths[0] if name == "tasks" else paths for name, paths in named.items()}
        result = await command.evaluate_async(_config(config, options | sources) if sources else made)
    finally:
        if not is_run(out):  # the next call would take what is there for somebody else's
            for file in files.values():
                file.unlink(missing_ok=True)
    return Run(result.out)


def _config(config: StrPath | None, options: dict[str, object]) -> RunConfig:
    return RunConfig.of(options, "arguments") if config is None else RunConfig.load(config, **options)


def _paths(given: StrPath | Rows | list[StrPath]) -> list[str]:
    """The paths that are given; none where rows are."""
    if isinstance(given, str | os.PathLike):
        return [os.fspath(given)]
    if not isinstance(given, list):
        return []
    return [os.fspath(one) for one in given if isinstance(one, str | os.PathLike)]
