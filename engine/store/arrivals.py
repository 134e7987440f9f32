"""The scorecards of a run while they arrive: each part is read once, when it is new."""

import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.store.catalog import open_part
from adjudge.engine.store.part import current
from adjudge.engine.store.place import MissingFile, Place
from adjudge.engine.store.scorecards import SCORECARDS, flat_scores, score_table

__all__ = ["Arrivals"]

_COLUMNS = ["run", "protocol", "system", "task_id", "sample", "repeat", "metrics", "bounds", "rival"]


class Arrivals:
    """The score rows of `run`, which began at `began`, in seconds since the epoch.

    Journals are not read: what is in them is in a part seconds later, unless the process of the run has died (`whole`).
    """

    def __init__(self, store: Place, run: str, began: float) -> None:
        self._store = store
        self._place = store / SCORECARDS.name
        self._run = run
        self._first = f"{int(began * 1e9):020d}"
        self._seen: set[str] = set()
        self.rows: pa.Table = flat_scores([])

    def whole(self) -> pa.Table:
        """All rows, those of journals included. Raises StoreError."""
        self.rows = score_table(self._store, self._run)
        return self.rows

    def take_in(self) -> pa.Table | None:
        """The rows of new parts, which `rows` then has too; None if parts were rewritten, and `rows` was read anew.

        Raises StoreError.
        """
        names = [name for name in self._place.files() if name not in self._seen]
        fresh = []
        for name in names:
            self._seen.add(name)
            if name < self._first:  # written before the run began
                continue
            try:
                part = open_part(self._place, SCORECARDS, name)
            except MissingFile:
                continue
            if part.replaces:
                self._seen.update(self._place.files())
                self.whole()
                return None
            table = current(part.read(_COLUMNS), SCORECARDS)
            fresh.append(table.filter(pc.equal(pc.cast(table["run"], pa.string()), self._run)))
        rows = flat_scores(fresh)
        if len(rows):
            self.rows = pa.concat_tables([self.rows, rows], promote_options="default")
        return rows
