"""`Dataset`, the input of an evaluation: tasks in memory, reports by their position in a file, and rejected lines."""

import datetime
import hashlib
import inspect
import logging
import random
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeVar

import msgspec

from adjudge.engine.errors import nearest, unloadable
from adjudge.engine.file_kinds import DOCUMENTS, KINDS, TABLES
from adjudge.engine.formats.columns import Columns, Prompts, renamed
from adjudge.engine.formats.documents import MissingReader
from adjudge.engine.formats.hub import SCHEME, HubData, from_hub
from adjudge.engine.formats.input_files import Given, InputFile, by_number, matched
from adjudge.engine.formats.records import UNREADABLE, Record, records
from adjudge.engine.formats.rejected import FormatError, Rejected
from adjudge.engine.formats.report_documents import read_report
from adjudge.engine.formats.responses import index_of_storm
from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Case, Report, Task

__all__ = [
    "UNREADABLE",
    "Dataset",
    "FormatError",
    "Given",
    "InputFile",
    "Key",
    "Located",
    "Prompts",
    "drawn",
    "layouts",
    "load_dataset",
    "load_tasks",
    "located",
    "quietly",
    "rows",
]

T = TypeVar("T")

Key = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | str
"""An id or another name as benchmarks publish it: a number is the name that its digits are."""

_NO_OTHERS: Mapping[str, Sequence[str]] = {}

ENTRY_POINTS = "adjudge.formats"

_NO_TASK = "unknown task"
_IN_MEMORY = 256 << 20  # bytes of reports that are read once, in equal parts for each file
_SOME = 3  # tasks that a message names

_log = logging.getLogger(__name__)


class Line(Protocol):
    """A line with a report; `prompt`, if not empty, identifies its task."""

    @property
    def prompt(self) -> str: ...


L = TypeVar("L", bound=Line)


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


def drawn(every: list[T], share: float) -> list[T]:
    """A `share` of `every`, at least one, drawn at random and always the same; all of them from 1 on."""
    if share >= 1.0 or not every:
        return every
    return random.Random(0).sample(every, max(1, round(share * len(every))))


