"""Chooses tasks and systems: from the files that a run reads, and from the runs that a leaderboard shows."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.config.run import RunConfig, Select
from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.formats.dataset import Dataset, Given, load_dataset, load_tasks
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.store.scorecards import RIVAL
from adjudge.scoring.contract.case import Task


class _Attributes(Protocol):
    """The attributes that tasks are chosen by."""

    @property
    def language(self) -> str: ...
    @property
    def domain(self) -> str: ...


def chosen_dataset(config: RunConfig) -> Dataset:
    """The dataset of `config`, restricted to `select:`; rejected lines of unselected systems' files are dropped.

    Raises UsageError.
    """
    entries = [
        Given(one) if isinstance(one, str) else Given(one.path, one.system or "", one.fields.named)
        for one in config.reports
    ]
    dataset = load_dataset(config.format, config.tasks, entries, config.articles, config.date)
    select = config.select
    if not select.words:
        return dataset
    tasks, systems = _tasks(select, dataset.tasks), _systems(select, dataset.systems)
    reports = [one for one in dataset.reports if one.task_id in tasks and one.system in systems]
    if not reports:
        raise UsageError(
            f"select: no reports are left ({select.words}); choose tasks that the systems have reports for"
        )
    chosen = {name: dataset.tasks[name] for name in tasks}
    others = {one.file for one in dataset.reports if one.system not in systems}
    others -= {one.file for one in dataset.reports if one.system in systems}
    rejected = [line for line in dataset.rejected if line.file not in others]
    return Dataset(chosen, reports, rejected, dataset.lacking, dataset.revisions)


def chosen_tasks(config: RunConfig) -> list[Task]:
    """The tasks of `config`, as far as `select:` chooses them, whatever its reports. Raises UsageError."""
    tasks = load_tasks(config.format, config.tasks, config.date)
    return [tasks[name] for name in (_tasks(config.select, tasks) if config.select.words else tasks)]


def chosen_runs(
    select: Select, records: Sequence[RunRecord], scores: pa.Table
) -> tuple[list[RunRecord], pa.Table]:
    """The runs in `records`, whose score rows are `scores`, as far as `select` chooses them. Raises UsageError."""
    if not select.words:
        return list(records), scores
    every = {name: task for record in records for name, task in record.tasks.items()}
    tasks = _tasks(select, every)
    systems = _systems(select, dict.fromkeys(name for record in records for name in record.systems))
    chosen = [
        msgspec.structs.replace(
            record,
            tasks={name: task for name, task in record.tasks.items() if name in tasks},
            systems=[name for name in record.systems if name in systems],
            spent={name: spent for name, spent in record.spent.items() if name in systems},
            lengths={name: one for name, one in record.lengths.items() if name in systems},
            signs={
                protocol: {name: one for name, one in signs.items() if name in systems}
                for protocol, signs in record.signs.items()
            },
        )
        for record in records
    ]
    rows = pc.and_(
        pc.is_in(scores["task_id"], pa.array(tasks, pa.string())),
        pc.is_in(scores["system"], pa.array(systems, pa.string())),
    )
    if RIVAL in scores.column_names:
        rivals = pc.is_in(scores[RIVAL], pa.array([*systems, None], pa.string()))
        rows = pc.and_(rows, rivals)
    left = scores.filter(rows)
    if not left.num_rows:
        raise UsageError(
            f"select: no scores are left ({select.words}); choose tasks and systems of these runs"
        )
    return chosen, left


def _tasks(select: Select, tasks: Mapping[str, _Attributes]) -> dict[str, None]:
    """The ids of the chosen tasks, in order."""
    ids = [str(one) for one in select.tasks]
    _known("tasks", ids, tasks)
    _known("languages", select.languages, (task.language for task in tasks.values()))
    _known("domains", select.domains, (task.domain for task in tasks.values()))
    wanted = {*ids}, {*select.languages}, {*select.domains}
    chosen = (
        name
        for name, task in tasks.items()
        if all(
            not one or value in one
            for one, value in zip(wanted, (name, task.language, task.domain), strict=True)
        )
    )
    found = dict.fromkeys(itertools.islice(chosen, select.limit))
    if not found:
        raise UsageError(f"select: no task is left ({select.words}); choose fewer conditions")
    return found


def _systems(select: Select, systems: Iterable[str]) -> dict[str, None]:
    every = dict.fromkeys(systems)
    _known("systems", select.systems, every)
    return dict.fromkeys(select.systems) or every


def _known(kind: str, wanted: Iterable[str], names: Iterable[str]) -> None:
    """Raise UsageError for a name that is not among `names`, with the nearest that are."""
    every = dict.fromkeys(names)
    for name in wanted:
        if name not in every:
            raise UsageError(
                f"select.{kind}: unknown {kind.removesuffix('s')} {name!r}; {nearest(name, every)}"
            )
