"""The files that `reports:` names: by pattern, in folders and in ZIP archives, packed by gzip or not.

Only what is read is unpacked, into memory and up to a limit; nothing of an archive is written to disk.
"""

import functools
import glob
import gzip
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

import msgspec

from adjudge.engine.file_kinds import DOCUMENTS, KINDS, TABLES
from adjudge.engine.formats.rejected import FormatError

MAX_FILE_BYTES = 50_000_000
MAX_UNPACKED_BYTES = 500_000_000
MAX_FILES = 200_000

UNSEEN = (".", "~$")
"""What the names of hidden files begin with, and those of files that Word keeps beside an open one."""
_HIDDEN = re.compile(r"(?:^|/)(?:\.|~\$|__MACOSX/)")


# What STORM leaves beside its article.
_STORM = frozenset(
    {
        "url_to_info.json",
        "conversation_log.json",
        "direct_gen_outline.txt",
        "llm_call_history.jsonl",
        "raw_search_results.json",
        "run_config.json",
        "storm_gen_article.txt",
        "storm_gen_outline.txt",
    }
)


class Unopened(ValueError):
    """A file that cannot be opened or unpacked; the message says why, without its name."""


class Given(msgspec.Struct, frozen=True):
    """An entry of `reports:`: a pattern, whose reports they are if it says so, and the names that fields have in it."""

    path: str
    system: str = ""
    fields: Mapping[str, str] = {}


class InputFile:
    """A file of reports, on disk or a `member` of the archive at `path`; `fields` are the columns of named fields.

    `is_named` is whether a pattern names it, not only its folder or archive. `guessed` collects the columns that were
    taken for fields, by field, and `thoughtful` the reports that held thoughts. `is_of_one` is whether the
    configuration names the system of them all.
    """

    def __init__(
        self, path: Path, member: str = "", fields: Mapping[str, str] | None = None, is_named: bool = True
    ) -> None:
        self.path, self.member, self.fields, self.is_named = path, member, dict(fields or {}), is_named
        self.guessed: dict[str, str] = {}
        self.thoughtful: set[tuple[str, str, int]] = set()
        self.is_of_one = False
        self._room = 0

    def give_room(self, size: int) -> None:
        """Let reports of `size` bytes in all stay in memory: they are read once."""
        self._room = size

    def keeps(self, size: int) -> bool:
        """Whether a report of `size` bytes stays in memory, which then has room for less."""
        if size > self._room:
            return False
        self._room -= size
        return True

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def is_packed(self) -> bool:
        """Whether its bytes are not those on disk."""
        return bool(self.member) or self._whole.suffix.lower() == ".gz"

    @functools.cached_property
    def _whole(self) -> PurePath:
        return self.path.absolute() / self.member if self.member else self.path.absolute()

    @functools.cached_property
    def _plain(self) -> PurePath:
        return self._whole.with_suffix("") if self._whole.suffix.lower() == ".gz" else self._whole

    @property
    def name(self) -> str:
        """Its name, without `.gz`."""
        return self._plain.name

    @functools.cached_property
    def index(self) -> "InputFile | None":
        """The index of the pages that an article of STORM cites, beside it."""
        if self.suffix != ".txt" or not self.name.startswith("storm_gen_article"):
            return None
        beside = self._whole.with_name("url_to_info.json")
        if not self.member:
            return InputFile(Path(beside)) if Path(beside).is_file() else None
        member = str(PurePath(self.member).with_name(beside.name))
        with zipfile.ZipFile(self.path) as archive:
            return InputFile(self.path, member) if member in archive.namelist() else None

    @property
    def _named(self) -> PurePath:
        """What says whose report a document is, and on which task: itself, or the folder that STORM makes for it."""
        return self._plain if self.index is None else self._plain.parent

    @property
    def stem(self) -> str:
        """Its name without what says its kind."""
        return self._named.stem if self.index is None else self._named.name

    @property
    def suffix(self) -> str:
        """What says its kind: `.jsonl`, say."""
        return self._plain.suffix.lower()

    @property
    def folders(self) -> Iterator[str]:
        """The names of the folders that it is in, the nearest first; an archive's is without `.zip`."""
        for parent in self._named.parents:
            yield parent.stem if self.member and parent == self.path.absolute() else parent.name

    @property
    def place(self) -> str:
        """The path of the folder that it is in."""
        return str(self._plain.parent)

    def read(self, limit: int = MAX_UNPACKED_BYTES) -> bytes:
        """Its bytes, unpacked. Raises Unopened for an archive that is broken and for more than `limit` bytes."""
        try:
            if self.member:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
                    body = file.read(limit + 1)
            else:
                with self.path.open("rb") as file:
                    body = file.read(limit + 1)
            if self._whole.suffix.lower() == ".gz" and len(body) <= limit:
                body = _unpacked(body, limit)
        except _BROKEN as error:
            raise Unopened(f"cannot be unpacked: {error}") from error
        except OSError as error:
            raise FormatError(f"{self}: cannot be read: {error.strerror}") from error
        if len(body) > limit:
            raise Unopened(f"larger than {limit:,} bytes")
        return body


