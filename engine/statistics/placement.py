"""Where every system stands under one metric over some tasks: values, intervals, bounds and ranks.

Reads score rows and draws resamples of tasks.

A metric with its score rows: what any choice of its tasks gives.

Ranks among the systems that have enough scores, and the span of ranks that they could have.

The same leaderboard for groups of tasks, and for the mean over the groups: the tables that papers print.

A group's board is that of its tasks alone: what is missing counts as the worst it could be, coverage is that of the
group's tasks, and the number shown ranks. In the mean over groups each counts the same, however many tasks it has.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.board import (
    FLAGGED_BELOW,
    Detail,
    Group,
    Grouping,
    MetricBoard,
    RankStability,
    Standing,
)
from adjudge.engine.runs.record import TaskRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import Floats, MetricRows, figure
from adjudge.engine.statistics.selection import Filled, Integers, Selection, fill, fill_ratio
from adjudge.engine.statistics.totals import deviations
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.comparison.claims import (
    Differences,
    differences,
    rank_spans,
    resampled,
    tiers,
    told_apart,
)
from adjudge.scoring.kernels.resampling.bootstrap import (
    Bootstrap,
    BootstrapPart,
    RankAgreement,
    bootstrap,
    bootstrap_part,
    clipped,
    mean_of,
    merge,
)

__all__ = [
    "CONFIDENCE",
    "Claims",
    "Drawing",
    "Known",
    "Measured",
    "Statistics",
    "attributes_of",
    "end_of",
    "grouped",
    "known_attribute",
    "measured",
    "placed",
    "ranked_among",
    "ranks_of",
    "sign_of",
    "stability_of",
]

RESAMPLES = 10_000
CONFIDENCE = 0.95


class Statistics:
    """Reads and draws in this process; a subclass may do so elsewhere."""

    resamples = RESAMPLES

    def read(self, runs: Sequence[Run]) -> pa.Table:
        """The score rows of `runs`, one after the other. Raises UsageError, StoreError."""
        return pa.concat_tables([run.scores for run in runs], promote_options="default")

    def resample(
        self, values: Floats, denominators: Floats | None, seed: int, clip: tuple[float, float] | None = None
    ) -> Bootstrap:
        """The bootstrap of `values[S, T]`, `resamples` at CONFIDENCE; means are held between the ends of `clip`."""
        return bootstrap(
            values,
            denominators=denominators,
            resamples=self.resamples,
            level=CONFIDENCE,
            clip=clip,
            seed=seed,
        )


Known = Mapping[tuple[str, str], Metric]
"""Metrics by protocol and name, in the order in which protocols declare them."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of a protocol, its rows, its judge, and the systems and tasks that it is expected of.

    A metric that is pooled from two others has their rows, and theirs are its `parts`.
    """

    protocol: str
    metric: Metric
    judge: str
    among: Selection
    rows: tuple[MetricRows, ...]
    parts: tuple[Metric, ...] = ()

    @property
    def name(self) -> tuple[str, str]:
        """Protocol and metric."""
        return self.protocol, self.metric.name

    def filled(self) -> Filled:
        """The metric over all its tasks."""
        return self._filled(self.among)

    def within(self, tasks: Collection[str]) -> Filled | None:
        """The metric over those of its tasks that are in `tasks`, None if there are none."""
        among = self.among.within(tasks)
        return self._filled(among) if among.tasks else None

    def _filled(self, among: Selection) -> Filled:
        if not self.parts:
            return fill(self.rows[0], self.metric, among, self.metric.lower_is_better)
        over, below = self.parts
        return fill_ratio((self.rows[0], self.rows[1]), (self.metric, over, below), among)


def measured(
    rows: Sequence[MetricRows],
    known: Known,
    among: Mapping[str, Selection],
    judge_of: Callable[[str], str],
) -> Iterator[Measured]:
    """Every metric with rows, then the pooled ones, which have none of their own. `judge_of` names a judge."""
    found = {(one.protocol, one.metric): one for one in rows}
    for name, one in found.items():
        metric = known.get(name, Metric(name=one.metric, everywhere=False))
        if metric.ratio is not None:  # recorded for one report too; over tasks it is pooled
            continue
        own = among[one.protocol].of(one, metric)
        yield Measured(
            protocol=one.protocol, metric=metric, judge=judge_of(one.protocol), among=own, rows=(one,)
        )
    for (protocol, _), metric in known.items():
        if metric.ratio is None or (protocol, metric.ratio[0]) not in found:
            continue
        names = [(protocol, part) for part in metric.ratio]
        over, below = (found[name] for name in names)
        tops, bottoms = (among[protocol].of(found[name], known[name]) for name in names)
        yield Measured(
            protocol=protocol,
            metric=metric,
            judge=judge_of(protocol),
            among=tops.both(bottoms),
            rows=(over, below),
            parts=tuple(known[name] for name in names),
        )


Flags = npt.NDArray[np.bool_]


class Ranks(msgspec.Struct, frozen=True):
    """Every system's `rank` [S], equals sharing the best (1, 1, 3) or the mean of theirs, `midrank` (1.5, 1.5, 3).

    `span` [S, 2] are the best and worst that the rank could be. All are NaN for unranked systems.
    """

    rank: Floats
    midrank: Floats
    span: Floats


def ranks_of(
    told: Floats, values: Floats, bounds: tuple[Floats, Floats], worst: float, ranked: Flags
) -> Ranks:
    """The ranks of the `ranked` systems [S] by `values`, higher is better.

    A system at the `worst` value there is stands behind or beside all systems, unranked ones too: that others lack
    scores makes nobody the first. The span holds the ranks that the tests between systems leave open, `told` [S, 2]
    (`rank_spans`), and those at the `bounds` (low, high) of the values: at best a system is at its high bound and all
    other ranked systems are at their low ones, at worst it is at its low bound and all others, unranked ones too, are
    at their high ones.
    """
    values, low, high = _settled(np.stack([values, *bounds]))
    everyone = np.ones_like(ranked)
    last = np.isclose(values, worst, rtol=1e-12, atol=1e-12)
    floored = np.where(last | np.isnan(values), worst, values)
    ahead, equal = (
        np.where(last, beside, among)
        for beside, among in zip(
            _among(floored, floored, everyone), _among(values, values, ranked), strict=True
        )
    )
    rank = 1.0 + ahead
    best = np.fmin(told[:, 0], np.fmin(rank, 1.0 + _among(high, low, ranked)[0]))
    most = 1.0 + np.sum(_among(low, high, everyone), axis=0)
    least = np.fmax(told[:, 1], np.fmax(rank, most))
    span = np.stack([best, least], axis=1)
    return Ranks(
        np.where(ranked, rank, np.nan),
        np.where(ranked, rank + equal / 2.0, np.nan),
        np.where(ranked[:, None], span, np.nan),
    )


def _settled(values: Floats) -> Floats:
    """`values`, those that only the rounding of sums tells apart made equal."""
    order = np.argsort(values, axis=None)
    ascending = values.ravel()[order]
    is_new = ~np.isclose(ascending[1:], ascending[:-1], rtol=1e-12, atol=1e-12)
    first = np.maximum.accumulate(np.where(np.append(True, is_new), np.arange(values.size), 0))
    settled = np.empty_like(ascending)
    settled[order] = ascending[first]
    return settled.reshape(values.shape)


def _among(own: Floats, others: Floats, counted: Flags) -> tuple[Integers, Integers]:
    """How many of the values of the other `counted` systems are above each `own` value, and how many equal it."""
    above = (others[None, :] > own[:, None]) & counted
    equal = (others[None, :] == own[:, None]) & counted
    np.fill_diagonal(above, False)
    np.fill_diagonal(equal, False)
    return above.sum(axis=1), equal.sum(axis=1)


class Claims(msgspec.Struct, frozen=True):
    """What the tasks tell of the `ranked` systems [S], higher being better: the tests of all pairs of them.

    `above` [S, S] is whether the row's system is told to be above the column's, `holm` each pair's corrected p.
    """

    ranked: Flags
    pairs: Differences
    holm: Floats
    above: Flags

    @classmethod
    def of(cls, filled: Filled, sign: float, ranked: Flags, *, bounded: bool) -> "Claims":
        """Tested by what each task contributes, multiplied by `sign`; intervals of differences where `bounded`."""
        among = np.where(ranked[:, None], sign * filled.contributions(), np.nan)
        pairs = differences(among, alpha=1.0 - CONFIDENCE, bounded=bounded)
        return cls(ranked, pairs, *told_apart(pairs, len(filled.systems), 1.0 - CONFIDENCE))

    @classmethod
    def resampled(cls, drawn: Bootstrap, ranked: Flags, tasks: int, alpha: float) -> "Claims":
        """By the resamples of `tasks` of the ranked systems, whose figures have no value for one task."""
        pairs = resampled(drawn.difference, drawn.difference_interval, tasks, alpha=alpha)
        return cls(ranked, pairs, *told_apart(pairs, ranked.size, alpha))


def sign_of(one: Measured) -> float:
    """The factor that makes higher values of a metric the better ones."""
    return -1.0 if one.metric.lower_is_better else 1.0


def ranked_among(filled: Filled, estimate: Floats) -> Flags:
    """The systems [S] that have a value and enough scores for a rank, of which counts and resources need none."""
    enough = filled.coverage > (-np.inf if filled.descriptive else FLAGGED_BELOW - 1e-9)
    return np.asarray(~np.isnan(estimate) & enough)


def placed(
    one: Measured,
    filled: Filled,
    own: Bootstrap,
    drawn: Bootstrap,
    claims: Claims,
    without_gold: int,
    detail: Detail | None = None,
) -> MetricBoard:
    """The board of a metric over the tasks of `filled`.

    Values and intervals are those of every system's `own` resamples, the stability of the ranking that of the ranked
    systems `drawn`, tiers and spans of ranks what the tests of their differences claim.
    """
    metric, sign = one.metric, sign_of(one)
    scatter = deviations(one.rows, one.parts or (one.metric,), filled)
    return MetricBoard(
        protocol=one.protocol,
        metric=metric.name,
        table=metric.table,
        definition=metric.definition,
        unit=metric.units,
        source=metric.source,
        decimals=metric.decimals,
        judge=one.judge,
        headline=metric.headline,
        shown=metric.shown,
        scale=metric.scale,
        lower_is_better=metric.lower_is_better,
        n_tasks=len(filled.tasks),
        n_without_gold=without_gold,
        not_submitted=filled.not_submitted,
        tau=stability_of(drawn.tau),
        rho=stability_of(drawn.rho),
        standings=tuple(
            msgspec.structs.replace(row, deviation=scatter.get(row.system))
            for row in _standings(filled, own, claims, sign)
        ),
        detail=detail,
    )


def _spreads(filled: Filled) -> list[float | None]:
    """The standard deviation over tasks of each system's count or resource, None where fewer than two are known."""
    if not filled.descriptive or filled.denominators is not None:
        return [None] * len(filled.systems)
    known = (row[np.isfinite(row)] for row in filled.known)
    return [float(row.std(ddof=1)) if row.size > 1 else None for row in known]


