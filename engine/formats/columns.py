"""Which column of a file of reports is which field: as `fields:` says, as the layout says, or by its usual names."""

import itertools
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Generic, TypeVar

import msgspec

from adjudge.engine.errors import nearest
from adjudge.engine.formats.input_files import InputFile
from adjudge.engine.formats.records import UNREADABLE, Raws, Record
from adjudge.engine.formats.responses import hand_over, may_hand_over
from adjudge.engine.formats.usual_names import PROMPT, SYSTEM, TASK, TEXT, is_usual, names_system, spelt
from adjudge.scoring.contract.case import Task

__all__ = [
    "JOINED",
    "LONG",
    "PEEKED",
    "SAMPLE",
    "Columns",
    "Prompts",
    "place_of",
    "question_in",
    "renamed",
    "report_in",
    "row_of",
    "systems_in",
]

K = TypeVar("K")

LONG = 200  # characters: a text of so many is no name
PEEKED = 20  # rows that say what the columns of a table are


class Prompts(Container[str]):
    """Finds tasks by their prompt, whatever its white space; it contains the ids of all tasks."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self._ids = tasks.keys()
        self._asked: dict[str, list[str]] = {}
        for task in tasks.values():
            self._asked.setdefault(_words(task.prompt), []).append(task.id)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._ids

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


SAMPLE = re.compile(r"(.{1,500})-([0-9]{1,6})")
"""The name of a report that is a sample: its task's, and the sample's number."""
_ROUND = re.compile(rb"\s*(-?[0-9]{1,300})(?:\.0{1,300})?\s*")
_NUMBER = re.compile(rb"-?[0-9]{18,}")
_NOTHING = (msgspec.Raw(b'""'), msgspec.Raw(b"null"))
_NAMED = 12  # columns that a message names


class Columns(Generic[K]):
    """Reads the rows of a file as `kind`, a struct whose attributes are fields and are encoded under columns' names.

    A row without a task is that of the task with its prompt, or that its file is named after; one without a system is
    that of the system which its file is named after. Where the file is one report, its path names both (`place_of`).
    """

    def __init__(self, kind: type[K], file: InputFile, tasks: Prompts) -> None:
        fields = msgspec.structs.fields(kind)  # type: ignore[arg-type]
        self._columns = {field.name: field.encode_name for field in fields}
        self._required = {field.name for field in fields if field.required}
        self._hands = {
            "text",
            "citations",
        } <= self._columns.keys()  # whether reports have citations of their own
        self._decoder = msgspec.json.Decoder(kind)
        self._lax = msgspec.json.Decoder(kind, strict=False)
        self._file, self._tasks = file, tasks

    def text_of(self, text: str, citations: Sequence[Mapping[str, str]] = ()) -> bytes:
        """A row that is only a text, and what was cited apart from it."""
        cited = {self._columns["citations"]: citations} if citations and self._hands else {}
        return msgspec.json.encode({self._columns["text"]: text} | cited)

    def reports(self, records: Iterator[Record]) -> Iterator[Record]:
        """The rows of the file, each with one report: of a table with a column for each system, one for each cell."""
        first = list(itertools.islice(records, PEEKED))
        rows = [_readable(record) for record in first]
        taken = systems_in(rows)
        named = self._file.fields or any(one.task for one in first) or any(map(self._has_text, rows))
        if named or not taken:
            yield from itertools.chain(first, records)
            return
        others = [name for name in dict.fromkeys(itertools.chain(*rows)) if names_system(name)]
        left = ", ".join(repr(name) for name in others[:_NAMED] if name not in taken)
        said = f"report of one system each{f', and left out {left}' if left else ''}"
        self._file.guessed[said] = ", ".join(taken)
        for record in itertools.chain(first, records):
            row = _readable(record)
            cells = [(name, row[name]) for name in taken if name in row]
            if not cells:  # it cannot be read, or is of another form
                yield record
                continue
            beside = {name: raw for name, raw in row.items() if not names_system(name)}
            for system, raw in cells:
                if raw not in _NOTHING:
                    body = msgspec.json.encode(beside | {self._columns["text"]: raw})
                    yield msgspec.structs.replace(record, raw=body, offset=None, system=system)

    def _has_text(self, row: Raws) -> bool:
        return "text" not in self._columns or self._columns["text"] in row

    def row(self, record: Record) -> tuple[str, K]:
        """The system that the file is named after or says, and the row. Raises ValueError and MsgspecError."""
        record.raw.decode()  # the decoder does not validate raw JSON within a row
        handed = self._hands and may_hand_over(record.raw)
        if record.line and not (
            self._file.fields or record.is_text or record.task or record.system or handed
        ):
            try:
                return self._file.stem, self._decoder.decode(record.raw)
            except msgspec.ValidationError:
                pass  # its columns may have other names
        row: Raws = msgspec.json.decode(record.raw, type=Raws)
        system = self._renamed(row, record)
        decoder = self._lax if record.is_text else self._decoder
        return system, decoder.decode(msgspec.json.encode(row))

    def _renamed(self, row: Raws, record: Record) -> str:
        """Put the fields of `row` under the layout's names; the system."""
        given = self._given(row) or record.system
        for name in [*row]:
            row[spelt(name, row)] = row.pop(name)
        unnamed = [name for name in (self._columns.get("system", ""), *SYSTEM) if row.get(name) in _NOTHING]
        if record.is_text:
            _typed(row, self._columns)
        if record.task:
            row.setdefault(self._columns["task_id"], _raw(record.task))
        if self._hands:
            hand_over(row, self._columns["text"], self._columns["citations"], TEXT)
        if "text" in self._required and self._columns["text"] not in row:
            self._guess("text", row, [name for name in TEXT if _is_text(row.get(name))])
        if "task_id" in self._required:
            self._find_task(row, record)
        system = given or (self._file.stem if record.line else self._path[1])
        if record.system and "system" in self._columns:
            row[self._columns["system"]] = _raw(record.system)
        if "system" in self._required and self._columns["system"] not in row:
            models = [name for name in SYSTEM if _is_text(row.get(name))]
            if len(models) == 1:
                self._guess("system", row, models)
            elif unnamed and not models and not self._file.is_of_one:
                raise ValueError(f"no value in the column {unnamed[0]!r}; write the system's name there")
            else:
                row[self._columns["system"]] = _raw(system)
                if record.line:
                    self._file.guessed["system"] = ""
        return system

    def _given(self, row: Raws) -> str:
        """Put the columns that `fields:` names under the layout's names; the system, where the layout has none."""
        columns = self._file.fields
        found = {field: _at(row, column) for field, column in columns.items()}
        for field, column in columns.items():
            if found[field] is None:
                raise ValueError(f"no column {column!r} (fields: {field}); {nearest(column, row)}")
            if field not in self._columns and field != "system":
                raise ValueError(f"fields: {field}: this format does not read it; leave it out")
        values = {self._columns.get(field, ""): raw for field, raw in found.items() if raw is not None}
        for column in columns.values():
            row.pop(column, None)
        system = values.pop("", None)
        row.update(values)
        return "" if system is None else msgspec.json.decode(system, type=str)

    def _guess(self, field: str, row: Raws, columns: list[str]) -> None:
        """Take the only one of `columns` as `field`. Raises ValueError for none, and for several."""
        if not columns:
            there = ", ".join(map(repr, list(row)[:_NAMED]))
            raise ValueError(
                f"no {self._columns[field]!r}; say which of {there} is the {field}: fields: {{{field}: NAME}}"
            )
        if len({bytes(row[name]) for name in columns}) > 1:
            raise ValueError(
                f"{' or '.join(map(repr, columns))} may be the {field}; say which: fields: {{{field}: NAME}}"
            )
        row[self._columns[field]] = row.pop(columns[0])
        self._file.guessed[field] = columns[0]

    def _find_task(self, row: Raws, record: Record) -> None:
        column = self._columns["task_id"]
        if column not in row:
            known = [name for name in TASK if name in row and _number_as_text(row[name]) in self._tasks]
            prompts = [name for name in PROMPT if len(self._asked(row.get(name))) == 1]
            if known:
                self._guess("task_id", row, known)
            elif prompts:
                row[column] = _raw(self._asked(row[prompts[0]])[0])
                if prompts[0] != "prompt":
                    self._file.guessed["prompt"] = prompts[0]
            elif not record.line:
                task, _, sample = self._path
                row[column] = _raw(task)
                if "sample" in self._columns:
                    row.setdefault(self._columns["sample"], _raw(sample))
            else:
                self._guess("task_id", row, [name for name in TASK if name in row][:1])
        row[column] = _raw(_number_as_text(row[column])) if _ROUND.fullmatch(row[column]) else row[column]

    def _asked(self, raw: msgspec.Raw | None) -> list[str]:
        return self._tasks.of(msgspec.json.decode(raw, type=str)) if raw is not None and _is_text(raw) else []

    @cached_property
    def _path(self) -> tuple[str, str, int]:
        return place_of(self._file, self._tasks)


