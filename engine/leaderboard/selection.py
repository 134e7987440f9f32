"""What systems are ranked by: a metric over every selected task, with what is missing at its worst.

Nobody gains by failing: an unscored row counts as the worst it could still be, a missing row as the metric's worst. A
task without gold for a protocol is not selected for it, whatever was reported on it.
"""

from collections.abc import Container, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.engine.records.matrices import Floats, MetricRows
from adjudge.engine.records.record import RunRecord, TaskRecord
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["NOT_SUBMITTED", "Filled", "Selection", "fill", "fill_ratio", "selections"]

NOT_SUBMITTED = "not_submitted"
"""Counted like a reason: a report, or the part of it that a metric is about, which a system did not submit."""

_GOLD = frozenset(str(reason) for reason, cause in CAUSES.items() if cause == "gold")

Integers = npt.NDArray[np.int64]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The systems and tasks of a protocol, or of one of its metrics.

    `without_gold` are the tasks that are left out for want of gold. `worst` holds, by metric and task, what is not
    the metric's own worst. `submitting` and `reported` are the systems and tasks that have rows.
    """

    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    without_gold: frozenset[str]
    worst: dict[str, dict[str, float]]
    submitting: frozenset[str]
    reported: frozenset[str]

    def of(self, rows: MetricRows, *, everywhere: bool) -> "Selection":
        """The selection of the metric of `rows`: the systems and tasks that have it, and those without any row.

        A metric that is some tasks' own (not `everywhere`) is not expected of a task that nobody reported on.
        """
        tasks = {rows.tasks[at] for at in np.flatnonzero(np.bincount(rows.task)).tolist()}
        tasks |= self.worst.get(rows.metric, {}).keys()
        systems = {rows.systems[at] for at in np.flatnonzero(np.bincount(rows.system)).tolist()}
        return msgspec.structs.replace(
            self,
            systems=tuple(one for one in self.systems if one in systems or one not in self.submitting),
            tasks=tuple(
                one for one in self.tasks if one in tasks or (everywhere and one not in self.reported)
            ),
        )

    def within(self, chosen: Container[str]) -> "Selection":
        """The selection with only those of its tasks that are `chosen`."""
        return msgspec.structs.replace(
            self,
            tasks=tuple(one for one in self.tasks if one in chosen),
            without_gold=frozenset(one for one in self.without_gold if one in chosen),
        )

    def both(self, other: "Selection") -> "Selection":
        """What is in both selections of a protocol."""
        systems, tasks = {*other.systems}, {*other.tasks}
        return msgspec.structs.replace(
            self,
            systems=tuple(one for one in self.systems if one in systems),
            tasks=tuple(one for one in self.tasks if one in tasks),
        )


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over all selected tasks.

    `values[S, T]` is what the ranking's mean is taken over; all of a system's values are NaN if what it misses could be
    infinitely bad. `low` and `high` [S] bound the mean (infinite: unbounded), `worst` is the worst that any mean can
    be. `total[S]` sums what was scored. `coverage[S]` is the mean share of a task's samples and repeats that are
    scored, of the `expected` [S] ones. `n_total`, `n_scored` [S] count them, and `unscored` those that are not, by
    reason; `not_submitted` are some of the reports that are not there. `denominators[S, T]` is there for a pooled
    metric, whose `values` are its numerators. Every mean of `values` is held between the ends of `clip`
    (`Metric.clip`); `low`, `high` and `worst` are.
    """

    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    worst: float
    scored: npt.NDArray[np.bool_]
    total: Floats
    coverage: Floats
    expected: Integers
    n_total: Integers
    n_scored: Integers
    unscored: tuple[dict[str, int], ...]
    not_submitted: tuple[str, ...] = ()
    denominators: Floats | None = None
    clip: tuple[float, float] | None = None

    def signed_clip(self, sign: float) -> tuple[float, float] | None:
        """`clip` for values that were multiplied by `sign`."""
        if self.clip is None or sign > 0:
            return self.clip
        return -self.clip[1], -self.clip[0]


def selections(records: Sequence[RunRecord], rows: Sequence[MetricRows]) -> dict[str, Selection]:
    """The selection of every protocol that has rows.

    Runs that stopped early, or have not finished, selected what they reported on.
    """
    by_protocol: dict[str, list[MetricRows]] = {}
    for one in rows:
        by_protocol.setdefault(one.protocol, []).append(one)
    return {
        protocol: _selection(protocol, found, [record for record in records if protocol in record.metrics])
        for protocol, found in by_protocol.items()
    }