def load_dataset(
    layout: str,
    tasks: str,
    reports: Sequence[str | Given],
    articles: Literal["raw", "cleaned"] | None = None,
    date: datetime.date | None = None,
) -> Dataset:
    """The dataset of a configuration. Raises FormatError for missing files and for contradicting reports.

    An entry of `reports` with a system's name holds reports of this system, whatever its files say. Several such runs
    of the same tasks are the system's samples, numbered in order.
    """
    entries = [Given(one) if isinstance(one, str) else one for one in reports]
    hub = {one: from_hub(one) for one in (tasks, *(entry.path for entry in entries)) if _is_on_hub(one)}
    found: dict[str, InputFile] = {}
    systems: dict[str, dict[str, InputFile]] = {}
    for entry in entries:
        for file in _on_hub(hub[entry.path], entry) if entry.path in hub else matched(entry):
            found.setdefault(str(file), file)
            if entry.system:
                found[str(file)].is_of_one = True
                systems.setdefault(entry.system, {})[str(file)] = file
    files = list(found.values())
    for file in files:
        file.give_room(_IN_MEMORY // len(files))
    dataset = _read(
        layout, str(hub[tasks].place) if tasks in hub else tasks, files, articles=articles, date=date
    )
    _say(files)
    dataset.revisions = {address: data.commit for address, data in hub.items()}
    for system, named in systems.items():
        dataset.reports = _renamed(dataset.reports, system, list(named.values()))
    dataset.reports = _distinct(_with_task(dataset))
    _say_alike(dataset.systems)
    if not dataset.reports:
        raise FormatError(_nothing_left(dataset, tasks, files))
    return dataset


def _nothing_left(dataset: Dataset, tasks: str, files: Sequence[InputFile]) -> str:
    """Why there is nothing to evaluate: the first line left out, or what is empty."""
    begin = f"{'reports' if dataset.tasks else 'tasks'}: nothing is left to evaluate"
    if dataset.rejected:
        first = dataset.rejected[0]
        if not first.why.startswith(_NO_TASK):
            return f"{begin}; the first line left out: {first}"
        if dataset.tasks:
            some = ", ".join(map(repr, list(dataset.tasks)[:_SOME]))
            more = " and so on" if len(dataset.tasks) > _SOME else ""
            return f"{begin}; the first line left out: {first}; {tasks} has {some}{more}"
    if not dataset.tasks:
        return f'{begin}; {tasks} holds no task; write {{"id": "1", "prompt": "..."}} on a line for each'
    held = f"{files[0]} holds no report; " if files else ""
    return f"{begin}; {held}add files of reports"


def _on_hub(data: HubData, entry: Given) -> list[InputFile]:
    files = sorted(data.files, key=lambda file: by_number(str(file)))
    return [InputFile(file, "", entry.fields) for file in files]


def load_tasks(layout: str, tasks: str, date: datetime.date | None = None) -> dict[str, Task]:
    """The tasks of a configuration by id, whatever its reports. Raises FormatError for missing files."""
    return _read(layout, str(from_hub(tasks).place) if _is_on_hub(tasks) else tasks, [], date=date).tasks


@contextmanager
def quietly() -> Iterator[None]:
    """Reading on trial: what was taken for what is not said, and will be said when it is read in earnest."""
    level = _log.level
    _log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        _log.setLevel(level)
        _say_once.cache_clear()


def layouts() -> list[str]:
    """The names of all layouts that are installed."""
    return sorted(_readers())


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


def _read(layout: str, tasks: str, reports: list[InputFile], **options: object) -> Dataset:
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


def rows(
    file: Path, kind: type[T], rejected: list[Rejected], others: Mapping[str, Sequence[str]] = _NO_OTHERS
) -> Iterator[tuple[int, T]]:
    """(line number, row) of a file of rows in any form. Invalid rows go to `rejected`.

    `others` are the other names that a column may have, where only one can be meant; which it had is logged.
    """
    decoder, lax = msgspec.json.Decoder(kind), msgspec.json.Decoder(kind, strict=False)
    taken: dict[str, str] = {}
    for record in records(InputFile(file), rejected):
        try:
            record.raw.decode()  # the decoder does not validate raw JSON within a row
            raw = renamed(record, others, taken) if others else record.raw
            row = (lax if record.is_text else decoder).decode(raw)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, record.line, kind, error, record.raw))
        else:
            yield record.line, row
    if taken:
        words = ", ".join(f"{column!r} as the {field}" for field, column in taken.items())
        _say_once(f"tasks: {file}: read {words}")


def located(
    file: InputFile,
    kind: type[L],
    rejected: list[Rejected],
    tasks: Prompts,
    report: Callable[[str, L], Report],
) -> Iterator[Located]:
    """The reports of a file, each `report(system, row)`, where `system` is the one that the file is named after.

    A document is one report. Lines on disk and documents beyond the file's room are read again when needed, other rows
    kept. Rows for which `report` raises ValueError, and those with another task's prompt, go to `rejected`.
    """
    columns = Columns(kind, file, tasks)

    def made(record: Record) -> Report:
        system, row = columns.row(record)
        found = report(system, row)
        tasks.check(found.task_id, row.prompt)
        return found

    def line(offset: int) -> Report:
        with file.path.open("rb") as lines:
            lines.seek(offset)
            return made(Record(1, lines.readline()))

    def document() -> Report:
        cited = index_of_storm(file.index.read()) if file.index else []
        return made(Record(0, columns.text_of(read_report(file), cited)))

    if file.suffix in DOCUMENTS:
        try:
            read = document()
            yield Located.of(read, f"{file}:0", None if file.keeps(len(read.text)) else document)
        except MissingReader as error:
            raise FormatError(str(error)) from error
        except UNREADABLE as error:
            rejected.append(Rejected(str(file), 0, str(error)[:300]))
        return
    if file.suffix not in TABLES:
        why = "not a ZIP archive" if file.suffix == ".zip" else "unknown kind of file"
        rejected.append(Rejected(str(file), 0, f"{why}; use one of {KINDS}"))
        return
    for record in columns.reports(records(file, rejected, tasks)):
        try:
            found = made(record)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, record.line, kind, error, record.raw))
        else:
            place = record.offset
            again = None if place is None or file.keeps(len(record.raw)) else partial(line, place)
            yield Located.of(found, f"{file}:{record.line}", again)


