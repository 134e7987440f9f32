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
from adjudge.engine.commands.run_folder import make_folder
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.memory import rare_collections
from adjudge.engine.library.runs import Run
from adjudge.engine.rewards.reward import plain
from adjudge.engine.rewards.source import LoopThread


@runtime_checkable
class Columns(Protocol):
    """A table that others can read as Arrow: a data frame of pandas or polars, an Arrow table, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Rows = Iterable[Mapping[str, object]] | Columns
_IDS = ("id", "task_id")


def write_rows(file: Path, name: str, given: Iterable[object] | Columns) -> str:
    """Write the rows of the argument `name` into `file` as JSON Lines; its path. Raises UsageError."""
    with file.open("wb") as lines:
        for number, row in enumerate(_rows(given), 1):
            if not isinstance(row, Mapping):
                raise UsageError(f"{name}: row {number}: {type(row).__name__} where a mapping belongs")
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
