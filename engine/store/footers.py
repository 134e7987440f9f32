"""What a reader needs of each part's footer before it reads rows, and the file that keeps it.

Footers are read one after the other. A table's `.footers` has what they said, so that the next reader opens only parts
that are new. It is never trusted about a part whose size or time differs, nothing depends on it, and any reader of many
new parts writes it again: deleting it costs one slower opening.
"""

import logging
import zlib
from collections.abc import Mapping

import msgspec

from adjudge.engine.errors import StoreError
from adjudge.engine.store.part import Part
from adjudge.engine.store.place import Listed, MissingFile, Place

__all__ = ["FILE", "Footer", "Footers"]

_log = logging.getLogger(__name__)

FILE = ".footers"
_WORTH_KEEPING = 64  # new footers: fewer are read again in less time than a file is written
_MOST_BYTES = 64 << 20


class Footer(msgspec.Struct, frozen=True, array_like=True):
    """What a part's footer says: see `Part`. `size` and `written` are those of the file that it was read from."""

    size: int
    written: float
    version: int
    replaces: list[str]
    segments: dict[str, int]


class Footers:
    """The footers of the files `listed` at `place`, each read when it is first asked for, if it is not `known`."""

    def __init__(self, place: Place, listed: Mapping[str, Listed], known: Mapping[str, Footer]) -> None:
        self._place = place
        self._listed = listed
        self._read = 0
        self._known = {
            name: footer
            for name, footer in (known or _kept(place)).items()
            if (file := listed.get(name)) and (file.size, file.written) == (footer.size, footer.written)
        }

    @property
    def known(self) -> dict[str, Footer]:
        """Those that have been read."""
        return self._known

    @property
    def names(self) -> list[str]:
        """All files, sorted."""
        return list(self._listed)

    def __getitem__(self, name: str) -> Footer:
        """The footer of the part `name`. Raises MissingFile, and StoreError if it is damaged or of a later version."""
        if name not in self._known:
            part, file = Part(self._place.open(name)), self._listed[name]
            self._known[name] = Footer(file.size, file.written, part.version, part.replaces, part.segments)
            self._read += 1
        return self._known[name]

    def keep(self) -> None:
        """Write the file if many were new. One that cannot be written is not missed."""
        if self._read < _WORTH_KEEPING:
            return
        content = msgspec.msgpack.encode(self._known)
        try:
            self._place.write(FILE, [zlib.crc32(content).to_bytes(4, "little"), content])
        except StoreError as error:
            _log.debug("%s", error)


def _kept(place: Place) -> dict[str, Footer]:
    """What the file says; nothing if there is none, or if it is not whole."""
    try:
        file = place.open(FILE)
        content = file.read(0, min(file.size, _MOST_BYTES))
    except (MissingFile, StoreError):
        return {}
    if zlib.crc32(content[4:]).to_bytes(4, "little") != content[:4]:
        return {}
    try:
        return msgspec.msgpack.decode(content[4:], type=dict[str, Footer])
    except msgspec.MsgspecError:
        return {}