def _selection(protocol: str, rows: Sequence[MetricRows], records: Sequence[RunRecord]) -> Selection:
    names = rows[0]
    gold = np.array([reason in _GOLD for reason in names.reasons])
    lacking, systems, reported = set[int](), set[int](), set[int]()
    for one in rows:
        lacking.update(np.unique(one.task[gold[one.reason] & np.isnan(one.values)]).tolist())
        systems.update(np.flatnonzero(np.bincount(one.system)).tolist())
        reported.update(np.flatnonzero(np.bincount(one.task)).tolist())
    seen = {names.tasks[at] for at in reported}
    tasks: dict[str, TaskRecord | None] = dict.fromkeys(seen)
    for record in records:
        tasks |= {name: task for name, task in record.tasks.items() if record.is_whole or name in seen}
    without = {names.tasks[at] for at in lacking}
    without |= {name for name, task in tasks.items() if task is not None and protocol in task.without_gold}
    worst: dict[str, dict[str, float]] = {}
    for name, task in tasks.items():
        for metric, value in ({} if task is None else task.worst.get(protocol, {})).items():
            worst.setdefault(metric, {})[name] = value
    listed = {name for record in records if not record.recorded for name in record.systems}
    submitting = frozenset(names.systems[at] for at in systems)
    return Selection(
        systems=tuple(sorted(listed | submitting)),
        tasks=tuple(sorted(tasks.keys() - without)),
        without_gold=frozenset(without),
        worst=worst,
        submitting=submitting,
        reported=frozenset(seen),
    )


