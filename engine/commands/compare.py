"""Two systems side by side: paired tests of every metric on the tasks that are scored for both.

`adjudge compare`: two systems tested against each other.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.notices import unfinished
from adjudge.engine.commands.output import print_as_table
from adjudge.engine.config.metrics import Name, headlines, named
from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import figure
from adjudge.engine.statistics.paired import Numbers, numbers_of, side_by_side
from adjudge.engine.tables.cells import chance, number, span
from adjudge.engine.tables.table import Column, Table
from adjudge.judges.plural import plural
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.comparison.claims import ALPHA, differences, fewest_tasks
from adjudge.scoring.kernels.comparison.paired_tests import holm, paired_t, wilcoxon

_UNKNOWN = Metric(name="")


class PairedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric, `a` minus `b`, over the `n_used` tasks scored for both; None where undefined.

    The numbers are those that systems are ranked by, parts that are missing at their worst. `p`, `low` and `high` (at
    95 %) are by the one rule for all claims (`kernels/comparison/claims.py`); `holm_p` is `p` corrected for the
    metrics that the protocols are ranked by, or those that were asked for, and None for the others, which are
    `exploratory`. Beside them are what papers report: Student's `t` and `t_p`, `wilcoxon_p` (zeros dropped, ties share
    ranks) and `cohens_d` = t / sqrt(n), all but the last None with so few tasks that no test could tell. `n_only_a`
    and `n_only_b` count tasks scored for only one of the two.
    """

    protocol: str
    metric: str
    scale: float
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    holm_p: float | None
    t: float | None
    t_p: float | None
    wilcoxon_p: float | None
    cohens_d: float | None
    n_used: int
    n_only_a: int
    n_only_b: int
    headline: bool = False
    exploratory: bool = False
    lower_is_better: bool = False
    decimals: int = 2


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All metrics that both systems have, those that rank first, or those that were asked for."""

    run: str
    a: str
    b: str
    metrics: tuple[PairedMetric, ...]


def compare(run: str | Path, a: str, b: str, metrics: Sequence[str] = ()) -> Comparison:
    """Compare systems `a` and `b` of the run folder `run` by `metrics`, or by all.

    Raises UsageError for a missing run or system, and for an unknown metric.
    """
    opened = Run.open(run)
    record = opened.record
    for system in (a, b):
        if system not in record.systems:
            raise UsageError(f"system: {system!r} is not in this run; {nearest(system, record.systems)}")
    if a == b:
        raise UsageError(f"system: {a!r} is named twice; name two systems")
    known = {Name(name, metric.name): metric for name, own in record.metrics.items() for metric in own}
    numbers = {
        name: one
        for name, one in numbers_of(opened.scores, record.metrics).items()
        if a in one.systems and b in one.systems
    }
    ranking = {Name(name, metric.name) for name, own in record.metrics.items() for metric in headlines(own)}
    chosen = {named(said, numbers, "metric") for said in metrics}
    every = [
        _paired(name, one, a, b, known.get(name, _UNKNOWN), name in (chosen or ranking))
        for name, one in numbers.items()
        if name in chosen or not chosen
    ]
    found = sorted(every, key=lambda metric: metric.exploratory)
    family = [metric.p is not None and not metric.exploratory for metric in found]
    corrected = holm(
        np.array(
            [metric.p if tested else np.nan for metric, tested in zip(found, family, strict=True)], float
        )
    )
    return Comparison(
        run=record.run,
        a=a,
        b=b,
        metrics=tuple(
            msgspec.structs.replace(metric, holm_p=figure(p))
            for metric, p in zip(found, corrected, strict=True)
        ),
    )


def _paired(name: Name, one: Numbers, a: str, b: str, metric: Metric, ranks: bool) -> PairedMetric:
    sides = one.of(a, one.tasks), one.of(b, one.tasks)
    scored = [~np.isnan(side).any(axis=0) for side in sides]
    both = side_by_side(*sides)
    common = both[:, ~np.isnan(both).any(axis=0)]
    claim, t, ranked = differences(common), paired_t(common), wilcoxon(common)
    told = common.shape[1] >= fewest_tasks(ALPHA)
    means = common.mean(axis=1) if common.shape[1] else np.full(2, np.nan)
    varies = bool(np.isfinite(t.t[0]))
    return PairedMetric(
        protocol=name.protocol,
        metric=name.metric,
        scale=metric.scale,
        mean_a=figure(means[0]),
        mean_b=figure(means[1]),
        difference=figure(claim.difference[0]),
        low=figure(claim.low[0]),
        high=figure(claim.high[0]),
        p=figure(claim.p[0]),
        holm_p=None,
        t=figure(t.t[0]) if varies and told else None,
        t_p=figure(t.p[0]) if varies and told else None,
        wilcoxon_p=figure(ranked.p[0]) if told else None,
        cohens_d=figure(t.cohens_d[0]) if varies else None,
        n_used=int(claim.n_used[0]),
        n_only_a=int((scored[0] & ~scored[1]).sum()),
        n_only_b=int((scored[1] & ~scored[0]).sum()),
        headline=metric.headline,
        exploratory=not ranks,
        lower_is_better=metric.lower_is_better,
        decimals=metric.decimals,
    )


def run(options: argparse.Namespace) -> int:
    """Test two systems against each other."""
    unfinished(options.run_folder)
    found = compare(options.run_folder, options.a, options.b, options.metric)
    print_as_table(options, found, comparison_table, comparison_said)
    return DONE


def comparison_table(found: Comparison) -> Table:
    """Paired tests, one line per metric; the metrics that rank first."""
    blocks = [
        [
            (
                f"{row.protocol}.{row.metric}",
                number(row.difference, row.scale, row.decimals),
                span(row.low, row.high, row.scale, row.decimals),
                chance(row.p),
                "exploratory" if row.exploratory else chance(row.holm_p),
                *(chance(p) for p in (row.t_p, row.wilcoxon_p)),
                number(row.cohens_d),
                f"{row.n_used:,}",
            )
            for row in found.metrics
            if row.exploratory is exploratory
        ]
        for exploratory in (False, True)
    ]
    return Table.of(
        title=f"{found.a} minus {found.b}, on the tasks scored for both",
        columns=(
            Column("metric", words=True),
            Column("difference"),
            Column("95 %"),
            Column("p", spare=3),
            Column("Holm p"),
            Column("t p", spare=5),
            Column("Wilcoxon p", spare=4),
            Column("d", spare=2),
            Column("tasks", spare=1),
        ),
        blocks=[block for block in blocks if block],
    )


def comparison_said(found: Comparison) -> str:
    """Which of two systems is better by all that the protocols are ranked by, or that was asked for, if either is."""
    heads = [metric for metric in found.metrics if not metric.exploratory]
    if not heads:
        ranking = "ranking metric" if found.metrics else "metric"
        return (
            f"{found.a} and {found.b} have no {ranking} in common that has a value for each task; "
            "`adjudge leaderboard` ranks them."
        )
    said = "; ".join(_compared(found.a, found.b, row) for row in heads)
    return f"{said}."


def _compared(a: str, b: str, row: PairedMetric) -> str:
    on = f"on {row.protocol} {row.metric}"
    if row.difference is None:
        return f"no task is scored for both {a} and {b} {on}"
    told = row.holm_p is not None and row.holm_p <= ALPHA
    if abs(row.difference * row.scale) < 0.5 * 10**-row.decimals and not told:
        return f"{a} and {b} score the same {on}, on the mean of {plural(row.n_used, 'task')}"
    more = "higher" if row.difference > 0 else "lower"
    written = partial(number, scale=row.scale, decimals=row.decimals)
    by = f"{written(abs(row.difference))} {more}"
    where = f"{on} (lower is better)" if row.lower_is_better else on
    if row.n_used < fewest_tasks(ALPHA):
        return f"{a} scores {by} than {b} {where}, on {plural(row.n_used, 'task')} only, too few to tell more"
    ends = None if row.low is None or row.high is None else (row.low, row.high)
    if ends is not None and row.difference < 0:
        ends = -ends[1], -ends[0]
    span = [] if ends is None else [f"95 % interval {written(ends[0])} to {written(ends[1])}"]
    p = row.holm_p
    corrected = [] if p is None else [f"p {'< 0.001' if p < 0.001 else f'= {p:.3f}'} after Holm"]
    sure = ", ".join([*span, *corrected])
    if not told:
        return f"{a} scores {by} than {b} {where}, which may be chance ({sure})"
    return f"{a} scores {by} than {b} {where} ({sure})"
