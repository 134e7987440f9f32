"""The rows of a file in any form, packed by gzip or not: JSON Lines, a JSON array or object, CSV, TSV, Excel, Parquet.

A row is a JSON object with its place. In a JSON object every key may also be a task, with its report or the fields of
its report as the value.
"""

import io
import re
from codecs import BOM_UTF8
from collections.abc import Container, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from adjudge.engine.formats.input_files import InputFile
from adjudge.engine.formats.rejected import FormatError, Rejected
from adjudge.engine.formats.usual_names import spelt
from adjudge.fetchers.extract import decode
from adjudge.fetchers.office import MissingLibrary, read_sheet
from adjudge.fetchers.separated import separator_of
from adjudge.judges.plural import plural

__all__ = ["UNREADABLE", "Raws", "Record", "records"]

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""The exceptions that reading an untrusted row raises."""

Raws = dict[str, msgspec.Raw]
"""A JSON object, its values still JSON."""

_OBJECT = msgspec.json.Decoder(Raws)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_MAX_COLUMNS = 1_000
_CELL_CHARS = 32_767  # in a cell of Excel
_QUOTED = re.compile(
    rb'(?:^|(?<=[,;\t\n]))"(?:[^"]++|"")*+("|\Z)'
)  # a cell; without its end where that is missing


class Record(msgspec.Struct, frozen=True):
    """A row as JSON; `line` counts from 1, and is 0 for all of a file.

    `offset` is where the line starts, in bytes, in a file from which it can be read again. `is_text` is whether every
    value is text, as in CSV. `task` is the key that the row was found under, `system` the heading of the column that
    its report was in.
    """

    line: int
    raw: bytes
    offset: int | None = None
    is_text: bool = False
    task: str = ""
    system: str = ""


def records(file: InputFile, rejected: list[Rejected], known: Container[str] = ()) -> Iterator[Record]:
    """The rows of a file; what cannot be read goes to `rejected`. `known` are the tasks that may be keys."""
    try:
        if file.suffix == ".parquet":
            yield from _of_parquet(file)
        elif file.suffix in (".csv", ".tsv"):
            yield from _of_csv(file)
        elif file.suffix == ".xlsx":
            yield from _of_excel(file, rejected)
        elif file.suffix == ".json":
            yield from _of_json(file, known)
        elif file.is_packed:
            yield from _of_lines(io.BytesIO(file.read()), seekable=False)
        else:
            with file.path.open("rb") as lines:
                yield from _of_lines(lines, seekable=True)
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror}") from error
    except MissingLibrary as error:
        raise FormatError(f"{file}: {error}") from error
    except UNREADABLE as error:
        rejected.append(Rejected(str(file), 0, str(error)[:300]))


def _of_lines(lines: io.IOBase | Any, *, seekable: bool) -> Iterator[Record]:
    offset = 0
    for number, line in enumerate(lines, 1):
        start, offset = offset, offset + len(line)
        if number == 1 and line.startswith(BOM_UTF8):
            start, line = len(BOM_UTF8), line.removeprefix(BOM_UTF8)
        if line.strip():
            yield Record(number, line, start if seekable else None)


def _of_json(file: InputFile, known: Container[str]) -> Iterator[Record]:
    """The rows of a JSON array, of an object of tasks, or of an object that holds one list; else one row.

    JSON Lines under this name are read as such.
    """
    body = file.read().removeprefix(BOM_UTF8)
    body.decode()  # the decoder does not validate raw JSON
    if body.lstrip()[:1] == b"[":
        yield from (Record(number, bytes(raw)) for number, raw in enumerate(_LIST.decode(body), 1))
        return
    try:
        whole = {key: bytes(raw) for key, raw in _OBJECT.decode(body).items()}
    except msgspec.DecodeError:
        head, _, rest = body.lstrip().partition(b"\n")
        if not rest.strip() or not _is_object(head):
            raise
        yield from _of_lines(io.BytesIO(body), seekable=False)
        return
    if any(key in known for key in whole):
        yield from (
            Record(number, raw if raw[:1] == b"{" else b'{"text":%b}' % raw, task=key)
            for number, (key, raw) in enumerate(whole.items(), 1)
        )
    elif len(whole) == 1 and (only := next(iter(whole.values())))[:1] == b"[":
        yield from (Record(number, bytes(raw)) for number, raw in enumerate(_LIST.decode(only), 1))
    else:
        yield Record(0, body)


def _is_object(line: bytes) -> bool:
    try:
        _OBJECT.decode(line)
    except msgspec.MsgspecError:
        return False
    return True


def _of_csv(file: InputFile) -> Iterator[Record]:
    """The rows behind the first, which names the columns; empty cells of other columns than texts say nothing."""
    text = decode(file.read(), "")
    body = text.encode()
    if any(not found[1] for found in _QUOTED.finditer(body)):
        raise ValueError("cannot be read as CSV: a quotation mark is never closed; the file may be cut off")
    bad: list[int] = []

    def skip(row: Any) -> str:
        bad.append(row.number or 0)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(body),
            read_options=pyarrow.csv.ReadOptions(
                block_size=len(body) + 1, autogenerate_column_names=True, use_threads=False
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=separator_of(text, file.suffix), newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={f"f{number}": pa.string() for number in range(_MAX_COLUMNS)}
            ),
        )
    except pa.ArrowException as error:
        raise ValueError(f"cannot be read as CSV: {error}") from error
    if bad:
        others = f" and {plural(len(bad) - 1, 'more row')}" if bad[1:] else ""
        raise ValueError(
            f"cannot be read as CSV: row {bad[0]}{others}: not as many columns as in the first row; "
            "put quotation marks around cells that contain a comma or another separator"
        )
    if table.num_columns > _MAX_COLUMNS:
        raise ValueError(f"more than {_MAX_COLUMNS:,} columns")
    names = _names(file, [str(column[0]).strip() for column in table.columns])
    for number, row in enumerate(zip(*(column.to_pylist()[1:] for column in table.columns), strict=True), 2):
        cells = {name: cell for name, cell in zip(names, row, strict=True) if name}
        yield Record(number, msgspec.json.encode(cells), is_text=True)


def _names(file: InputFile, headings: list[str]) -> list[str]:
    """The headings of a table, the usual names as they are spelt."""
    said = file.fields.values()
    names: list[str] = []
    for heading in headings:
        names.append(heading if heading in said else spelt(heading, {*headings, *said, *names}))
    return names


def _of_excel(file: InputFile, rejected: list[Rejected]) -> Iterator[Record]:
    """The rows below the first that is not empty, which names the columns."""
    rows = iter(read_sheet(file.read()))
    names = _names(file, [cell.strip() for cell in next(rows, (0, []))[1]])
    for number, row in rows:
        if any(len(cell) >= _CELL_CHARS for cell in row):
            why = f"has a cell of {_CELL_CHARS:,} characters, where Excel cuts texts; give the reports in another form"
            rejected.append(Rejected(str(file), number, why))
            continue
        cells = {name: cell for name, cell in zip(names, row, strict=False) if name}
        yield Record(number, msgspec.json.encode(cells), is_text=True)


def _of_parquet(file: InputFile) -> Iterator[Record]:
    source: Any = io.BytesIO(file.read()) if file.is_packed else file.path
    try:
        table = pq.read_table(source).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"cannot be read as Parquet: {error}") from error
    for number, row in enumerate(table, 1):
        stated = {name: value for name, value in row.items() if value is not None}
        yield Record(number, msgspec.json.encode(stated))
