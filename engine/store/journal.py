"""Journals: every row is appended as it arrives, so a kill loses only the work in flight.

A part is named `BEGUN-WRITER-NUMBER.parquet`; its journal has the same name with another ending and is locked while its
writer is alive. In front of each record are its length and its CRC-32; the first record gives the columns as
MessagePack. A row is in the page cache when `append` returns, and on disk after the next `sync`.

Readers read a journal as if it were the part, until a part contains its rows. Once its writer is dead, the next process
on this machine that writes to the table turns the journal into a part and deletes it.

A rewritten part (`...-rewritten.parquet`, `...-merged.parquet`) names the parts it replaces, which no longer count, and
for each writer the last part whose rows it contains. If two rewritten parts replace the same part, which only happens
when a lease was lost, the first by name counts and the other is void: no row is duplicated, and none is lost.
"""

import fcntl
import logging
import os
import struct
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow as pa

from adjudge.engine.errors import StoreError
from adjudge.engine.store.footers import Footer, Footers
from adjudge.engine.store.part import Part, R, TableKind, encoded, record_of, write_part
from adjudge.engine.store.place import MissingFile, Place, StoredFile, journal_folder
from adjudge.engine.store.rows import table_of

__all__ = [
    "Catalog",
    "Journal",
    "journals",
    "live_parts",
    "open_part",
    "read_catalog",
    "read_rows",
    "take_in_leftovers",
    "writer_of",
]

_log = logging.getLogger(__name__)

JOURNAL_VERSION = 5  # 5: the first record has the columns, and rows are their values, without names
_HEAD = struct.Struct("<II")
_ENDING = ".journal"


class Journal:
    """The open journal at `path`, locked through `descriptor`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._size = 0
        self._open = True
        self._using = threading.Lock()  # a thread may sync what another closes

    @classmethod
    def begun(cls, folder: Path, name: str, columns: Sequence[str]) -> "Journal":
        """A new journal for the part `name`, of rows with those `columns`. Raises OSError."""
        path = _path(folder, name)
        folder.mkdir(parents=True, exist_ok=True)
        unlocked = path.with_suffix(".new")  # must not be found before it is locked
        journal = cls(path, os.open(unlocked, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666))
        try:
            fcntl.flock(journal._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            journal.append([record_of({"schema": JOURNAL_VERSION, "columns": columns})])
            unlocked.rename(path)
        except OSError:
            journal.close()
            unlocked.unlink(missing_ok=True)
            raise
        return journal

    def append(self, records: Sequence[bytes]) -> None:
        """Append the `records` of rows: all of them, or none. Raises OSError."""
        written = b"".join(
            [part for record in records for part in (_HEAD.pack(len(record), zlib.crc32(record)), record)]
        )
        if os.write(self._descriptor, written) < len(written):
            os.ftruncate(self._descriptor, self._size)
            raise OSError(f"{self.path}: no space left")
        self._size += len(written)

    def sync(self) -> None:
        """Wait until all records are on the disk. Raises OSError."""
        with self._using:
            if self._open:
                os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close it, and leave it for the next writer."""
        with self._using:
            if self._open:
                os.close(self._descriptor)
            self._open = False

    def discard(self) -> None:
        """Delete it: its part is written. Raises OSError."""
        try:
            self.path.unlink(missing_ok=True)
        finally:
            self.close()


def journals(folder: Path) -> list[str]:
    """Names of the parts that have a journal in `folder`, sorted. Raises StoreError."""
    try:
        with os.scandir(folder) as found:
            return sorted(
                each.name[1:].removesuffix(_ENDING) + ".parquet"
                for each in found
                if each.name.startswith(".") and each.name.endswith(_ENDING)
            )
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    except OSError as error:
        raise StoreError(f"{folder}: cannot be listed: {error.strerror}") from error


def _path(folder: Path, name: str) -> Path:
    return folder / f".{name.removesuffix('.parquet')}{_ENDING}"