JOINED = "__"
"""What stands between system and task where a file's name says both."""


def place_of(file: InputFile, tasks: Container[str]) -> tuple[str, str, int]:
    """The task, system and sample that the path of a report says.

    That is `SYSTEM/TASK.md`, or `TASK/SYSTEM.md` where only the folder is a task. A file that is only called a
    report is `SYSTEM/TASK/report.md` or `TASK/SYSTEM/report.md`. Without folders, both may stand in the name:
    `SYSTEM__TASK.md` or `TASK__SYSTEM.md`. A task may be written `ID`, `ID-K`, `idx-ID` or `qid_ID_report`.
    """
    above = [*itertools.islice(file.folders, 2), "", ""]
    pairs = [(file.stem, above[0]), (above[0], above[1] if is_usual(file.stem) else file.stem)]
    if is_usual(file.stem):
        pairs.append((above[1], above[0]))
    first, joined, last = file.stem.partition(JOINED)
    if joined:
        pairs += [(last, first), (first, last)]
    for name, system in pairs:
        for task in (name, _bare(name)):
            if task in tasks:
                return task, system, 0
            if (numbered := SAMPLE.fullmatch(task)) is not None and numbered[1] in tasks:
                return numbered[1], system, int(numbered[2])
    return _bare(file.stem), above[0], 0


