"""Two systems side by side: paired tests of every metric on the tasks that are scored for both.

`adjudge compare`: two systems tested against each other.
"""

import argparse
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from adjudge.engine.cli.exits import DONE
from adjudge.engine.cli.notices import unfinished
from adjudge.engine.cli.output import print_as_table
from adjudge.engine.config.metrics import headlines
from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import ScoreMatrix, figure
from adjudge.engine.tables.cells import chance, number, span
from adjudge.engine.tables.table import Column, Table
from adjudge.judges.plural import plural
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.comparison.paired_tests import holm, paired_t, sign_flip, wilcoxon

_UNKNOWN = Metric(name="")


class PairedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric, `a` minus `b`, over the `n_used` tasks scored for both; None where undefined.

    `t_p`, `wilcoxon_p` (zeros dropped, ties share ranks) and `sign_flip_p` are two-sided; `holm_p` is `t_p` corrected
    for the number of metrics compared here, which `headline` singles out. `low` and `high` bound the difference at 95
    % by Student's t; `cohens_d` = t / sqrt(n). `n_only_a` and `n_only_b` count tasks scored for only one of the two.
    """

    protocol: str
    metric: str
    scale: float
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    t: float | None
    t_p: float | None
    holm_p: float | None
    wilcoxon_p: float | None
    sign_flip_p: float | None
    cohens_d: float | None
    n_used: int
    n_only_a: int
    n_only_b: int
    headline: bool = False
    lower_is_better: bool = False
    decimals: int = 2


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All metrics that both systems have."""

    run: str
    a: str
    b: str
    metrics: tuple[PairedMetric, ...]


def compare(run: str | Path, a: str, b: str) -> Comparison:
    """Compare systems `a` and `b` of the run folder `run`. Raises UsageError for a missing run or system."""
    opened = Run.open(run)
    record = opened.record
    for system in (a, b):
        if system not in record.systems:
            raise UsageError(f"system: {system!r} is not in this run; {nearest(system, record.systems)}")
    if a == b:
        raise UsageError(f"system: {a!r} is named twice; name two systems")
    known = {(name, metric.name): metric for name, metrics in record.metrics.items() for metric in metrics}
    found = [
        _paired(matrix, a, b, known.get((matrix.protocol, matrix.metric), _UNKNOWN), record.config.seed)
        for matrix in opened.matrices
        if a in matrix.systems and b in matrix.systems
    ]
    corrected = holm(np.array([np.nan if metric.t_p is None else metric.t_p for metric in found]))
    return Comparison(
        run=record.run,
        a=a,
        b=b,
        metrics=tuple(
            msgspec.structs.replace(metric, holm_p=figure(p))
            for metric, p in zip(found, corrected, strict=True)
        ),
    )


def _paired(matrix: ScoreMatrix, a: str, b: str, metric: Metric, seed: int) -> PairedMetric:
    both = matrix.values[[matrix.systems.index(a), matrix.systems.index(b)]]
    scored = ~np.isnan(both)
    common = both[:, scored.all(axis=0)]
    t, ranks, flips = paired_t(common), wilcoxon(common), sign_flip(common, seed=seed)
    means = common.mean(axis=1) if common.shape[1] else np.full(2, np.nan)
    return PairedMetric(
        protocol=matrix.protocol,
        metric=matrix.metric,
        scale=metric.scale,
        mean_a=figure(means[0]),
        mean_b=figure(means[1]),
        difference=figure(t.mean_difference[0]),
        low=figure(t.low[0]),
        high=figure(t.high[0]),
        t=figure(t.t[0]),
        t_p=figure(t.p[0]),
        holm_p=None,
        wilcoxon_p=figure(ranks.p[0]),
        sign_flip_p=figure(flips.p[0]),
        cohens_d=figure(t.cohens_d[0]),
        n_used=int(t.n_used[0]),
        n_only_a=int((scored[0] & ~scored[1]).sum()),
        n_only_b=int((scored[1] & ~scored[0]).sum()),
        headline=metric.headline,
        lower_is_better=metric.lower_is_better,
        decimals=metric.decimals,
    )


ALPHA = 0.05


def run(options: argparse.Namespace) -> int:
    """Test two systems against each other."""
    unfinished(options.run_folder)
    found = compare(options.run_folder, options.a, options.b)
    print_as_table(options, found, comparison_table, comparison_said)
    return DONE


def comparison_table(found: Comparison) -> Table:
    """Paired tests, one line per metric."""
    rows = [
        (
            f"{row.protocol}.{row.metric}",
            number(row.difference, row.scale, row.decimals),
            span(row.low, row.high, row.scale, row.decimals),
            *(chance(p) for p in (row.t_p, row.holm_p, row.wilcoxon_p, row.sign_flip_p)),
            number(row.cohens_d),
            f"{row.n_used:,}",
        )
        for row in found.metrics
    ]
    return Table.of(
        title=f"{found.a} minus {found.b}, on the tasks scored for both",
        columns=(
            Column("metric", words=True),
            Column("difference"),
            Column("95 %"),
            Column("t p", spare=3),
            Column("Holm p"),
            Column("Wilcoxon p", spare=4),
            Column("sign-flip p", spare=5),
            Column("d", spare=2),
            Column("tasks", spare=1),
        ),
        blocks=[rows],
    )


def comparison_said(found: Comparison) -> str:
    """Which of two systems is better by all that the protocols are ranked by, if either is."""
    heads = headlines(found.metrics)
    if not heads:
        return f"{found.a} and {found.b} have no metric in common."
    said = "; ".join(_compared(found.a, found.b, row) for row in heads)
    return f"{said}."


def _compared(a: str, b: str, row: PairedMetric) -> str:
    on = f"on {row.protocol} {row.metric}"
    if row.difference is None:
        return f"no task is scored for both {a} and {b} {on}"
    if abs(row.difference * row.scale) < 0.5 * 10**-row.decimals and (row.t_p is None or row.t_p > ALPHA):
        return f"{a} and {b} score the same {on}, on the mean of {plural(row.n_used, 'task')}"
    more = "higher" if row.difference > 0 else "lower"
    written = partial(number, scale=row.scale, decimals=row.decimals)
    by = f"{written(abs(row.difference))} {more}"
    where = f"{on} (lower is better)" if row.lower_is_better else on
    if row.low is None or row.high is None:
        return f"{a} scores {by} than {b} {where}, on {plural(row.n_used, 'task')} only, too few to tell more"
    ends = sorted((row.low, row.high) if row.difference > 0 else (-row.low, -row.high))
    span = f"95 % interval {written(ends[0])} to {written(ends[1])}"
    p = row.holm_p
    sure = span if p is None else f"{span}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'} after Holm"
    if p is None or p > ALPHA:
        return f"{a} scores {by} than {b} {where}, which may be chance ({sure})"
    return f"{a} scores {by} than {b} {where} ({sure})"
