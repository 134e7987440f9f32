"""Where the journals of a table are: beside its parts, or in the user's cache folder for a store that is not local."""

import hashlib
import os
from pathlib import Path

from adjudge.engine.store.place import Place

__all__ = ["journal_folder"]


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