def _bare(name: str) -> str:
    return name.removeprefix("idx-").removeprefix("qid_").removesuffix("_report")


def report_in(row: Raws) -> str:
    """The column of a row that may hold a report, by its usual names; "" if none does."""
    return next((name for name in TEXT if _is_text(row.get(name))), "")


def question_in(row: Raws) -> tuple[str, str]:
    """The id and the question of the task that a row is of, by the columns' usual names; "" where there is none."""
    asked = next(
        (name for name in PROMPT if _is_text(row.get(name)) and (name != "task" or _is_sentence(row[name]))),
        "",
    )
    named = (name for name in ("task_id", *TASK) if name in row and name != asked)
    task = next((found for name in named if (found := _number_as_text(row[name]))), "")
    return task, msgspec.json.decode(row[asked], type=str) if asked else ""


def systems_in(rows: Iterable[Raws]) -> tuple[str, ...]:
    """The columns of a table with a column for each system (`question | gpt-5 | o3`) that hold the systems' reports.

    They have long texts and none of the usual names, beside a question or a task. None where a column has the usual
    name of a report or a system, or one column alone has such texts, which may be a report of any name.
    """
    names: dict[str, bool] = {}
    asks = False
    for row in rows:
        if report_in(row) or any(name in row for name in ("system", *SYSTEM)):
            return ()
        asks = asks or any(question_in(row))
        for name, raw in row.items():
            is_long = names_system(name) and len(raw) > LONG and _is_text(raw) and _is_sentence(raw)
            names[name] = is_long or names.get(name, False)
    found = tuple(name for name, is_long in names.items() if is_long)
    return found if asks and len(found) > 1 else ()


