"""`Dataset`, the input of an evaluation: tasks in memory, reports by their position in a file, and rejected lines."""

import datetime
import glob
import hashlib
import inspect
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.errors import UsageError, nearest, unloadable
from adjudge.engine.formats.hub import SCHEME, HubData, from_hub
from adjudge.engine.formats.rejected import Rejected
from adjudge.fetchers.urls import storable
from adjudge.scoring.contract.case import Case, Report, Task

__all__ = [
    "UNREADABLE",
    "Dataset",
    "FormatError",
    "Key",
    "Located",
    "Prompts",
    "load_dataset",
    "load_tasks",
    "located",
    "rows",
]

T = TypeVar("T")

Key = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | str
"""An id as benchmarks publish it; a task's id is its text."""

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""The exceptions that reading an untrusted row raises."""

ENTRY_POINTS = "adjudge.formats"


class FormatError(UsageError):
    """Input that leaves nothing to evaluate: the file or key, the problem, and what to do, in one line."""


class Line(Protocol):
    """A line with a report; `prompt`, if not empty, identifies its task."""

    @property
    def prompt(self) -> str: ...


L = TypeVar("L", bound=Line)


class Prompts:
    """Finds tasks by their prompt; differences in white space do not matter."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self._asked: dict[str, list[str]] = {}
        for task in tasks.values():
            self._asked.setdefault(_words(task.prompt), []).append(task.id)

    def of(self, prompt: str) -> list[str]:
        """The tasks that ask exactly this."""
        return self._asked.get(_words(prompt), [])

    def check(self, task_id: str, prompt: str) -> None:
        """Raise ValueError if `prompt` belongs to other tasks than `task_id`."""
        owners = self.of(prompt) if prompt else []
        if owners and task_id not in owners:
            raise ValueError(f"a report for task {task_id!r} has the prompt of task {owners[0]!r}")


def _words(prompt: str) -> str:
    return " ".join(prompt.split())


class Located(msgspec.Struct, frozen=True):
    """A report's identity, and how to load it; `digest` is the same for equal rows."""

    system: str
    task_id: str
    sample: int
    digest: bytes
    where: str
    load: Callable[[], Report]

    @property
    def file(self) -> str:
        """The file it is in."""
        return self.where.rpartition(":")[0]

    def named(self, system: str, sample: int) -> "Located":
        """The same report as one of `system`'s, with this number."""
        return msgspec.structs.replace(
            self, system=system, sample=sample, load=partial(_named, self.load, system, sample)
        )

    @classmethod
    def of(cls, report: Report, where: str, load: Callable[[], Report] | None = None) -> "Located":
        """`report` with its place `where`, for messages; it is kept in memory unless `load` can read it again."""
        digest = hashlib.blake2b(msgspec.msgpack.encode(report), digest_size=16).digest()
        return cls(report.system, report.task_id, report.sample, digest, where, load or (lambda: report))


def _named(load: Callable[[], Report], system: str, sample: int) -> Report:
    return msgspec.structs.replace(load(), system=system, sample=sample)


class Dataset(msgspec.Struct, dict=True):
    """Tasks by id in file order, reports, and rejected lines.

    `lacking` says, by protocol, which file the tasks' gold would have been in; `revisions`, by address, which commit of
    a data set of the Hub was read.
    """

    tasks: dict[str, Task]
    reports: list[Located]
    rejected: list[Rejected]
    lacking: dict[str, str] = {}
    revisions: dict[str, str] = {}

    @cached_property
    def systems(self) -> list[str]:
        """Names of all systems, sorted."""
        return sorted({report.system for report in self.reports})

    def cases(self, repeats: int = 1) -> Iterator[Case]:
        """Every case: by task in file order, then system, sample and repeat. Texts are read when needed."""
        order = {task: place for place, task in enumerate(self.tasks)}
        for located in sorted(self.reports, key=lambda r: (order[r.task_id], r.system, r.sample)):
            report = located.load()
            for repeat in range(repeats):
                yield Case(task=self.tasks[located.task_id], report=report, repeat=repeat)


