"""What systems are ranked by: a metric over every task that is due, with all that is missing at its worst.

Nobody gains by failing, hiding or sending less: a missing part, an unscored report and a missing one count as the worst
that they could still be. A task is due once: its number is the mean of the samples there are. A task without the gold
that a metric needs is not selected for it, whatever was reported on it. Counts and resources, which say nothing of
quality, are means over what is known.

What to say of a missing score, everywhere: its cause, what it is about, and what to do.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Literal
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
    "contributions",
    "explained",
    "fill",
    "fill_ratio",
    "remedy",
    "said_of",
    "selections",
    "worst_end",
]

NOT_SUBMITTED = "not_submitted"
"""Counted like a reason: a report, or the part of it that a metric is about, which a system did not submit."""

_GOLD = frozenset(str(reason) for reason, cause in CAUSES.items() if cause == "gold")

Integers = npt.NDArray[np.int64]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The systems and tasks of a protocol, or of one of its metrics.

    `without_gold` are the tasks that are left out for want of gold, `undue` by metric those that lack the part of the
    gold that it needs. `worst` holds, by metric and task, what is not the metric's own worst. `submitting` and
    `reported` are the systems and tasks that have rows. `samples` says how many reports of a system are due per task,
    1 where nothing is said.
    """

    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    without_gold: frozenset[str]
    worst: dict[str, dict[str, float]]
    submitting: frozenset[str]
    reported: frozenset[str]
    undue: dict[str, frozenset[str]] = {}
    samples: dict[str, int] = {}

    def of(self, rows: MetricRows, metric: Metric) -> "Selection":
        """The selection of `metric`, which has these `rows`: the systems and tasks that have it, or have no row at all.

        A metric that is some tasks' own (not `everywhere`) is not expected of a task that nobody reported on, and a
        resource, which reports need not state, of every task.
        """
        if metric.kind == "resource":
            return self
        tasks = {rows.tasks[at] for at in np.flatnonzero(np.bincount(rows.task)).tolist()}
        tasks |= self.worst.get(rows.metric, {}).keys()
        systems = {rows.systems[at] for at in np.flatnonzero(np.bincount(rows.system)).tolist()}
        lacking = {rows.tasks[at] for at in np.unique(rows.task[_lacks_gold(rows)]).tolist()}
        lacking |= self.undue.get(rows.metric, frozenset()) & {*self.tasks}
        return msgspec.structs.replace(
            self,
            systems=tuple(one for one in self.systems if one in systems or one not in self.submitting),
            tasks=tuple(
                one
                for one in self.tasks
                if one not in lacking and (one in tasks or (metric.everywhere and one not in self.reported))
            ),
            without_gold=self.without_gold | lacking,
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
            without_gold=self.without_gold | other.without_gold,
        )


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over all tasks that are due.

    `values[S, T]` is what the ranking's mean is taken over; all of a system's values are NaN if what it misses could be
    infinitely bad. `low` and `high` [S] bound the mean (infinite: unbounded), `worst` is the worst that any mean can
    be. `known[S, T]` is what was scored, NaN where nothing was, and `as_published[S]` the metric over it, by its own
    rule. `coverage[S]` is the mean share of a task's
    due samples and repeats that are scored, or the answered share of all parts of what was judged, whichever is lower.
    `n_total`, `n_scored` [S] count samples and repeats, and `unscored` those that are not scored, by reason;
    `not_submitted` are some of the reports that are not there. `denominators[S, T]` is there for a pooled metric, whose
    `values` are its numerators. Every mean of `values` is held between the ends of `clip` (`Metric.clip`); `low`,
    `high` and `worst` are. A `descriptive` metric, a count or a resource, has values where it is known, and no worst.
    `weights` [T] say how much a task counts in the mean over groups; None where all count the same.
    """

    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    worst: float
    known: Floats
    as_published: Floats
    coverage: Floats
    n_total: Integers
    n_scored: Integers
    unscored: tuple[dict[str, int], ...]
    not_submitted: tuple[str, ...] = ()
    denominators: Floats | None = None
    clip: tuple[float, float] | None = None
    descriptive: bool = False
    weights: Floats | None = None

    def signed_clip(self, sign: float) -> tuple[float, float] | None:
        """`clip` for values that were multiplied by `sign`."""
        if self.clip is None or sign > 0:
            return self.clip
        return -self.clip[1], -self.clip[0]

    def contributions(self) -> Floats:
        """What each task contributes, [S, T]: values whose mean is the system's number, before it is clipped."""
        return self.values if self.denominators is None else contributions(self.values, self.denominators)