def fill(
    rows: MetricRows, metric: Metric, among: Selection, bad_is_high: bool, expected: Integers | None = None
) -> Filled:
    """The metric of `rows` over its selection, what is missing at its high or low end.

    `expected` [S] are the samples and repeats due for each task, by default as many as the system has for any.
    """
    names = among.tasks
    count = (len(among.systems), len(names))
    cell, kept = _cells(rows, among.systems, names)
    values = rows.values[kept]
    scored = ~np.isnan(values)
    ends = _ends(metric, among.worst.get(rows.metric, {}), names)
    size = count[0] * count[1]
    present = np.bincount(cell, minlength=size).reshape(count)
    n_scored = np.bincount(cell[scored], minlength=size).reshape(count)
    due, absent = _absent(cell, rows.answer[kept], present, expected)

    def cells(side: int, kept_values: bool) -> Floats:
        """The cells' means with what is missing at the low (0) or high (1) side; only one is made at a time."""
        bound = (rows.low, rows.high)[side][kept]
        at_end = np.where(np.isnan(bound), ends[side, cell % max(1, count[1])], bound)
        return _mean(
            cell, np.where(scored, values, at_end) if kept_values else at_end, present, absent, ends[side]
        )

    with np.errstate(invalid="ignore"):
        bounds = [
            cells(side, False).mean(axis=1) if count[1] else np.full(count[0], np.nan) for side in (0, 1)
        ]
    slots = present + absent
    unscored = rows.reason[kept][~scored]
    worst = np.asarray(ends[int(bad_is_high)].mean() if count[1] else np.nan)
    if metric.clip is not None:
        bounds, worst = [np.clip(bound, *metric.clip) for bound in bounds], np.clip(worst, *metric.clip)
    return Filled(
        systems=among.systems,
        tasks=names,
        values=_finite(cells(int(bad_is_high), True)),
        low=bounds[0],
        high=bounds[1],
        worst=float(worst),
        scored=n_scored > 0,
        total=np.asarray(
            np.bincount(cell[scored] // max(1, count[1]), weights=values[scored], minlength=count[0]),
            np.float64,
        ),
        coverage=(n_scored / slots).mean(axis=1) if count[1] else np.zeros(count[0]),
        expected=due,
        n_total=slots.sum(axis=1),
        n_scored=n_scored.sum(axis=1),
        unscored=_reasons(rows.reasons, cell[~scored] // max(1, count[1]), unscored, absent),
        not_submitted=_not_submitted(among, absent),
        clip=metric.clip,
    )


def fill_ratio(
    parts: tuple[MetricRows, MetricRows],
    metrics: tuple[Metric, Metric, Metric],
    among: Selection,
    expected: Integers | None = None,
) -> Filled:
    """A pooled metric, the ratio of its parts' sums, over their selection. `metrics` are itself and its parts."""
    metric, over, below = metrics
    top = fill(parts[0], over, among, metric.lower_is_better, expected)
    under = fill(parts[1], below, among, not metric.lower_is_better, expected)
    undefined = np.isnan(np.hstack([top.values, under.values])).any(axis=1, keepdims=True)
    undefined |= under.total[:, None] == 0.0
    gap = np.where(undefined, np.nan, 0.0)
    low_end, high_end = _ends(metric, {}, ("",))[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(top.low > 0.0, top.low / under.high, low_end)
        high = np.where(under.low > 0.0, top.high / under.low, high_end)
    scarcer = np.where(top.n_scored <= under.n_scored, 0, 1).tolist()
    return Filled(
        systems=top.systems,
        tasks=top.tasks,
        values=top.values + gap,
        low=np.maximum(low, low_end),
        high=np.minimum(high, high_end),
        worst=float(high_end if metric.lower_is_better else low_end),
        scored=top.scored & under.scored,
        total=top.total,
        coverage=np.minimum(top.coverage, under.coverage),
        expected=np.maximum(top.expected, under.expected),
        n_total=np.maximum(top.n_total, under.n_total),
        n_scored=np.minimum(top.n_scored, under.n_scored),
        unscored=tuple((top, under)[part].unscored[row] for row, part in enumerate(scarcer)),
        denominators=under.values + gap,
    )


def _cells(
    rows: MetricRows, systems: Sequence[str], tasks: Sequence[str]
) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """The place of every row among `systems` x `tasks`, flat; and which rows have one."""
    row = {name: place for place, name in enumerate(systems)}
    column = {name: place for place, name in enumerate(tasks)}
    system = np.array([row.get(name, -1) for name in rows.systems], np.int64)[rows.system]
    task = np.array([column.get(name, -1) for name in rows.tasks], np.int64)[rows.task]
    kept = (system >= 0) & (task >= 0)
    return system[kept] * len(tasks) + task[kept], kept


def _ends(metric: Metric, own: dict[str, float], tasks: Sequence[str]) -> Floats:
    """The least and the most that `metric` can be for each of `tasks`, [2, T]; infinite where it is not bounded."""
    worst = np.array([own.get(name, metric.worst) for name in tasks], np.float64)
    best = np.full(len(tasks), np.inf if metric.best is None else metric.best)
    return np.stack([np.minimum(worst, best), np.maximum(worst, best)])


def _absent(
    cell: Integers, answer: Integers, present: Integers, expected: Integers | None
) -> tuple[Integers, Integers]:
    """The samples and repeats due for each task [S], and how many of them each lacks [S, T]."""
    found = present
    if answer.size and (answer.max() > 0 or present.max() > 1):
        each = np.unique(np.stack([cell, answer]), axis=1)[0]
        found = np.bincount(each, minlength=present.size).reshape(present.shape)
    due = np.maximum(found.max(axis=1, initial=0), 1) if expected is None else expected
    return due, np.maximum(due[:, None] - found, 0)


def _not_submitted(among: Selection, absent: Integers) -> tuple[str, ...]:
    """Some of the reports that are not there."""
    places = np.argwhere(absent > 0)[:3].tolist()
    return tuple(f"{among.systems[row]} on {among.tasks[column]}" for row, column in places)


def _mean(cell: Integers, values: Floats, present: Integers, absent: Integers, end: Floats) -> Floats:
    total = np.bincount(cell, weights=values, minlength=present.size).reshape(present.shape)
    with np.errstate(invalid="ignore"):
        total = np.where(absent > 0, total + absent * end, total)
    return np.asarray(total / (present + absent))


def _finite(values: Floats) -> Floats:
    """`values` with NaN for all of a system that has an infinite one."""
    return np.where(np.isfinite(values).all(axis=1, keepdims=True), values, np.nan)


def _reasons(
    names: Sequence[str], system: Integers, reason: Integers, absent: Integers
) -> tuple[dict[str, int], ...]:
    width = len(names)
    counts = np.bincount(system * width + reason, minlength=len(absent) * width).reshape(len(absent), width)
    found = []
    for row, unsubmitted in enumerate(absent.sum(axis=1).tolist()):
        reasons = {names[at]: int(counts[row, at]) for at in np.flatnonzero(counts[row]).tolist()}
        found.append(reasons | ({NOT_SUBMITTED: unsubmitted} if unsubmitted else {}))
    return tuple(found)