def load_dataset(
    layout: str,
    tasks: str,
    reports: Sequence[str | tuple[str, str]],
    articles: Literal["raw", "cleaned"] | None = None,
    date: datetime.date | None = None,
) -> Dataset:
    """The dataset of a configuration. Raises FormatError for missing files and for contradicting reports.

    A pattern of `reports` with a system's name holds reports of this system, whatever its files say. Several such files
    with the same tasks are the system's samples, numbered in order.
    """
    patterns = [(one, "") if isinstance(one, str) else one for one in reports]
    hub = {one: from_hub(one) for one in (tasks, *(pattern for pattern, _ in patterns)) if _is_on_hub(one)}
    matched = [(_matched(pattern, hub), system) for pattern, system in patterns]
    files = list(dict.fromkeys(file for found, _ in matched for file in found))
    dataset = _read(
        layout, str(hub[tasks].place) if tasks in hub else tasks, files, articles=articles, date=date
    )
    dataset.revisions = {address: found.commit for address, found in hub.items()}
    systems: dict[str, list[str]] = {}
    for found, system in matched:
        if system:
            systems.setdefault(system, []).extend(map(str, found))
    for system, names in systems.items():
        dataset.reports = _renamed(dataset.reports, system, list(dict.fromkeys(names)))
    dataset.reports = _distinct(_with_task(dataset))
    if not dataset.reports:
        why = (
            f"; the first line left out: {dataset.rejected[0]}"
            if dataset.rejected
            else "; add files of reports"
        )
        raise FormatError(f"reports: nothing is left to evaluate{why}")
    return dataset


def load_tasks(layout: str, tasks: str, date: datetime.date | None = None) -> dict[str, Task]:
    """The tasks of a configuration by id, whatever its reports. Raises FormatError for missing files."""
    return _read(layout, str(from_hub(tasks).place) if _is_on_hub(tasks) else tasks, [], date=date).tasks


def _is_on_hub(path: str) -> bool:
    return path.startswith(SCHEME)


@cache
def _readers() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def _loaded(reader: EntryPoint) -> Callable[..., Dataset]:
    try:
        read: Callable[..., Dataset] = reader.load()
    except Exception as error:  # importing runs code that is not ours
        raise FormatError(unloadable("format", reader.name, error)) from error
    return read


_LACKS = {"articles": "has one form of articles", "date": "has no placeholders to fill"}
"""Why a format does not accept an option of the configuration."""


def _read(layout: str, tasks: str, reports: list[Path], **options: object) -> Dataset:
    if not tasks:
        raise FormatError("tasks: is missing; add the path of a file or folder of tasks")
    readers = _readers()
    if layout not in readers:
        raise FormatError(f"format: unknown format {layout!r}; {nearest(layout, sorted(readers))}")
    if not Path(tasks).exists():
        raise FormatError(f"tasks: {tasks} does not exist; give a file or folder of tasks")
    read = _loaded(readers[layout])
    given = {name: value for name, value in options.items() if value is not None}
    for name in given.keys() - inspect.signature(read).parameters.keys():
        raise FormatError(f"{name}: the format {layout!r} {_LACKS[name]}; remove {name}:")
    return read(Path(tasks), reports, **given)


def rows(file: Path, kind: type[T], rejected: list[Rejected]) -> Iterator[tuple[int, int, T]]:
    """(line number, byte offset, row) of a JSON Lines file, or of a Parquet file (offset 0).

    Invalid rows go to `rejected`.
    """
    if file.suffix == ".parquet":
        yield from _of_table(file, kind, rejected)
        return
    decoder = msgspec.json.Decoder(kind)
    try:
        with file.open("rb") as lines:
            offset = 0
            for number, line in enumerate(lines, 1):
                start, offset = offset, offset + len(line)
                if number == 1 and line.startswith(BOM_UTF8):
                    start, line = len(BOM_UTF8), line.removeprefix(BOM_UTF8)
                if not line.strip():
                    continue
                try:
                    line.decode()  # the decoder does not validate raw JSON within a row
                    row = decoder.decode(line)
                except UNREADABLE as error:
                    rejected.append(Rejected.of(file, number, kind, error))
                else:
                    yield number, start, row
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror}") from error