def contributions(over: Floats, below: Floats) -> Floats:
    """What each task contributes to each system's sum(over) / sum(below), both [S, T]: values whose mean it is.

    They are the linear approximation (Taylor) about the ratio. NaN where either is, or where the ratio is undefined.
    """
    known = ~np.isnan(over + below)
    sums = [np.where(known, one, 0.0).sum(axis=1, keepdims=True) for one in (over, below)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio, mean = sums[0] / sums[1], sums[1] / known.sum(axis=1, keepdims=True)
        found = ratio + (over - ratio * below) / mean
    return np.where(np.isfinite(found), found, np.nan)


def worst_end(metric: Metric) -> Literal["low", "high"] | None:
    """At which end of its bounds a metric counts; None for counts and resources, which are as they are known."""
    if metric.kind != "quality":
        return None
    return "high" if metric.lower_is_better else "low"


def _lacks_gold(rows: MetricRows) -> npt.NDArray[np.bool_]:
    """Which of `rows` have no value for want of gold."""
    gold = np.array([reason in _GOLD for reason in rows.reasons], np.bool_)
    return np.asarray(gold[rows.reason] & np.isnan(rows.values))


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
    systems, reported = set[int](), set[int]()
    for one in rows:
        systems.update(np.flatnonzero(np.bincount(one.system)).tolist())
        reported.update(np.flatnonzero(np.bincount(one.task)).tolist())
    seen = {names.tasks[at] for at in reported}
    tasks: dict[str, TaskRecord | None] = dict.fromkeys(seen)
    samples: dict[str, int] = {}
    for record in records:
        tasks |= {name: task for name, task in record.tasks.items() if record.is_whole or name in seen}
        for name in record.systems:
            samples[name] = max(samples.get(name, 1), record.config.samples)
    without = {name for name, task in tasks.items() if task is not None and protocol in task.without_gold}
    worst: dict[str, dict[str, float]] = {}
    undue: dict[str, set[str]] = {}
    for name, task in tasks.items():
        if task is None:
            continue
        for metric, value in task.worst.get(protocol, {}).items():
            worst.setdefault(metric, {})[name] = value
        for metric in task.undue.get(protocol, ()):
            undue.setdefault(metric, set()).add(name)
    listed = {name for record in records if not record.recorded for name in record.systems}
    submitting = frozenset(names.systems[at] for at in systems)
    return Selection(
        systems=tuple(sorted(listed | submitting)),
        tasks=tuple(sorted(tasks.keys() - without)),
        without_gold=frozenset(without),
        worst=worst,
        submitting=submitting,
        reported=frozenset(seen),
        undue={metric: frozenset(found) for metric, found in undue.items()},
        samples=samples,
    )


def fill(rows: MetricRows, metric: Metric, among: Selection, bad_is_high: bool) -> Filled:
    """The metric of `rows` over its selection, what is missing at its high or low end."""
    names = among.tasks
    shape = (len(among.systems), len(names))
    cell, kept = _cells(rows, among.systems, names)
    values, ends = rows.values[kept], _ends(metric, among.worst.get(rows.metric, {}), names)
    scored, descriptive = ~np.isnan(values), metric.kind != "quality"
    size = shape[0] * shape[1]
    present = np.bincount(cell, minlength=size).reshape(shape)
    n_scored = np.bincount(cell[scored], minlength=size).reshape(shape)
    absent = _absent(
        cell,
        rows.sample[kept],
        present,
        np.array([among.samples.get(name, 1) for name in among.systems], np.int64),
    )
    bound = [
        np.where(np.isnan(one), ends[side, cell % max(1, shape[1])], one)
        for side, one in enumerate((rows.low[kept], rows.high[kept]))
    ]
    low, high = (_means(cell, one, present, ends[side]) for side, one in enumerate(bound))
    slots = present + absent
    covered = np.minimum(_mean(n_scored / np.maximum(slots, 1), 0.0), _answered(rows, kept, cell, shape))
    bounds, worst = [_mean(low), _mean(high)], _mean(ends)[int(bad_is_high)]
    total = np.bincount(cell[scored], weights=values[scored], minlength=size).reshape(shape)
    with np.errstate(invalid="ignore"):
        known = np.asarray(total / n_scored, np.float64)
    published = _known_mean(known)
    if metric.clip is not None:
        bounds, worst = [np.clip(one, *metric.clip) for one in bounds], np.clip(worst, *metric.clip)
        published = np.clip(published, *metric.clip)
    if descriptive:
        bounds = [published, published]
    return Filled(
        systems=among.systems,
        tasks=names,
        values=known if descriptive else _finite((low, high)[int(bad_is_high)]),
        low=bounds[0],
        high=bounds[1],
        worst=float(worst),
        known=known,
        as_published=published,
        coverage=covered,
        n_total=slots.sum(axis=1),
        n_scored=n_scored.sum(axis=1),
        unscored=_reasons(
            rows.reasons,
            cell[~scored] // max(1, shape[1]),
            rows.reason[kept][~scored],
            absent * (not descriptive),
        ),
        not_submitted=() if descriptive else _not_submitted(among, absent),
        clip=metric.clip,
        descriptive=descriptive,
    )


def fill_ratio(
    parts: tuple[MetricRows, MetricRows], metrics: tuple[Metric, Metric, Metric], among: Selection
) -> Filled:
    """A pooled metric, the ratio of its parts' sums, over their selection. `metrics` are itself and its parts."""
    metric, over, below = metrics
    descriptive = metric.kind != "quality"
    if not descriptive:
        over, below = (msgspec.structs.replace(one, kind="quality") for one in (over, below))
    top = fill(parts[0], over, among, metric.lower_is_better)
    under = fill(parts[1], below, among, not metric.lower_is_better)
    both = ~np.isnan(top.known + under.known)
    known = np.where(both, top.known, np.nan), np.where(both, under.known, np.nan)
    summed, divisor = (np.nansum(one, axis=1) for one in known)
    low_end, high_end = _ends(metric, {}, ("",))[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        published = np.where(divisor > 0.0, summed / divisor, np.nan)
        low = np.maximum(np.where(top.low > 0.0, top.low / under.high, low_end), low_end)
        high = np.minimum(np.where(under.low > 0.0, top.high / under.low, high_end), high_end)
        by_task = known[0] / known[1]
    undefined = np.isnan(np.hstack([top.values, under.values])).any(axis=1, keepdims=True)
    gap = np.where(undefined | (divisor[:, None] == 0.0), np.nan, 0.0)
    values = known if descriptive else (top.values + gap, under.values + gap)
    scarcer = np.where(top.n_scored <= under.n_scored, 0, 1).tolist()
    return Filled(
        systems=top.systems,
        tasks=top.tasks,
        values=values[0],
        low=published if descriptive else low,
        high=published if descriptive else high,
        worst=float(high_end if metric.lower_is_better else low_end),
        known=by_task,
        as_published=published,
        coverage=np.minimum(top.coverage, under.coverage),
        n_total=np.maximum(top.n_total, under.n_total),
        n_scored=np.minimum(top.n_scored, under.n_scored),
        unscored=tuple((top, under)[part].unscored[row] for row, part in enumerate(scarcer)),
        denominators=values[1],
        descriptive=descriptive,
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


def _absent(cell: Integers, sample: Integers, present: Integers, due: Integers) -> Integers:
    """How many of the samples that are `due` [S] each task lacks [S, T], times the judge's repeats."""
    found = present
    if sample.size and (sample.max() > 0 or present.max() > 1):
        each = np.unique(np.stack([cell, sample]), axis=1)[0]
        found = np.bincount(each, minlength=present.size).reshape(present.shape)
    repeats = np.maximum(present // np.maximum(found, 1), 1)
    return np.asarray(np.maximum(due[:, None] - found, 0) * repeats, np.int64)


def _answered(
    rows: MetricRows, kept: npt.NDArray[np.bool_], cell: Integers, shape: tuple[int, int]
) -> Floats:
    """The share of the parts of each system's reports that have an answer, [S]; 1 where there are no parts."""
    system = cell // max(1, shape[1])
    answered, parts = (
        np.bincount(system, weights=one[kept], minlength=shape[0]) for one in (rows.answered, rows.parts)
    )
    return np.where(parts > 0, answered / np.maximum(parts, 1), 1.0)


def _not_submitted(among: Selection, absent: Integers) -> tuple[str, ...]:
    """Some of the reports that are not there."""
    places = np.argwhere(absent > 0)[:3].tolist()
    return tuple(f"{among.systems[row]} on {among.tasks[column]}" for row, column in places)


def _means(cell: Integers, values: Floats, present: Integers, end: Floats) -> Floats:
    """The mean of each cell's values [S, T]; `end` [T] where there are none."""
    total = np.bincount(cell, weights=values, minlength=present.size).reshape(present.shape)
    with np.errstate(invalid="ignore"):
        return np.where(present > 0, total / present, end)


def _mean(values: Floats, without: float = np.nan) -> Floats:
    """The mean over tasks, the last axis; `without` any."""
    with np.errstate(invalid="ignore"):
        return values.mean(axis=-1) if values.shape[-1] else np.full(values.shape[:-1], without)


def _known_mean(values: Floats) -> Floats:
    """The mean over the tasks [S, T] that are not NaN."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(values, axis=1) / (~np.isnan(values)).sum(axis=1), np.float64)


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
    "judge_unavailable": "see that the judge runs and answers (adjudge doctor)",
    "judge_timeout": "",
    "judge_unparseable": "",
    "judge_refused": "choose another judge",
    "judge_unsupported": "choose a judge that can answer such questions",
    "answer_truncated": "give the judge more tokens for its answers",
    "context_overflow": "choose a judge with a larger context window",
    "media_unsupported": "choose a judge that takes such media",
    "deadline": "allow more time",
    "worker_died": "give the workers more memory",
    "server_unreachable": "start the server of rewards or correct its address",
    "network_unavailable": "connect to the network",
    "page_deferred": "",
    "page_rate_limited": "wait a while",
    "pages_off": "set fetch: live, or give a snapshot",
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