def row_of(record: Record) -> Raws:
    """The row of `record` under the usual names, where its columns have these. Raises MsgspecError and ValueError."""
    record.raw.decode()  # the decoder does not validate raw JSON within a row
    row: Raws = msgspec.json.decode(record.raw, type=Raws)
    return {spelt(name, row): raw for name, raw in row.items()}


def _readable(record: Record) -> Raws:
    """The row of `record`; empty for one that cannot be read."""
    with suppress(*UNREADABLE):
        return row_of(record)
    return {}


def _is_sentence(raw: msgspec.Raw) -> bool:
    return " " in (text := msgspec.json.decode(raw, type=str).strip()) or not text.isascii()


def renamed(record: Record, others: Mapping[str, Sequence[str]], taken: dict[str, str]) -> bytes:
    """The row of `record` with the columns' names among `others`, by field, made the fields'; they go to `taken`.

    Raises ValueError for a field that no column can be, and for an `id` that is too long for a number.
    """
    row = row_of(record)
    if record.is_text:
        _typed(row, {})
    for field, names in others.items():
        there = [name for name in names if name in row]
        if field not in row and len(there) == 1:
            row[field] = row.pop(there[0])
            taken[field] = there[0]
        elif field not in row:
            columns = ", ".join(map(repr, there or list(row)[:_NAMED])) or "no column"
            raise ValueError(f"no {field!r}, but {columns}; call the column of the {field} {field!r}")
    if (number := _NUMBER.fullmatch(row.get("id", b""))) and not -(1 << 63) <= float(number[0]) < 1 << 63:
        raise ValueError("'id' has more digits than a number may have; write it in quotes")
    return msgspec.json.encode(row)


def _at(row: Raws, column: str) -> msgspec.Raw | None:
    """The value of a column, or of a field inside one: "output.report"; None if there is none."""
    if column in row or "." not in column:
        return row.get(column)
    outer, _, inner = column.partition(".")
    held = row.get(outer)
    if held is None or bytes(held).lstrip()[:1] != b"{":
        return None
    return _at(msgspec.json.decode(held, type=Raws), inner)


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _is_text(raw: msgspec.Raw | None) -> bool:
    return raw is not None and bytes(raw).lstrip()[:1] == b'"'


def _number_as_text(raw: msgspec.Raw) -> str:
    """A text, or a whole number as text; "" for anything else."""
    if (number := _ROUND.fullmatch(raw)) is not None:
        return number[1].decode()
    return str(msgspec.json.decode(raw, type=str)) if _is_text(raw) else ""


def _typed(row: Raws, columns: Mapping[str, str]) -> None:
    """Drop the empty cells of `row`, other than its text's, and read JSON in those of fields that are no texts."""
    text = columns.get("text", "text")
    texts = [name for name in TEXT if name in row] if columns and text not in row else [text]
    kept = texts if len(texts) == 1 else []
    for name in [name for name, raw in row.items() if bytes(raw) == b'""' and name not in kept]:
        del row[name]
    for field in _STRUCTURED:
        cell = row.get(columns.get(field, field))
        words = msgspec.json.decode(cell, type=str) if cell is not None else ""
        if words.lstrip()[:1] in ("[", "{"):
            row[columns.get(field, field)] = msgspec.Raw(words.encode())


_STRUCTURED = frozenset(
    {"citations", "answer", "plan", "evidence", "trace", "usage", "annotations", "gold", "attributes"}
)
