"""What the viewer keeps of a run: an index of its scorecards in memory, and rows read on demand.

The viewer's memory: what a page has read is given back once it is shown.

The kinds of outcome that are verdicts: a sign and words for each, and how many of each a scorecard has.

A run's score rows, read on demand: row groups without a wanted row are not opened.

A run's scorecards: an index in memory, the cards themselves on disk.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adjudge.engine.errors import UsageError
from adjudge.engine.store.cards import OldCard, read_card, read_counts
from adjudge.engine.store.journal import live_parts, open_part
from adjudge.engine.store.part import current
from adjudge.engine.store.place import Place
from adjudge.engine.store.scorecards import SCORECARDS
from adjudge.scoring.contract.scorecard import Scorecard


def use_little(threads: int) -> None:
    """Let Arrow use the system's allocator, which can give memory back, and `threads` threads, as each has a heap."""
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_io_thread_count(threads)


def release() -> None:
    """Give free memory back to the system: a millisecond, and about 100 MB after a page with large cards."""
    pa.default_memory_pool().release_unused()


class Kind(msgspec.Struct, frozen=True):
    """A kind of verdict: its sign, the words for it in a legend, and whether it is good; None where it is neither."""

    sign: str
    words: str
    good: bool | None


KINDS: Mapping[str, Kind] = {
    "supported": Kind("✓", "supported", True),
    "met": Kind("✓", "full points", True),
    "matched": Kind("✓", "matched", True),
    "partly": Kind("◐", "some points", False),
    "unsupported": Kind("✗", "unsupported", False),
    "unmet": Kind("✗", "no points", False),
    "unmatched": Kind("✗", "no match", False),
    "blocked": Kind("✗", "rests on a blocked source", False),
    "true": Kind("T", "said to be true", None),
    "false": Kind("F", "said to be false", None),
    "not_stated": Kind("·", "not stated", None),
    "unknown": Kind("?", "unknown", False),
    "unreachable": Kind("⊘", "page unreachable", False),
    "missing": Kind("–", "missing", False),
}
"""The kinds of outcome that are counted, in their order.

Marks, notes and listed problems are not verdicts, and comparisons are counted in tables of their own.
"""


class Verdicts(msgspec.Struct, frozen=True):
    """How many lines of evidence have which verdict, in the order of KINDS."""

    counts: tuple[int, ...]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Verdicts":
        """From the lines of each kind of outcome (`count_kinds`)."""
        return cls(tuple(counts.get(kind, 0) for kind in KINDS))

    @property
    def by_kind(self) -> dict[str, int]:
        """The kinds that there are, and how many of each."""
        return {kind: count for kind, count in zip(KINDS, self.counts, strict=True) if count}

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts)

    @property
    def figure(self) -> str:
        """How many are good (supported, matched, full points) of those that could be; all, where none could be."""
        good = sum(count for kind, count in self.by_kind.items() if KINDS[kind].good)
        rated = sum(count for kind, count in self.by_kind.items() if KINDS[kind].good is not None)
        return f"{good:,} of {rated:,}" if rated else f"{self.total:,}"

    @property
    def said(self) -> str:
        """In words."""
        return ", ".join(f"{count:,} {KINDS[kind].words}" for kind, count in self.by_kind.items())

    @property
    def parts(self) -> list[tuple[str, float, float]]:
        """(kind, start, width) of each part of the stack that is drawn of them, in percent."""
        made, start = [], 0
        for kind, count in self.by_kind.items():
            made.append((kind, round(100 * start / self.total, 2), round(100 * count / self.total, 2)))
            start += count
        return made

    @staticmethod
    def kinds(found: Iterable["Verdicts | None"]) -> list[tuple[str, str]]:
        """The kinds that occur, with words for a legend; nothing where all there is is missing."""
        present = {kind for one in found if one is not None for kind in one.by_kind}
        return (
            [(kind, about.words) for kind, about in KINDS.items() if kind in present]
            if present - {"missing"}
            else []
        )


_REPORT = ("system", "task_id", "sample", "repeat")