def _renamed(reports: Sequence[Located], system: str, files: Sequence[InputFile]) -> list[Located]:
    """`reports`, with those of `files` as `system`'s; where runs have the same tasks, each is a sample.

    A run is a file of rows, or the reports in one folder.
    """
    places = {str(file): file.place for file in files}
    own = [one for one in reports if one.file in places]
    said: dict[str, str] = {}
    for one in own:
        if said.setdefault(one.file, one.system) != one.system:
            raise FormatError(
                f"reports: {one.file} has the reports of several systems ({said[one.file]}, {one.system}), which "
                f"cannot all be {system!r}; name the file without system:"
            )
    runs = {one.file: places[one.file] if one.where.endswith(":0") else one.file for one in own}
    first = {
        run: place for place, run in enumerate(dict.fromkeys(runs[file] for file in places if file in runs))
    }
    seen: dict[tuple[str, int], str] = {}
    sampled = any(seen.setdefault((one.task_id, one.sample), runs[one.file]) != runs[one.file] for one in own)
    width = 1 + max((one.sample for one in own), default=0)
    return [
        one.named(system, one.sample + width * first[runs[one.file]] * sampled) if one.file in places else one
        for one in reports
    ]


def _say(files: Sequence[InputFile]) -> None:
    """Log which columns were taken for what, in a line for all files that say the same, and who left thoughts."""
    thoughtful = sum(len(file.thoughtful) for file in files)
    if thoughtful:
        first = next(file for file in files if file.thoughtful)
        _say_once(
            f"reports: thinking and calls of tools are left out of {plural(thoughtful, 'report')}, of {first} first"
        )
    taken: dict[tuple[tuple[str, str], ...], list[InputFile]] = {}
    for file in files:
        if file.guessed:
            taken.setdefault(tuple(sorted(file.guessed.items())), []).append(file)
    for guessed, those in taken.items():
        words = [
            f"{column!r} as the {field}" if column else f"the file's name as the {field}"
            for field, column in guessed
        ]
        more = f" and {len(those) - 1:,} more" if len(those) > 1 else ""
        _say_once(f"reports: {those[0]}{more}: read {', '.join(words)}; fields: may say otherwise")


def _say_alike(systems: Sequence[str]) -> None:
    """Log the names of systems that only blanks around them, or Unicode's forms of one letter, tell apart."""
    same: dict[str, list[str]] = {}
    for name in systems:
        same.setdefault(unicodedata.normalize("NFC", name).strip(), []).append(name)
    for names in same.values():
        if len(names) > 1:
            _say_once(
                f"reports: {' and '.join(map(ascii, names))} are different systems, but their names look alike; "
                "use one spelling for one system"
            )


@cache
def _say_once(line: str) -> None:
    _log.warning("%s", line)


def _with_task(dataset: Dataset) -> Iterator[Located]:
    for report in dataset.reports:
        if report.task_id in dataset.tasks:
            yield report
        else:
            file, _, line = report.where.rpartition(":")
            dataset.rejected.append(Rejected(file, int(line), f"{_NO_TASK} {report.task_id!r}"))


def _distinct(reports: Iterator[Located]) -> list[Located]:
    """Each identity once. Raises FormatError if two rows of one identity differ."""
    seen: dict[tuple[str, str, int], Located] = {}
    for report in reports:
        first = seen.setdefault((report.system, report.task_id, report.sample), report)
        if first.digest != report.digest:
            raise FormatError(
                f"{report.where}: system {report.system!r}, task {report.task_id!r}, sample {report.sample} was given "
                f"before with other content ({first.where}); {_apart(report)}"
            )
    return list(seen.values())


def _apart(report: Located) -> str:
    """How reports of one identity can be told apart."""
    advice = "number the runs of one agent with `sample`"
    if report.where.endswith(":0") or report.system != Path(report.file).stem:
        return advice
    return f"{advice}, or name the column of several systems: fields: {{system: NAME}}"