def _standings(filled: Filled, own: Bootstrap, claims: Claims, sign: float) -> list[Standing]:
    ranked = claims.ranked
    ends = (filled.low, filled.high) if sign > 0 else (-filled.high, -filled.low)
    worst = np.nan if filled.descriptive else sign * filled.worst
    found = ranks_of(rank_spans(claims.above, ranked), own.estimate, ends, worst, ranked)
    spreads = _spreads(filled)
    tier = tiers(np.where(ranked, own.estimate, np.nan), claims.above)
    values = sign * own.estimate
    standings = [
        Standing(
            system=name,
            value=figure(values[row]),
            low=end_of(own.percentile[row] * sign, 0),
            high=end_of(own.percentile[row] * sign, 1),
            bound_low=_bound(filled.low[row], values[row]),
            bound_high=_bound(filled.high[row], values[row]),
            as_published=figure(filled.as_published[row]),
            standard_error=figure(own.standard_error[row]),
            spread=spreads[row],
            rank=figure(found.rank[row]),
            midrank=figure(found.midrank[row]),
            rank_low=figure(found.span[row, 0]),
            rank_high=figure(found.span[row, 1]),
            tier=int(tier[row]) or None,
            n_total=int(filled.n_total[row]),
            n_scored=int(filled.n_scored[row]),
            n_unscored=int(filled.n_total[row] - filled.n_scored[row]),
            unscored=filled.unscored[row],
            coverage=float(filled.coverage[row]),
            flagged=bool(not filled.descriptive and filled.coverage[row] <= FLAGGED_BELOW - 1e-9),
        )
        for row, name in enumerate(filled.systems)
    ]
    return sorted(standings, key=lambda row: _place(row, sign))