class ScoreRows:
    """The rows of a scores.parquet. Raises UsageError for a folder without one."""

    def __init__(self, run: Path) -> None:
        self._path = run / "scores.parquet"
        try:
            pq.read_metadata(self._path)
        except (OSError, pa.ArrowException) as error:
            raise UsageError(
                f"{run}: scores.parquet cannot be read ({error}); name the folder of a finished run"
            ) from error

    def select(self, columns: list[str], **equal: str | int) -> pa.Table:
        """`columns` of the rows whose values equal those in `equal`, in the file's order."""
        with pq.ParquetFile(self._path) as file:
            places = {file.schema_arrow.names[i]: i for i in range(len(file.schema_arrow.names))}
            kept = [
                _matching(file.read_row_group(group, columns=[*{*columns, *equal}]), equal).select(columns)
                for group in range(file.num_row_groups)
                if all(_may_hold(file, group, places[name], value) for name, value in equal.items())
            ]
        tables = [table for table in kept if len(table)] or kept[:1]
        return pa.concat_tables(tables) if tables else self._empty(columns)

    def _empty(self, columns: list[str]) -> pa.Table:
        return pq.read_schema(self._path).empty_table().select(columns)

    def of_metric(self, protocol: str, metric: str, **equal: str | int) -> pa.Table:
        """Rows of one metric: the report's identity, value and reason."""
        columns = [*_REPORT, "value", "reason"]
        return self.select(columns, protocol=protocol, metric=metric, **equal)

    def by_task(self, protocol: str, metric: str) -> dict[str, dict[str, float]]:
        """Each task's systems and their means over samples and repeats; those without a value are not there."""
        found = self.select(["system", "task_id", "value"], protocol=protocol, metric=metric)
        valid = found.filter(pc.is_valid(found["value"]))
        # Threads would add values up, and order systems, in a way of their own each time.
        means = valid.group_by(["task_id", "system"], use_threads=False).aggregate([("value", "mean")])
        tasks: dict[str, dict[str, float]] = {}
        for task, system, value in zip(
            *(means[name].to_pylist() for name in ("task_id", "system", "value_mean")), strict=True
        ):
            tasks.setdefault(task, {})[system] = value
        return tasks


class RowsSoFar(ScoreRows):
    """The score rows of a run that has not finished, as `rows` gives them."""

    def __init__(self, rows: Callable[[], pa.Table]) -> None:
        self._rows = rows

    def select(self, columns: list[str], **equal: str | int) -> pa.Table:
        """`columns` of the rows whose values equal those in `equal`."""
        return _matching(self._rows(), equal).select(columns)


def joined(here: pa.Table, there: pa.Table) -> pa.Table:
    """Rows of one metric in two runs, report by report: value, reason, other, other_reason and their difference."""
    other = there.rename_columns([*_REPORT, "other", "other_reason"])
    table = here.join(other, list(_REPORT), join_type="full outer")
    difference = pc.subtract(table["value"], table["other"])
    return table.append_column("difference", difference)


def _matching(table: pa.Table, equal: dict[str, str | int]) -> pa.Table:
    """The rows of `table` whose values equal those in `equal`.

    Compared with a scalar of the column itself: to make a new one, pyarrow would import pandas if it is installed.
    """
    for name, value in equal.items():
        kinds = pc.unique(table[name])
        held = kinds.to_pylist()
        if value not in held:
            return table.slice(0, 0)
        table = table.filter(pc.equal(table[name], kinds[held.index(value)]))
    return table


def _may_hold(file: pq.ParquetFile, group: int, column: int, value: str | int) -> bool:
    """Whether a row group may hold `value`, by the minimum and maximum of its column if they are recorded."""
    found = file.metadata.row_group(group).column(column).statistics
    return found is None or not found.has_min_max or found.min <= value <= found.max


C = TypeVar("C", Scorecard, OldCard)
Read = Callable[[memoryview], C]
Columns = npt.NDArray[np.int32]
CardName = tuple[str, str, str, int, int]  # protocol, system, task, sample, repeat

_IDENTITY = ("run", "system", "task_id", "sample", "repeat")
_NAME = ("protocol", *_IDENTITY[1:])
_AT_ONCE = 128  # cards, of 10 kB and more each


