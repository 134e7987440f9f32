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
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.blake2b(place.uri.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return Path(cache) / "adjudge" / "journals" / digest
