"""Where a store is: a local folder or an object-store URI, through pyarrow.fs. All reads and writes of parts go here.

Journals are kept beside the parts, or in the user's cache folder for a store that is not local.

A lease lets one process at a time do housekeeping, and is released when its owner dies. Locally it is a lock on a file.
On object storage it is an object that the owner keeps rewriting and that expires otherwise; if several processes ask at
once, none gets it, and each retries after a random delay.
"""

import fcntl
import hashlib
import logging
import os
import random
import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import fs

from adjudge.engine.config.redaction import credentials
from adjudge.engine.errors import StoreError, UsageError
from adjudge.fetchers.files import whole_file

__all__ = [
    "DamagedPart",
    "Listed",
    "MissingFile",
    "Place",
    "Renew",
    "StoredFile",
    "damaged",
    "housekeeping",
    "if_free",
    "journal_folder",
]

_log = logging.getLogger(__name__)

Bytes = bytes | memoryview
_FOLDERLESS = (
    "s3",
    "gcs",
    "abfs",
)  # a folder is there with its first file; making one takes several requests
_BUFFER = 1 << 20  # a file takes the frames of a part in a few writes


class MissingFile(StoreError):
    """A file that is no longer there: whatever replaced it is."""


class DamagedPart(StoreError):
    """A part is not what was written."""


def damaged(where: str, why: str) -> DamagedPart:
    """The error of the damaged part at `where`, which says what to do."""
    store = where.rsplit("/", 2)[0]
    return DamagedPart(
        f"{where}: damaged: {' '.join(why.split())}; move it aside with `adjudge store repair {store}`"
    )


OPEN_FILES = 32  # of all stores of a process, whatever their size: macOS allows 256 of all kinds
_recent: "OrderedDict[int, weakref.ref[StoredFile]]" = (
    OrderedDict()
)  # those that are open, the last used last
_using = threading.Lock()


class StoredFile:
    """A file, `where` for messages, `size` in bytes. Reads from any thread.

    It is open while it is among the OPEN_FILES that were read last, and opened again when it is read later; `opened`
    does that. Another thread that still reads a file keeps it open. Raises what `opened` raises.
    """

    def __init__(self, where: str, opened: Callable[[], pa.NativeFile]) -> None:
        self.where = where
        self._opened = opened
        self._file: pa.NativeFile | None = None
        self.size = int(self._at_hand().size())

    def _at_hand(self) -> pa.NativeFile:
        file = self._file or self._opened()
        with _using:
            self._file = file
            _recent[id(self)] = weakref.ref(self)
            _recent.move_to_end(id(self))
            longest = _recent.popitem(last=False)[1]() if len(_recent) > OPEN_FILES else None
            if longest is not None:
                longest._file = None
        return file

    def read(self, offset: int, length: int) -> bytes:
        """The `length` bytes from `offset` on. Raises MissingFile, and StoreError, also if the file is shorter."""
        file = self._at_hand()
        try:
            found = bytes(file.read_at(length, offset))
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{self.where}: cannot be read: {_why(error)}") from error
        if len(found) < length:
            raise StoreError(f"{self.where}: ends after {offset + len(found):,} bytes")
        return found


class Listed(msgspec.Struct, frozen=True):
    """A file's size in bytes, and when it was written, in seconds since the epoch."""

    size: int
    written: float


