"""Files that are there whole or not at all, and names of files for whatever they are about."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

_SAFE = " ()[]{},;:=+@!'&~"
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
    """Write `content` as the file `path`, whole or not at all. Raises OSError."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(content)


def file_name(name: str) -> str:
    """`name` as one part of a path, another for every name: percent-encoded where it could lead elsewhere, or cut."""
    found = name
    if any(char in name for char in "/\\%") or name.startswith(".") or not name.isprintable() or not name:
        found = quote(name, safe=_SAFE, errors="replace").replace(".", "%2E", 1) or "%"
    if len(found.encode("utf-8", "replace")) <= _MAX_BYTES:
        return found
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{found.encode('utf-8', 'replace')[: _MAX_BYTES - 20].decode('utf-8', 'ignore')}~{digest}"
