"""A folder that is there whole or not at all: written beside its place, and moved there at the end."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adjudge.engine.errors import UsageError

__all__ = ["MADE_BY", "whole_folder"]

MADE_BY = "adjudge-view.json"
"""The file by which a folder that this made is known again."""


@contextmanager
def whole_folder(place: Path, key: str) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `place` when the context ends without an error.

    Raises UsageError that begins with `key` where something else is already, or where nothing can be written.
    """
    if place.exists() and not place.is_dir():
        raise UsageError(f"{key}: {place} is a file; pass a new or an empty folder")
    if place.exists() and not (place / MADE_BY).is_file() and any(place.iterdir()):
        raise UsageError(f"{key}: {place} holds other files; pass a new or an empty folder")
    token = secrets.token_hex(4)
    new, old = (place.parent / f".{place.name[:80]}.{token}.{end}" for end in ("new", "old"))
    try:
        new.mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"{key}: {place} cannot be written: {error.strerror}; pass another folder"
        ) from error
    try:
        yield new
        if place.exists():
            place.replace(old)
        new.replace(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