class Place(msgspec.Struct, frozen=True):
    """A folder of a filesystem. `uri` is as the user wrote it."""

    uri: str
    filesystem: Any
    path: str

    @classmethod
    def of(cls, uri: str) -> "Place":
        """The place that `uri` names: a local path, or scheme://... .

        Raises UsageError for an address with credentials and a path through a file, StoreError if it is unusable.
        """
        if (found := credentials(uri)) is not None:
            raise UsageError(
                f"store: the address contains {found}; remove it and set it in the environment "
                "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://)"
            )
        try:
            if "://" in uri:
                filesystem, path = fs.FileSystem.from_uri(uri)
            else:
                filesystem, path = fs.LocalFileSystem(), str(Path(uri).absolute())
            file = _file_on(path) if isinstance(filesystem, fs.LocalFileSystem) else None
        except (pa.ArrowException, OSError, ValueError) as error:
            raise StoreError(f"{uri}: not a usable store: {error}") from error
        if file is not None:
            raise UsageError(f"store: {file} is a file; name a folder, which is made where there is none")
        return cls(uri, filesystem, path)

    def __truediv__(self, name: str) -> "Place":
        """The folder `name` inside this one."""
        return Place(f"{self.uri.rstrip('/')}/{name}", self.filesystem, f"{self.path.rstrip('/')}/{name}")

    @property
    def parent(self) -> "Place":
        """The folder that this one is in: the store of a table."""
        return Place(self.uri.rpartition("/")[0], self.filesystem, self.path.rpartition("/")[0])

    @property
    def is_local(self) -> bool:
        """Whether it is on the local filesystem (which may be a network mount)."""
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def is_folder(self) -> bool:
        """Whether there is a folder here. Raises StoreError if the filesystem fails."""
        try:
            return bool(self.filesystem.get_file_info(self.path).type == fs.FileType.Directory)
        except OSError as error:
            raise StoreError(f"{self.uri}: cannot be inspected: {error}") from error

    def listed(self, suffix: str = ".parquet") -> dict[str, Listed]:
        """The files here with that suffix, sorted by name; none if the folder does not exist. Raises StoreError."""
        try:
            found = self.filesystem.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        except OSError as error:
            raise StoreError(f"{self.uri}: cannot be listed: {error}") from error
        files = {info.base_name: info for info in found if info.is_file and info.base_name.endswith(suffix)}
        return {
            name: Listed(files[name].size or 0, (files[name].mtime_ns or 0) / 1e9) for name in sorted(files)
        }

    def files(self) -> list[str]:
        """Names of the Parquet files here, sorted; empty if the folder does not exist."""
        return list(self.listed())

    def open(self, name: str) -> StoredFile:
        """The file `name`. Raises MissingFile if there is none, and StoreError if it cannot be read."""
        return StoredFile(f"{self.uri}/{name}", partial(self._opened, name))

    def _opened(self, name: str) -> pa.NativeFile:
        try:
            return self.filesystem.open_input_file(f"{self.path}/{name}")
        except FileNotFoundError as error:
            raise MissingFile(f"{self.uri}/{name}: missing") from error
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{self.uri}/{name}: cannot be read: {_why(error)}") from error

    def write(self, name: str, pieces: Sequence[Bytes]) -> int:
        """Write `pieces` under `name`, whole or not at all, and return their bytes.

        Locally, they are on the disk before a rename gives them the name; object storage takes them in one upload.
        """
        try:
            if self.filesystem.type_name not in _FOLDERLESS:
                self.filesystem.create_dir(self.path, recursive=True)
            if self.is_local:
                self._write_local(name, pieces)
            else:
                with self.filesystem.open_output_stream(f"{self.path}/{name}", buffer_size=_BUFFER) as sink:
                    for piece in pieces:
                        sink.write(piece)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{self.uri}/{name}: cannot be written: {_why(error)}") from error
        return sum(map(len, pieces))

    def _write_local(self, name: str, pieces: Sequence[Bytes]) -> None:
        with whole_file(Path(self.path) / name) as unfinished, unfinished.open("wb", _BUFFER) as sink:
            for piece in pieces:
                sink.write(piece)
            sink.flush()
            os.fsync(sink.fileno())

    def move(self, name: str, folder: str) -> None:
        """Move the file `name` into `folder` inside this place."""
        try:
            self.filesystem.create_dir(f"{self.path}/{folder}", recursive=True)
            self.filesystem.move(f"{self.path}/{name}", f"{self.path}/{folder}/{name}")
        except OSError as error:
            raise StoreError(f"{self.uri}/{name}: cannot be moved: {_why(error)}") from error

    def delete(self, name: str) -> None:
        """Delete the file `name`; a missing file is fine."""
        try:
            self.filesystem.delete_file(f"{self.path}/{name}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.uri}/{name}: cannot be deleted: {_why(error)}") from error


def _file_on(path: str) -> Path | None:
    """The file that stands where `path` has a folder, if there is one."""
    ways = (Path(path), *Path(path).parents)
    there = next((way for way in ways if way.exists()), None)
    return there if there is not None and not there.is_dir() else None


def _why(error: Exception) -> str:
    """The error in one line."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(said.split())


def journal_folder(place: Place) -> Path:
    """The folder of the journals of the table at `place`, on this machine. It need not exist."""
    if place.is_local:
        return Path(place.path)
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home has no journals: nothing can be written here
        cache = Path(os.devnull)
    digest = hashlib.blake2b(place.uri.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return cache / "adjudge" / "journals" / digest


EXPIRY_SECONDS = 600.0
RETRY_SECONDS = 1.0
_ENDING = ".lease"

Renew = Callable[[], None]


@contextmanager
def housekeeping(store: Place) -> Iterator[Renew]:
    """Wait for the lease of `store`, and hold it for the block.

    Call what it gives at least every EXPIRY_SECONDS, and before each change: it renews the lease, and raises StoreError
    if the lease was lost.
    """
    waited = False
    while True:
        with if_free(store) as renew:
            if renew is not None:
                yield renew
                return
        if not waited:
            _log.warning("%s: another process compacts or prunes this store; waiting for it", store.uri)
        waited = True
        time.sleep(RETRY_SECONDS * random.uniform(0.5, 1.5))


def if_free(store: Place) -> AbstractContextManager[Renew | None]:
    """As `housekeeping`, but gives None at once while another process holds the lease."""
    return _locked(store) if store.is_local else _leased(store)


@contextmanager
def _locked(store: Place) -> Iterator[Renew | None]:
    path = Path(store.path) / ".housekeeping"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"{store.uri}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield lambda: None
    finally:
        os.close(descriptor)


@contextmanager
def _leased(store: Place) -> Iterator[Renew | None]:
    own = f"{secrets.token_hex(8)}{_ENDING}"
    if not _taken(store, own):
        yield None
        return
    renewed = time.monotonic()

    def renew() -> None:
        nonlocal renewed
        if time.monotonic() - renewed > EXPIRY_SECONDS / 2:
            raise StoreError(
                f"{store.uri}: the lease expired while the store was rewritten; run the command again"
            )
        if time.monotonic() - renewed > EXPIRY_SECONDS / 20:
            store.write(own, [b"lease"])
            renewed = time.monotonic()

    try:
        yield renew
    finally:
        store.delete(own)


def _taken(store: Place, own: str) -> bool:
    """Whether `own` is now the only lease that has not expired; otherwise it is gone again."""
    store.write(own, [b"lease"])
    others = {name: each for name, each in store.listed(_ENDING).items() if name != own}
    expired = {name for name, each in others.items() if time.time() - each.written > EXPIRY_SECONDS}
    for name in expired:
        store.delete(name)
    if len(others) == len(expired):
        return True
    store.delete(own)
    return False