def open_left(folder: Path, name: str) -> Journal | None:
    """The journal of the part `name`, now locked by this process; None while its writer lives, or if it is gone."""
    path = _path(folder, name)
    try:
        journal = Journal(path, os.open(path, os.O_RDWR | os.O_APPEND))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        fcntl.flock(journal._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(journal._descriptor).st_nlink:
            return journal
    except OSError:  # locked by its writer, or by another process that makes the part
        pass
    journal.close()
    return None


def read_rows(path: Path, kind: TableKind[R]) -> list[R]:
    """The whole rows of the journal at `path`, in order. Raises FileNotFoundError, and StoreError."""
    return [kind.row(**{name: values.get(name) for name in kind.columns}) for values in _named(path)]


def _named(path: Path) -> Iterator[dict[str, Any]]:
    """The values of each row, by column."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    found = _whole(path, data)
    first = next(found, {"schema": JOURNAL_VERSION})
    head: dict[str, Any] = first if isinstance(first, dict) else {}
    version = head.get("schema")
    if not isinstance(version, int) or version > JOURNAL_VERSION:
        raise StoreError(
            f"{path}: schema version {version or 'missing'}, and this adjudge reads up to {JOURNAL_VERSION}; "
            "use the adjudge that wrote it, or another --store"
        )
    for record in found:
        yield record if isinstance(record, dict) else dict(zip(head["columns"], record, strict=True))


def _whole(path: Path, data: bytes) -> Iterator[dict[str, Any] | list[Any]]:
    """The records up to the first that is not whole; one whose check sum does not match is left out and logged."""
    at = 0
    while at + _HEAD.size <= len(data):
        size, total = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + size]
        if len(payload) < size:
            break
        try:
            record = msgspec.msgpack.decode(payload) if zlib.crc32(payload) == total else None
        except msgspec.MsgspecError:
            record = None
        if isinstance(record, dict | list):
            yield record
        else:
            _log.error("%s: the row at byte %d is damaged and is left out", path, at)
        at += _HEAD.size + size


def journal_part(folder: Path, kind: TableKind[Any], name: str) -> Part | None:
    """The part `name` as its journal has it so far, or None if there is no journal (any more). Raises StoreError."""
    path = _path(folder, name)
    try:
        return _part(path, path.stat().st_size, kind)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


@lru_cache(maxsize=4)
def _part(path: Path, size: int, kind: TableKind[Any]) -> Part:
    """The journal at `path`, of `size` bytes by now, as a part in memory."""
    data = b"".join(encoded(table_of(kind, read_rows(path, kind)), kind))
    return Part(StoredFile(str(path), lambda: cast(pa.NativeFile, pa.BufferReader(data))), is_growing=True)


_ATTEMPTS = 10


class Catalog(msgspec.Struct, frozen=True):
    """The parts of a table, all oldest first.

    `versions` has the schema version of every live file. `live` are files whose rows count, `journals` names of parts
    that are so far only journals. `replaced_by` has the part that replaces each of the others; `void` ones do not
    count. `segments` has, of each writer, the number of the last part that is contained in another.
    """

    versions: dict[str, int]
    live: list[str]
    journals: list[str]
    replaced_by: dict[str, str]
    void: list[str]
    segments: dict[str, int]

    @property
    def names(self) -> list[str]:
        """All that a reader reads."""
        return sorted(self.live + self.journals)


def read_catalog(place: Place, known: dict[str, Footer] | None = None) -> Catalog:
    """The catalog of the table at `place`. Raises StoreError, also for a damaged part and for a later version.

    `known` are footers that the caller keeps from one reading to the next.
    """
    for _ in range(_ATTEMPTS):
        unwritten = journals(
            journal_folder(place)
        )  # before the files: a journal is deleted after its part is there
        footers = Footers(place, place.listed(), known or {})
        try:
            catalog = _catalog(footers, unwritten)
        except MissingFile:
            continue  # it was replaced long ago, and deleted since it was listed
        footers.keep()
        if known is not None:
            known.clear()
            known.update(footers.known)
        return catalog
    raise StoreError(
        f"{place.uri}: parts disappear while they are read; is another store being copied over it?"
    )


def _catalog(footers: Footers, unwritten: list[str]) -> Catalog:
    """By the footers of parts that may replace others, and of those that nothing replaces; no others are read."""
    replaced_by: dict[str, str] = {}
    segments: dict[str, int] = {}
    void = []
    for name in footers.names:
        if writer_of(name)[0]:  # as its writer wrote it, so it replaces nothing
            continue
        replaces = footers[name].replaces
        if any(replaced_by.get(other, other) not in replaces for other in replaces):
            void.append(name)
            continue
        replaced_by.update(dict.fromkeys(replaces, name))
        for writer, number in footers[name].segments.items():
            segments[writer] = max(number, segments.get(writer, -1))
    there = set(footers.names)
    live = [name for name in footers.names if name not in replaced_by and name not in void]
    return Catalog(
        versions={name: footers[name].version for name in live},
        live=live,
        journals=[name for name in unwritten if name not in there and not _contained(name, segments)],
        replaced_by={old: new for old, new in replaced_by.items() if old in there},
        void=void,
        segments=segments,
    )


def _contained(name: str, segments: Mapping[str, int]) -> bool:
    writer, number = writer_of(name)
    return number <= segments.get(writer, -1)


def writer_of(name: str) -> tuple[str, int]:
    """The writer of the part `name` and its number among the parts of that writer; ("", 0) if the name has neither."""
    _, _, rest = name.removesuffix(".parquet").partition("-")
    writer, _, number = rest.partition("-")
    return (writer, int(number)) if number.isdecimal() else ("", 0)


def live_parts(place: Place) -> list[str]:
    """Names of the parts at `place` that count, journals among them, oldest first. Raises StoreError."""
    return read_catalog(place).names


def open_part(place: Place, kind: TableKind[Any], name: str) -> Part:
    """The part `name`, or its journal if it is not yet written. Raises MissingFile if it was replaced and deleted."""
    try:
        return Part(place.open(name))
    except MissingFile:
        found = journal_part(journal_folder(place), kind, name)
        return Part(place.open(name)) if found is None else found


_AT_ONCE = 16  # locked journals: each is an open file


def take_in_leftovers(place: Place, kind: TableKind[Any]) -> int:
    """Write the journals of dead writers at `place` as parts, and delete them; how many. Raises StoreError.

    A part gets the journal's name, so that it does not matter how often, and by how many processes at once, this is
    begun: a kill between writing the part and deleting the journal leaves a journal whose part is there.
    """
    folder = journal_folder(place)
    taken = 0
    by_writer: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in journals(folder):
        writer, number = writer_of(name)
        by_writer[writer].append((number, name))
    for numbered in by_writer.values():
        names = [name for _, name in sorted(numbered)]
        for at in range(0, len(names), _AT_ONCE):
            some = names[at : at + _AT_ONCE]
            done = _take_in(place, kind, folder, some)
            taken += done
            if done < len(some):  # a part says that it follows all earlier ones of its writer
                break
    return taken


def _take_in(place: Place, kind: TableKind[Any], folder: Path, names: list[str]) -> int:
    """Write the journals `names`, up to the first whose writer lives; how many."""
    left: list[tuple[str, Journal]] = []
    try:
        for name in names:
            journal = open_left(folder, name)
            if journal is None:
                break
            left.append((name, journal))
        unwritten = read_catalog(place).journals if left else []
        for name, journal in left:
            if name in unwritten:
                table = table_of(kind, read_rows(journal.path, kind))
                if len(table):
                    write_part(place, name, table, kind)
            journal.discard()
    finally:
        for _, journal in left:
            journal.close()
    return len(left)