# What is raised for a broken archive, one with a password, and one packed in a way that is not known.
_BROKEN = (
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    RuntimeError,
    NotImplementedError,
    UnicodeError,
)


def _unpacked(body: bytes, limit: int) -> bytes:
    """At most one byte more than `limit` of what gzip packed."""
    import io

    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        return file.read(limit + 1)


def matched(given: Given) -> list[InputFile]:
    """The files of an entry, those of folders and archives among them, numbers in their names in order of size.

    Raises FormatError for a pattern that nothing matches, and where nothing in a folder or archive can be read.
    """
    found = _named(Path(given.path))
    if not found:
        raise FormatError(f"reports: {given.path} matches no file; correct the path or pattern")
    files = [one for path in sorted(found, key=by_number) for one in _inside(Path(path), given.fields)]
    for file in files:
        try:
            str(file).encode()
        except UnicodeEncodeError:
            raise FormatError(
                f"reports: {str(file)!r} has a name that is not UTF-8; rename the file"
            ) from None
    if len(files) > MAX_FILES:
        raise FormatError(f"reports: {given.path} has more than {MAX_FILES:,} files; name fewer")
    return files


def _named(path: Path) -> list[str]:
    """What `path` matches as a pattern, behind the folders that are there; itself, if as a pattern it is another's."""
    base = next((one for one in path.parents if one.exists()), Path())
    found = glob.glob(str(path.relative_to(base)), root_dir=base, recursive=True)  # noqa: PTH207 - links are followed
    matching = [str(base / one) for one in found]
    return [str(path)] if path.exists() and str(path) not in matching else matching


def by_number(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts names by the numbers in them."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(1, int(part), part) if place % 2 else (0, 0, part) for place, part in enumerate(parts)]


def _inside(path: Path, fields: Mapping[str, str]) -> Iterator[InputFile]:
    """The file at `path`, or those in the folder or archive there that can be read."""
    if path.is_dir():
        kind, files = "folder", [InputFile(one, "", fields, is_named=False) for one in _below(path)]
    elif path.suffix.lower() == ".zip" and zipfile.is_zipfile(path):
        kind, files = "archive", [InputFile(path, one, fields, is_named=False) for one in _members(path)]
    else:
        yield InputFile(path, "", fields)
        return
    kept = [file for file in files if file.suffix in TABLES | DOCUMENTS and file.name not in _STORM]
    if not kept:
        raise FormatError(f"reports: {path}: a {kind} without reports; they are read from {KINDS}")
    yield from kept


def _below(folder: Path) -> list[Path]:
    """The files in a folder and those below it, hidden ones left out; links to folders are not followed."""
    found: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted((name for name in folders if not name.startswith(UNSEEN)), key=by_number)
        found += [os.path.join(parent, name) for name in names if not name.startswith(UNSEEN)]  # noqa: PTH118
        if len(found) > MAX_FILES:
            raise FormatError(f"reports: {folder} has more than {MAX_FILES:,} files; name fewer")
    return [Path(one) for one in sorted(found, key=by_number)]


def _members(path: Path) -> list[str]:
    """The names of an archive's files. Raises FormatError if it is broken or too large."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except _BROKEN as error:
        raise FormatError(f"reports: {path}: not a ZIP archive that can be read: {error}") from error
    except OSError as error:
        raise FormatError(f"reports: {path}: cannot be read: {error.strerror}") from error
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise FormatError(f"reports: {path}: larger than {MAX_UNPACKED_BYTES:,} bytes unpacked; unpack it")
    names = [entry.filename for entry in entries if not entry.is_dir()]
    return sorted((name for name in names if not _HIDDEN.search(name)), key=by_number)
