"""Verdicts that people overrode with a reason (`adjudge label --edit`), and the scores that theirs give.

Whoever overrides a verdict has seen it and chose it, so overrides are not a sample: nothing is estimated from them.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from adjudge.engine.config.metrics import Name
from adjudge.engine.runs.board import MetricBoard, Override
from adjudge.engine.runs.people import People
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.judges.plural import plural

__all__ = ["NO_EDITS", "Edits", "edits_of", "with_edits"]


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """People's `overrides` of the verdicts of some runs.

    `changes` has, by metric and system, what they add to the sum over tasks; `notes` says what they cannot change.
    """

    overrides: tuple[Override, ...] = ()
    changes: dict[Name, dict[str, float]] = {}
    notes: tuple[str, ...] = ()


NO_EDITS = Edits()


def edits_of(runs: Sequence[tuple[Run, RunRecord]], file: str | Path) -> Edits:
    """The overrides in `file` of the verdicts of `runs`; of several for one verdict, the last.

    Of each run, only the systems and tasks that the record beside it names are looked at. Raises UsageError for a file
    that cannot be read, StoreError.
    """
    overrides: list[Override] = []
    changes: dict[Name, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    unchanged: set[Name] = set()
    for run, record in runs:
        people = People(run, Path(file))
        if not people.has_overrides:
            continue
        samples: Counter[tuple[str, str, str]] = Counter()
        found: list[tuple[Name, str, str, float]] = []
        for card, items in run.labelled_cards():
            if card.system not in record.systems or card.task_id not in record.tasks:
                continue
            samples[card.protocol, card.system, card.task_id] += 1
            overrides += [
                Override(
                    protocol=item.protocol,
                    system=item.system,
                    task_id=item.task_id,
                    what=item.line.what,
                    url=item.line.url,
                    judge=item.labelled.label,
                    people=label.label,
                    rater=label.rater,
                    reason=label.note,
                )
                for item in items
                if (label := people.override(item)) is not None
            ]
            for metric, change in people.changes(card, items).items():
                name = Name(card.protocol, metric)
                if change is None:
                    unchanged.add(name)
                else:
                    found.append((name, card.system, card.task_id, change))
        for name, system, task, change in found:
            due = max(record.config.samples, samples[name[0], system, task])
            changes[name][system] += change / due
    known = {name: dict(by) for name, by in changes.items() if name not in unchanged}
    return Edits(overrides=tuple(overrides), changes=known, notes=tuple(_notes(overrides, unchanged)))


def _notes(overrides: Sequence[Override], unchanged: set[Name]) -> list[str]:
    notes = []
    if overrides:
        verdicts = f"{plural(len(overrides), 'verdict')} {'was' if len(overrides) == 1 else 'were'}"
        notes.append(
            f"{verdicts} overridden by people; `edited by people` is the score with theirs, beside the judge's, which "
            "ranks"
        )
    notes += [
        f"{protocol} {metric} is not edited: it is not a share of the overridden verdicts, or the judge was asked "
        "several times"
        for protocol, metric in sorted(unchanged)
    ]
    return notes


def with_edits(board: MetricBoard, changes: Mapping[Name, Mapping[str, float]]) -> MetricBoard:
    """`board` with the scores that people's verdicts give, if any of it was overridden."""
    own = changes.get(Name(board.protocol, board.metric))
    if not own or not board.n_tasks:
        return board
    standings = tuple(
        row
        if row.value is None
        else msgspec.structs.replace(row, edited=row.value + own.get(row.system, 0.0) / board.n_tasks)
        for row in board.standings
    )
    return msgspec.structs.replace(board, standings=standings)
