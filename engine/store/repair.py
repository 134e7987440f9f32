"""Repair: parts that are damaged are moved aside, so that the rest of a store can be used."""

from typing import Any

import msgspec
import pyarrow as pa

from adjudge.engine.store.kinds import TableKind
from adjudge.engine.store.lease import housekeeping
from adjudge.engine.store.part import Part, current
from adjudge.engine.store.place import DamagedPart, MissingFile, Place, StoredFile
from adjudge.engine.store.upkeep import TABLES

__all__ = ["ASIDE", "Repaired", "repair"]

ASIDE = "damaged"  # the folder inside a table's


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair found in one table: how many parts it has, and which of them were moved aside."""

    table: str
    parts: int
    moved: list[str]


def repair(place: Place) -> list[Repaired]:
    """Read every part of the store at `place`, and move damaged ones into the folder `damaged` of their table.

    What a moved part replaced counts again, if it is still there. Raises StoreError if a part cannot be read at all, or
    is of a later version: it may be whole.
    """
    with housekeeping(place) as renew:
        found = []
        for kind in TABLES:
            folder = place / kind.name
            names, moved = folder.files(), []
            for name in names:
                try:
                    _read_whole(folder, kind, name)
                except DamagedPart:
                    renew()
                    folder.move(name, ASIDE)
                    moved.append(name)
                except MissingFile:
                    continue
            found.append(Repaired(table=kind.name, parts=len(names), moved=moved))
        return found


def _read_whole(folder: Place, kind: TableKind[Any], name: str) -> None:
    """Read the part `name` from memory, where only damage can make it fail. Raises StoreError."""
    file = folder.open(name)
    data = file.read(0, file.size)
    part = Part(StoredFile(file.where, pa.BufferReader(data)))
    for group in range(len(part.groups)):
        current(part.group(group), kind)
    for frame in range(len(part.records or ())):
        for _ in part.block(frame, 1, kind):
            pass