def end_of(interval: Floats, side: int) -> float | None:
    """An end of an interval; None of one without width, for which the tasks show no variance."""
    low, high = interval.min(), interval.max()
    return figure((low, high)[side]) if high > low else None


def _bound(bound: float, value: float) -> float | None:
    """None for a bound that is infinite or undefined; the value itself where they differ by rounding alone."""
    if not math.isfinite(bound):
        return None
    return figure(value) if abs(bound - value) <= 1e-12 + 1e-9 * abs(value) else float(bound)


def _place(row: Standing, sign: float) -> tuple[float, float, str]:
    """By rank; unranked systems after them, by value."""
    if row.rank is not None:
        return 0.0, row.rank, row.system
    return 1.0, np.inf if row.value is None else -sign * row.value, row.system


def stability_of(agreement: RankAgreement) -> RankStability:
    """The kernel's figures, None where they are undefined."""
    return RankStability(figure(agreement.mean), figure(agreement.low), figure(agreement.high))


MOST_GROUPS = 30
"""The most groups of an attribute that nobody asked for."""

_NO_MEANS = np.empty((0, 0))
_DIGITS = re.compile(r"([0-9]+)")


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """How many `resamples` are drawn from which `seed`."""

    resamples: int
    seed: int


def attributes_of(tasks: Mapping[str, TaskRecord]) -> list[str]:
    """The attributes that tell `tasks` apart, into not too many groups."""
    values = {name: {task.attribute(name) for task in tasks.values()} for name in _named(tasks)}
    return [name for name, found in values.items() if 2 <= len(found) <= MOST_GROUPS]


