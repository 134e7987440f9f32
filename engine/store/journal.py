"""The journal of a part to be: each row appended as it arrives, so that a kill loses only what was in flight.

A journal has the name of its part, with another ending, and is locked as long as its writer lives. Each record has its
length and its CRC-32 before it; the first says which columns the rows have, as MessagePack. A row is in the page cache
when `append` returns, and on the disk after the next `sync`. Once the writer is dead, the next process that writes to
the table makes the part and deletes the journal; readers read it as if it were the part.
"""

import fcntl
import logging
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow as pa

from adjudge.engine.errors import StoreError
from adjudge.engine.store.kinds import R, TableKind
from adjudge.engine.store.part import Part, encoded
from adjudge.engine.store.place import StoredFile
from adjudge.engine.store.records import record_of
from adjudge.engine.store.rows import table_of

__all__ = ["Journal", "journal_part", "journals", "open_left", "read_rows"]

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
        unlocked = path.with_suffix(".new")  # nobody may find it before it is locked
        journal = cls(path, os.open(unlocked, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666))
        try:
            fcntl.flock(journal._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            journal.append(record_of({"schema": JOURNAL_VERSION, "columns": columns}))
            unlocked.rename(path)
        except OSError:
            journal.close()
            unlocked.unlink(missing_ok=True)
            raise
        return journal

    def append(self, record: bytes) -> None:
        """Append the `record` of a row. Raises OSError."""
        written = _HEAD.pack(len(record), zlib.crc32(record)) + record
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
            return sorted(each.name[1:].removesuffix(_ENDING) + ".parquet" for each in found if _is_one(each))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    except OSError as error:
        raise StoreError(f"{folder}: cannot be listed: {error.strerror}") from error


def _is_one(entry: "os.DirEntry[str]") -> bool:
    return entry.name.startswith(".") and entry.name.endswith(_ENDING)


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
    return Part(StoredFile(str(path), cast(pa.NativeFile, pa.BufferReader(data))), is_growing=True)
