"""What systems are ranked by: a metric over every selected task, with what is missing at its worst.

Nobody gains by failing: an unscored row counts as the worst it could still be, a missing row as the metric's worst. A
task without gold for a protocol is not selected for it, whatever was reported on it.

What to say of a missing score, everywhere: its cause, what it is about, and what to do.
"""

from collections.abc import Container, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.runs.record import RunRecord, TaskRecord
from adjudge.engine.runs.scores import Floats, MetricRows
from adjudge.scoring.contract.reasons import CAUSES, TRANSIENT
from adjudge.scoring.contract.scorecard import Metric

__all__ = [
    "Filled",
    "Selection",
    "cause_of",
    "explained",
    "fill",
    "fill_ratio",
    "remedy",
    "said_of",
    "selections",
]

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


_CAUSES: Mapping[str, str] = {str(reason): cause for reason, cause in CAUSES.items()} | {
    NOT_SUBMITTED: "input"
}

_FIRST = {
    "judge_unavailable": "start the judge or correct its address",
    "judge_timeout": "",
    "judge_unparseable": "",
    "judge_refused": "choose another judge",
    "judge_unsupported": "choose a judge that can answer such questions",
    "answer_truncated": "give the judge more tokens for its answers",
    "context_overflow": "choose a judge with a larger context window",
    "media_unsupported": "choose a judge that takes such media",
    "deadline": "allow more time",
    "worker_died": "give the workers more memory",
    "network_unavailable": "connect to the network",
    "page_deferred": "",
    "page_rate_limited": "wait a while",
    "pages_off": "set fetch: mode: live or snapshot",
    "snapshot_damaged": "restore the files of the snapshot",
    "page_not_in_snapshot": "add the pages to the snapshot or set fetch: live",
    "page_unsupported": "add the pages as text to a snapshot",
    "page_timeout": "",
    "page_server_error": "",
    "gold_missing": "add the gold to the task",
    "gold_invalid": "correct the gold of the task",
    "task_unknown": "add the task",
    "group_missing": "send all rollouts of a prompt in one call",
    NOT_SUBMITTED: "add the reports or leave out the tasks",
}
"""What to do before the command is repeated; nothing for what is the report's own."""


def cause_of(reason: str) -> str:
    """Whose doing a missing score is, "-" for a reason that this version does not know."""
    return _CAUSES.get(reason, "-")


def remedy(reason: str) -> str:
    """What to do about a missing score, in words."""
    if reason not in _FIRST:
        return "nothing to do: the report's own choice" if reason in _CAUSES else "-"
    unasked = reason in TRANSIENT or cause_of(reason) in ("gold", "input")
    again = "run the same command again" if unasked else "run the same command with --retry-unscored"
    return f"{_FIRST[reason]}, then {again}" if _FIRST[reason] else again


def explained(reason: str) -> str:
    """A reason with its cause and remedy."""
    return f"{reason} ({cause_of(reason)}): {remedy(reason)}"


def said_of(
    name: str,
    counts: dict[str, int],
    protocol: str,
    records: Sequence[RunRecord],
    not_submitted: Sequence[str] = (),
) -> list[str]:
    """One sentence for each reason in `counts`, the scores of `name` that are missing in the runs `records`."""
    found = []
    recorded = bool(records) and all(record.recorded for record in records)
    for reason, count in sorted(counts.items()):
        places = not_submitted if reason == NOT_SUBMITTED else _places(reason, protocol, records)
        about = _about(reason, places, protocol, records)
        todo = "missing in the recorded results" if recorded else remedy(reason)
        found.append(f"{name}: {count:,} unscored, {reason} ({cause_of(reason)}){about}; {todo}")
    return found


def _places(reason: str, protocol: str, records: Sequence[RunRecord]) -> list[str]:
    """Some of the pages or reports behind a reason, as far as the runs have noted them."""
    failed = (one for record in records for one in record.failures)
    return sorted(
        {place for one in failed if (one.protocol, one.reason) == (protocol, reason) for place in one.places}
    )[:3]


def _about(reason: str, places: Sequence[str], protocol: str, records: Sequence[RunRecord]) -> str:
    own = records if reason.startswith("judge_") else ()
    judges = dict.fromkeys(server for record in own for server in _servers(record, protocol))
    said = [*judges, *([f"such as {', '.join(places)}"] if places else [])]
    return f": {'; '.join(said)}" if said else ""


def _servers(record: RunRecord, protocol: str) -> list[str]:
    """The judges of a protocol with the addresses of their servers, without anything secret that these hold."""
    judging = record.judging
    judges = {protocol: judging.protocol(protocol), **judging.protocol_media(protocol)}
    found = []
    for answer, judge in judges.items():
        addresses = ", ".join(dict.fromkeys(_addresses(record.config.judge_of(answer))))
        found.append(f"judge {judge.name}{f' at {addresses}' if addresses else ''}")
    return found


def _addresses(judge: JudgeConfig) -> list[str]:
    if judge.backend == "panel":
        return [address for member in judge.panel() for address in _addresses(member)]
    return [urlsplit(url).netloc.rpartition("@")[2] for url in (judge.url, *judge.urls) if url]