class CardIndex:
    """The scorecards of one run in a store. Make it with `CardIndex.of`, which reads all columns but the cards.

    `systems` and `tasks` number the names; `columns` are int32[n]: system, task, sample, repeat, part and row, in order
    of the last two; `written` are int64[n], microseconds since 1970.
    """

    def __init__(
        self,
        place: Place,
        parts: list[str],
        systems: dict[str, int],
        tasks: dict[str, int],
        columns: Columns,
        written: npt.NDArray[np.int64],
    ) -> None:
        self._place = place
        self._parts = parts
        self._systems = systems
        self._tasks = tasks
        self._written = written
        self._counted: dict[int, tuple[CardName, Verdicts]] = {}
        self._system, self._task, self._sample, self._repeat, self._part, self._row = columns

    @classmethod
    def of(cls, store: Place, run: str) -> "CardIndex":
        """The cards of `run` in `store`. Raises StoreError."""
        place = store / SCORECARDS.name
        parts = live_parts(place)
        systems: dict[str, int] = {}
        tasks: dict[str, int] = {}
        found = [np.empty((6, 0), np.int32)]
        written = [np.empty(0, np.int64)]
        for number, name in enumerate(parts):
            table = open_part(place, SCORECARDS, name).read([*_IDENTITY, "written_at"])
            runs: dict[str, int] = {run: 0}
            own = np.flatnonzero(_numbered(table["run"], runs) == 0)
            columns = (
                _numbered(table["system"], systems),
                _numbered(table["task_id"], tasks),
                table["sample"].to_numpy(),
                table["repeat"].to_numpy(),
                np.full(len(table), number),
                np.arange(len(table)),
            )
            found.append(np.array([column[own] for column in columns], np.int32))
            written.append(pc.cast(table["written_at"], pa.int64()).to_numpy()[own])
        return cls(place, parts, systems, tasks, np.concatenate(found, axis=1), np.concatenate(written))

    def __len__(self) -> int:
        """How many scorecards the run has."""
        return len(self._row)

    def find(self, system: str, task: str, sample: int, repeat: int) -> list[Scorecard]:
        """The cards of one report, in order of protocol."""
        wanted = self._of(system, task) & (self._sample == sample) & (self._repeat == repeat)
        return sorted((card for _, card in self._at(wanted, read_card)), key=lambda card: card.protocol)

    def verdicts_of_system(self, system: str, tasks: Collection[str]) -> dict[CardName, Verdicts]:
        """The verdicts of the cards of a system's reports for `tasks`."""
        wanted = [self._tasks[task] for task in tasks if task in self._tasks]
        return self._verdicts((self._system == self._systems.get(system, -1)) & np.isin(self._task, wanted))

    def verdicts_of_task(self, task: str) -> dict[CardName, Verdicts]:
        """The verdicts of the cards of all reports for a task."""
        return self._verdicts(self._task == self._tasks.get(task, -1))

    def _verdicts(self, wanted: npt.NDArray[np.bool_]) -> dict[CardName, Verdicts]:
        """The verdicts of the cards where `wanted` is set; each card is read once."""
        places = np.flatnonzero(wanted).tolist()
        unread = wanted.copy()
        unread[[place for place in places if place in self._counted]] = False
        for place, row in self._rows(unread, [*_NAME, "verdicts"]):
            if row["verdicts"] is not None:
                verdicts = Verdicts.of(read_counts(row["verdicts"]))
                self._counted[place] = tuple(row[column] for column in _NAME), verdicts
                unread[place] = False
        for place, card in self._at(unread, _old_card):
            name = (card.protocol, card.system, card.task_id, card.sample, card.repeat)
            self._counted[place] = name, Verdicts.of(card.counts)
        return dict(self._counted[place] for place in places)

    def _rows(
        self, wanted: npt.NDArray[np.bool_], columns: list[str]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The `columns` of the cards where `wanted` is set, with their places."""
        for (part, group), places in self._groups(wanted).items():
            table = open_part(self._place, SCORECARDS, self._parts[part]).group(group, columns)
            rows = current(table, SCORECARDS).select(columns).take(list(places))
            yield from zip(places.values(), rows.to_pylist(), strict=True)

    def _of(self, system: str, task: str) -> npt.NDArray[np.bool_]:
        """Where the cards of a system's reports for a task are."""
        found: npt.NDArray[np.bool_] = (self._system == self._systems.get(system, -1)) & (
            self._task == self._tasks.get(task, -1)
        )
        return found

    def _at(self, wanted: npt.NDArray[np.bool_], read: Read[C]) -> Iterator[tuple[int, C]]:
        """What `read` makes of the cards where `wanted` is set, with their places; each group of rows is read once."""
        for (part, group), places in self._groups(wanted).items():
            last = max(places)
            for start, column in self._cards(part, group):
                for row in sorted(places.keys() & range(start, start + len(column))):
                    yield places[row], read(_bytes(column[row - start]))
                if start + len(column) > last:
                    break

    def _groups(self, wanted: npt.NDArray[np.bool_]) -> dict[tuple[int, int], dict[int, int]]:
        """By part and row group, the rows of the cards where `wanted` is set, and their places."""
        groups: dict[tuple[int, int], dict[int, int]] = {}
        for place in np.flatnonzero(wanted).tolist():
            group, row = divmod(int(self._row[place]), SCORECARDS.row_group)
            groups.setdefault((int(self._part[place]), group), {})[row] = place
        return groups

    def scan(self, after: int, holding: str) -> Iterator[tuple[int, Scorecard | None]]:
        """From place `after` on: (place, card) for cards with `holding` in their JSON, and (place, None) in between.

        A place is where a later scan continues behind that step.
        """
        part, row = after >> 32, after & 0xFFFFFFFF
        for number in range(part, len(self._parts)):
            own = np.sort(self._row[self._part == number])
            own = own[own >= row] if number == part else own
            for group in np.unique(own // SCORECARDS.row_group).tolist():
                wanted = own[own // SCORECARDS.row_group == group]
                places = (wanted - group * SCORECARDS.row_group).tolist()
                for at, card in self._holding(number, group, places, holding):
                    yield (number << 32) + group * SCORECARDS.row_group + at + 1, card
                yield (number << 32) + (group + 1) * SCORECARDS.row_group, None

    def naming(self, key: str, written: int) -> Scorecard | None:
        """The first card that names the judgment `key`, which was `written` at so many microseconds since 1970.

        It is looked for among those written since first: a card is written soon after what it was made of.
        """
        later = np.flatnonzero(self._written >= written)
        since = (int(self._part[later[0]]) << 32) + int(self._row[later[0]]) if len(later) else 0
        for start in dict.fromkeys((since, 0)):
            for _, card in self.scan(start, key):
                if card is not None and key in card.judgments:
                    return card
        return None

    def _holding(
        self, part: int, group: int, rows: list[int], holding: str
    ) -> Iterator[tuple[int, Scorecard]]:
        wanted = set(rows)
        for start, column in self._cards(part, group):
            found = pc.match_substring(column, holding, ignore_case=True).to_pylist()
            for row, hit in enumerate(found, start):
                if hit and row in wanted:
                    yield row, read_card(_bytes(column[row - start]))

    def _cards(self, part: int, group: int) -> Iterator[tuple[int, pa.Array]]:
        """The cards of a row group in batches, each with the row of its first card."""
        start = 0
        file = open_part(self._place, SCORECARDS, self._parts[part])
        try:
            for batch in file.batches(group, ["card"], _AT_ONCE):
                yield start, batch.column(0)
                start += len(batch)
        finally:
            release()


def _bytes(text: pa.StringScalar) -> memoryview:
    return memoryview(text.as_buffer())


_old_card = msgspec.json.Decoder(OldCard).decode


def _numbered(names: pa.ChunkedArray, known: dict[str, int]) -> npt.NDArray[np.int32]:
    """Each name's number in `known`, to which new names are added."""
    codes = []
    for chunk in pc.cast(names, pa.string()).dictionary_encode().chunks:
        numbers = [known.setdefault(name, len(known)) for name in chunk.dictionary.to_pylist()]
        codes.append(np.array(numbers, np.int32)[chunk.indices.to_numpy()])
    return np.concatenate(codes) if codes else np.empty(0, np.int32)
