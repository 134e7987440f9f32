"""`adjudge compare`: two systems tested against each other."""

import argparse

from adjudge.engine.cli.exits import DONE
from adjudge.engine.cli.figures import chance, span
from adjudge.engine.cli.notices import unfinished
from adjudge.engine.cli.printing import print_sheet
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.compare import Comparison, PairedMetric, compare
from adjudge.engine.rendering.numbers import number

__all__ = ["comparison_said", "comparison_sheet", "run"]

ALPHA = 0.05


def run(options: argparse.Namespace) -> int:
    """Test two systems against each other."""
    unfinished(options.run_folder)
    found = compare(options.run_folder, options.a, options.b)
    print_sheet(options, found, comparison_sheet, comparison_said)
    return DONE


def comparison_sheet(found: Comparison) -> Sheet:
    """Paired tests, one line per metric."""
    rows = [
        (
            f"{row.protocol}.{row.metric}",
            number(row.difference, row.scale),
            span(row.low, row.high, row.scale),
            *(chance(p) for p in (row.t_p, row.holm_p, row.wilcoxon_p, row.sign_flip_p)),
            number(row.cohens_d),
            f"{row.n_used:,}",
        )
        for row in found.metrics
    ]
    return Sheet(
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
        blocks=(tuple(rows),),
    )


def comparison_said(found: Comparison) -> str:
    """Which of two systems is better by the headline of each protocol, if either is."""
    heads = [row for row in found.metrics if row.headline] or list(found.metrics[:1])
    if not heads:
        return f"{found.a} and {found.b} have no metric in common."
    said = "; ".join(_compared(found.a, found.b, row) for row in heads)
    return f"{said}."


def _compared(a: str, b: str, row: PairedMetric) -> str:
    on = f"on {row.protocol} {row.metric}"
    if row.difference is None:
        return f"no task is scored for both {a} and {b} {on}"
    if abs(row.difference * row.scale) < 0.005 and (row.t_p is None or row.t_p > ALPHA):
        return f"{a} and {b} score the same {on}, on the mean of {_tasks(row.n_used)}"
    more = "higher" if row.difference > 0 else "lower"
    by = f"{number(abs(row.difference), row.scale)} {more}"
    where = f"{on} (lower is better)" if row.lower_is_better else on
    if row.low is None or row.high is None:
        return f"{a} scores {by} than {b} {where}, on {_tasks(row.n_used)} only, too few to tell more"
    ends = sorted((row.low, row.high) if row.difference > 0 else (-row.low, -row.high))
    span = f"95 % interval {number(ends[0], row.scale)} to {number(ends[1], row.scale)}"
    p = row.holm_p
    sure = span if p is None else f"{span}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'} after Holm"
    if p is None or p > ALPHA:
        return f"{a} scores {by} than {b} {where}, which may be chance ({sure})"
    return f"{a} scores {by} than {b} {where} ({sure})"


def _tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"
