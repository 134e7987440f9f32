"""Files that are there whole or not at all, that are nobody else's, and that have a name for whatever they are about.

A file that somebody else made, or changed, is never written over: a mistyped `--out` must not cost a file its contents.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

_SAFE = " ()[]{},;=+@!'&~"
_MAX_BYTES = 200


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A new file beside `path` to write to, which takes its place when the context ends without an error.

    A reader finds the former file, or none, until the new one is complete. Raises OSError.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` as the file `path`, whole and on the disk, or not at all. Raises OSError."""
    with whole_file(path) as unfinished:
        _write(unfinished, content)


def write_new(path: Path, content: bytes) -> None:
    """Write `content` as the new file `path`, whole and on the disk, or not at all.

    Raises FileExistsError if there is a file already, and OSError.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write(unfinished, content)
        try:
            os.link(unfinished, path)  # unlike a rename, it replaces nothing
        except FileExistsError:
            raise
        except OSError:  # a filesystem without links
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


MADE = ".adjudge-made.json"
"""Which files of a folder `own_files` made, where it remembers: their names, with a digest of what each held then."""


@contextmanager
def own_files(out: Path, remember: bool = False) -> Iterator[Path]:
    """A new folder to write into, whose files are moved into `out` when the context ends without an error.

    Links are left out. None is moved if another file, which holds something else, is in the place of one. With
    `remember`, what was written is noted in MADE, and a later call replaces it as long as nobody has changed it. Raises
    FileExistsError, which names the file in the way, and OSError.
    """
    out.mkdir(parents=True, exist_ok=True)
    new = out / f".adjudge-{secrets.token_hex(4)}.new"
    new.mkdir()
    try:
        yield new
        files = sorted(
            path.relative_to(new) for path in new.rglob("*") if path.is_file() and not path.is_symlink()
        )
        made = _made(out)
        fresh = {str(name): _digest(new / name) for name in files}
        for name in files:
            place = out / name
            if os.path.lexists(place) and _digest(place) not in (made.get(str(name)), fresh[str(name)]):
                said = "holds something else; move it away or choose another folder"
                raise FileExistsError(errno.EEXIST, said, str(place))
        for name in files:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).replace(out / name)
        if remember:
            write_whole(out / MADE, json.dumps(made | fresh, indent=1).encode())
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _made(out: Path) -> dict[str, str]:
    try:
        found = json.loads((out / MADE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(file: Path) -> str:
    """A digest of what `file` holds; "" of what is no readable file."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return ""


def file_name(name: str) -> str:
    """`name` as one part of a path, another for every name: percent-encoded where it could lead elsewhere, or cut.

    It holds no sign that Windows keeps out of names of files.

    Names that differ in case alone, which some filesystems take for one, stay apart only where case counts.
    """
    found = name
    odd = (
        any(char in name for char in '/\\%:*?"<>|')
        or name.startswith((".", " "))
        or name.endswith((".", " "))
    )
    if odd or not name.isprintable() or not name:
        found = quote(name, safe=_SAFE, errors="surrogatepass").replace(".", "%2E", 1) or "%"
    if len(found.encode("utf-8", "replace")) <= _MAX_BYTES:
        return found
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{found.encode('utf-8', 'replace')[: _MAX_BYTES - 20].decode('utf-8', 'ignore')}~{digest}"
