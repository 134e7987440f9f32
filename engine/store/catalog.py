"""Which parts of a table count: replaced ones do not, and a journal counts until a part contains its rows.

A part is named `BEGUN-WRITER-NUMBER.parquet`; its journal has the same name with another ending. A rewritten part
(`...-rewritten.parquet`) names the parts that it replaces, and of each writer the last part whose rows it contains.
If two rewritten parts replace the same part, which only happens if a lease was lost, the first by name counts and the
other is void: nothing is there twice, and nothing is lost.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.engine.errors import StoreError
from adjudge.engine.store.journal import journal_part, journals
from adjudge.engine.store.kinds import TableKind
from adjudge.engine.store.part import Part
from adjudge.engine.store.place import MissingFile, Place
from adjudge.engine.store.scratch import journal_folder

__all__ = ["Catalog", "live_parts", "open_part", "read_catalog", "writer_of"]

_ATTEMPTS = 10


class Catalog(msgspec.Struct, frozen=True):
    """The parts of a table, all oldest first.

    `versions` has the schema version of every file. `live` are files whose rows count, `journals` names of parts that
    are so far only journals. `replaced_by` has the part that replaces each of the others; `void` ones do not count.
    `segments` has, of each writer, the number of the last part that is contained in another.
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


def read_catalog(place: Place) -> Catalog:
    """The catalog of the table at `place`. Raises StoreError, also for a damaged part and for a later version."""
    for _ in range(_ATTEMPTS):
        unwritten = journals(
            journal_folder(place)
        )  # before the files: a journal is deleted after its part is there
        try:
            return _catalog({name: Part(place.open(name)) for name in place.files()}, unwritten)
        except MissingFile:
            continue  # it was replaced long ago, and deleted since it was listed
    raise StoreError(
        f"{place.uri}: parts disappear while they are read; is another store being copied over it?"
    )


def _catalog(parts: Mapping[str, Part], unwritten: list[str]) -> Catalog:
    replaced_by: dict[str, str] = {}
    segments: dict[str, int] = {}
    void = []
    for name, part in sorted(parts.items()):
        replaces = part.replaces
        if any(replaced_by.get(other, other) not in replaces for other in replaces):
            void.append(name)
            continue
        replaced_by.update(dict.fromkeys(replaces, name))
        for writer, number in part.segments.items():
            segments[writer] = max(number, segments.get(writer, -1))
    return Catalog(
        versions={name: part.version for name, part in parts.items()},
        live=[name for name in sorted(parts) if name not in replaced_by and name not in void],
        journals=[name for name in unwritten if name not in parts and not _contained(name, segments)],
        replaced_by={old: new for old, new in replaced_by.items() if old in parts},
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