def known_attribute(name: str, tasks: Mapping[str, TaskRecord]) -> str:
    """`name`, if some of `tasks` have such an attribute. Raises UsageError."""
    known = _named(tasks)
    if name not in known:
        offered = f"use {' or '.join(map(repr, known))}" if known else "leave it out: these tasks have none"
        raise UsageError(f"by: unknown attribute {name!r}; {offered}")
    return name


def grouped(
    attribute: str,
    metrics: Iterable[Measured],
    tasks: Mapping[str, TaskRecord],
    drawing: Drawing,
) -> Grouping:
    """`metrics` by an `attribute` of their tasks."""
    values = {name: task.attribute(attribute) for name, task in tasks.items()}
    boards: dict[str, list[MetricBoard]] = {name: [] for name in sorted({*values.values(), ""}, key=_natural)}
    mean = []
    for one in metrics:
        found: list[tuple[Filled, BootstrapPart]] = []  # without their means, of which only the sum is held
        means: Floats = np.zeros(())
        every = {*one.among.tasks, *one.among.without_gold}
        for number, name in enumerate(boards, 1):
            chosen = {task for task in every if values.get(task, "") == name}
            filled = one.within(chosen)
            if filled is None:
                continue
            drawn = bootstrap_part(
                sign_of(one) * filled.values,
                denominators=filled.denominators,
                first=0,
                count=drawing.resamples,
                seed=drawing.seed + number,  # groups are drawn independently
            )
            part = clipped(drawn, filled.signed_clip(sign_of(one)))
            boards[name].append(_board(one, filled, part, len(chosen - {*filled.tasks})))
            means = means + part.means
            found.append((filled, msgspec.structs.replace(part, means=_NO_MEANS)))
        if len(found) > 1:
            over = _mean([filled for filled, _ in found])
            part = mean_of([part for _, part in found], means)
            mean.append(_board(one, over, part, len(every) - len(over.tasks)))
    groups = (Group(name=name, metrics=tuple(found)) for name, found in boards.items() if found)
    return Grouping(attribute=attribute, groups=tuple(groups), mean=tuple(mean))


def _board(one: Measured, filled: Filled, part: BootstrapPart, without_gold: int) -> MetricBoard:
    own = merge([part], level=CONFIDENCE)
    ranked = ranked_among(filled, own.estimate)
    drawn = own if ranked.all() else own.among(ranked)
    claims = Claims.of(filled, sign_of(one), ranked, bounded=False)
    return placed(one, filled, own, drawn, claims, without_gold)


def _mean(groups: Sequence[Filled]) -> Filled:
    """The mean over `groups` of a metric; of counts, the sums. A task weighs as much as its group has few."""
    n_tasks = sum(len(group.tasks) for group in groups)
    weights = [n_tasks / (len(groups) * len(group.tasks)) for group in groups]
    return Filled(
        systems=groups[0].systems,
        tasks=tuple(task for group in groups for task in group.tasks),
        values=np.hstack([w * group.contributions() for w, group in zip(weights, groups, strict=True)]),
        low=np.mean([group.low for group in groups], axis=0),
        high=np.mean([group.high for group in groups], axis=0),
        worst=float(np.mean([group.worst for group in groups])),
        known=np.hstack([group.known for group in groups]),
        as_published=np.mean([group.as_published for group in groups], axis=0),
        coverage=np.mean([group.coverage for group in groups], axis=0),
        n_total=np.sum([group.n_total for group in groups], axis=0),
        n_scored=np.sum([group.n_scored for group in groups], axis=0),
        unscored=tuple(
            dict(sum(map(Counter, counts), Counter()))
            for counts in zip(*(group.unscored for group in groups), strict=True)
        ),
        not_submitted=tuple(one for group in groups for one in group.not_submitted)[:3],
        descriptive=groups[0].descriptive,
        weights=np.concatenate(
            [np.full(len(group.tasks), w) for w, group in zip(weights, groups, strict=True)]
        ),
    )


def _named(tasks: Mapping[str, TaskRecord]) -> list[str]:
    """The attributes of which some task has a value."""
    names = dict.fromkeys(name for task in tasks.values() for name in task.attribute_names)
    return [name for name in names if any(task.attribute(name) for task in tasks.values())]


def _natural(name: str) -> tuple[bool, list[tuple[int, str]], str]:
    """Orders names by the numbers in them: 64k, 128k, 512k; the empty name last."""
    parts = _DIGITS.split(name)
    numbers = (part.lstrip("0") for part in parts[1::2])
    parts[1::2] = numbers
    return not name, [(len(part) * (place % 2), part) for place, part in enumerate(parts)], name