def _of_table(file: Path, kind: type[T], rejected: list[Rejected]) -> Iterator[tuple[int, int, T]]:
    try:
        table = pq.read_table(file).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{file}: cannot be read as Parquet: {error}") from error
    for number, row in enumerate(table, 1):
        try:
            stated = {name: value for name, value in row.items() if value is not None}
            yield number, 0, msgspec.convert(stated, kind)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, number, kind, error))


def located(
    file: Path, kind: type[L], rejected: list[Rejected], prompts: Prompts, report: Callable[[Path, L], Report]
) -> Iterator[Located]:
    """The reports of a JSON Lines file, `report(file, row)` for each row, read again from the file when needed.

    Reports in Parquet files are not read. Rows for which `report` raises ValueError, and those with another task's
    prompt, go to `rejected`.
    """
    if file.suffix == ".parquet":
        raise FormatError(f"reports: {file}: reports are not read from Parquet; write them as JSON Lines")
    for line, offset, row in rows(file, kind, rejected):
        try:
            made = report(file, row)
            prompts.check(made.task_id, row.prompt)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, line, kind, error))
        else:
            yield Located.of(made, f"{file}:{line}", partial(_again, file, offset, kind, report))


def _again(file: Path, offset: int, kind: type[L], report: Callable[[Path, L], Report]) -> Report:
    with file.open("rb") as lines:
        lines.seek(offset)
        return report(file, msgspec.json.decode(lines.readline(), type=kind))


def _matched(pattern: str, hub: Mapping[str, HubData]) -> list[Path]:
    """The files of a pattern, numbers in their names in order of size."""
    if pattern in hub:
        return sorted(hub[pattern].files, key=lambda file: _by_number(str(file)))
    files = glob.glob(pattern, recursive=True)  # noqa: PTH207 - patterns may be absolute
    if not files:
        raise FormatError(f"reports: {pattern} matches no file; correct the path or pattern")
    for file in files:
        if storable(file) != file:
            raise FormatError(f"reports: {file!r} has a name that is not UTF-8; rename the file")
    return [Path(file) for file in sorted(files, key=_by_number)]


def _by_number(name: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"([0-9]{1,18})", name)
    return [(1, int(part), part) if place % 2 else (0, 0, part) for place, part in enumerate(parts)]


def _renamed(reports: Sequence[Located], system: str, files: Sequence[str]) -> list[Located]:
    """`reports`, with those of `files` as `system`'s; where files have the same tasks, each is a sample."""
    first = {file: place for place, file in enumerate(files)}
    own = [one for one in reports if one.file in first]
    said: dict[str, str] = {}
    for one in own:
        if said.setdefault(one.file, one.system) != one.system:
            raise FormatError(
                f"reports: {one.file} has the reports of several systems ({said[one.file]}, {one.system}), which "
                f"cannot all be {system!r}; name the file without system:"
            )
    seen: dict[tuple[str, int], str] = {}
    sampled = any(seen.setdefault((one.task_id, one.sample), one.file) != one.file for one in own)
    width = 1 + max((one.sample for one in own), default=0)
    return [
        one.named(system, one.sample + width * first[one.file] * sampled) if one.file in first else one
        for one in reports
    ]


def _with_task(dataset: Dataset) -> Iterator[Located]:
    for report in dataset.reports:
        if report.task_id in dataset.tasks:
            yield report
        else:
            file, _, line = report.where.rpartition(":")
            dataset.rejected.append(Rejected(file, int(line), f"unknown task {report.task_id!r}"))


def _distinct(reports: Iterator[Located]) -> list[Located]:
    """Each identity once. Raises FormatError if two rows of one identity differ."""
    seen: dict[tuple[str, str, int], Located] = {}
    for report in reports:
        first = seen.setdefault((report.system, report.task_id, report.sample), report)
        if first.digest != report.digest:
            raise FormatError(
                f"{report.where}: system {report.system!r}, task {report.task_id!r}, sample {report.sample} was given "
                f"before with other content ({first.where}); number the runs of one agent with `sample`"
            )
    return list(seen.values())
