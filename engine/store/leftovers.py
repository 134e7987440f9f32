"""Journals that dead writers left on this machine become parts."""

from collections import defaultdict
from typing import Any

from adjudge.engine.store.catalog import read_catalog, writer_of
from adjudge.engine.store.journal import Journal, journals, open_left, read_rows
from adjudge.engine.store.kinds import TableKind
from adjudge.engine.store.part import write_part
from adjudge.engine.store.place import Place
from adjudge.engine.store.rows import table_of
from adjudge.engine.store.scratch import journal_folder

__all__ = ["take_in_leftovers"]

_AT_ONCE = 100  # locked journals: each is an open file


def take_in_leftovers(place: Place, kind: TableKind[Any]) -> int:
    """Write the journals of dead writers at `place` as parts, and delete them; how many. Raises StoreError.

    A part gets the journal's name, so that it does not matter how often, and by how many processes at once, this is
    begun: a kill between writing the part and deleting the journal leaves a journal whose part is there.
    """
    folder = journal_folder(place)
    taken = 0
    by_writer: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in journals(folder):
        writer, number = writer_of(name)
        by_writer[writer].append((number, name))
    for numbered in by_writer.values():
        left = []
        for _, name in sorted(numbered)[:_AT_ONCE]:
            journal = open_left(folder, name)
            if journal is None:  # a part says that it follows all earlier ones of its writer
                break
            left.append((name, journal))
        taken += _take_in(place, kind, left)
    return taken


def _take_in(place: Place, kind: TableKind[Any], left: list[tuple[str, Journal]]) -> int:
    unwritten = read_catalog(place).journals if left else []
    for done, (name, journal) in enumerate(left):
        try:
            if name in unwritten:
                table = table_of(kind, read_rows(journal.path, kind))
                if len(table):
                    write_part(place, name, table, kind)
        except OSError:
            for _, later in left[done:]:
                later.close()
            raise
        journal.discard()
    return len(left)
