"""`adjudge check`: a run checked against a baseline."""

import argparse

from adjudge.engine.cli.exits import DONE, INCOMPLETE, REGRESSED
from adjudge.engine.cli.figures import chance, span
from adjudge.engine.cli.notices import unfinished
from adjudge.engine.cli.printing import print_sheet
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.check import POWER, Check, check
from adjudge.engine.commands.junit import write_junit
from adjudge.engine.rendering.numbers import number

__all__ = ["check_sheet", "run"]


def run(options: argparse.Namespace) -> int:
    """Check a run against a baseline."""
    unfinished(options.run_folder)
    found = check(
        options.run_folder,
        options.baseline,
        system=options.system,
        against=options.against,
        metrics=options.metric,
        max_drop=options.max_drop,
        alpha=options.alpha,
        min_scored=options.min_scored,
    )
    if options.junit is not None:
        write_junit(found, options.junit)
    print_sheet(options, found, check_sheet)
    return {"passed": DONE, "regressed": REGRESSED, "unclear": INCOMPLETE}[found.outcome]


def check_sheet(found: Check) -> Sheet:
    """The check of a run, one line per system and metric; what did not pass, and notes, underneath."""
    margin = "any significant drop" if found.max_drop is None else f"a drop of {found.max_drop:g}"
    rows = [
        (
            row.system if row.system == row.against else f"{row.system} (against {row.against})",
            f"{row.protocol}.{row.metric}",
            *(number(value) for value in (row.before, row.after, row.drop)),
            span(row.low, row.high),
            chance(row.holm_p),
            number(row.detectable),
            f"{row.n_used:,} of {row.n_tasks:,}",
            row.outcome,
        )
        for row in found.metrics
    ]
    return Sheet(
        title=f"{found.run} against {found.baseline}: {found.outcome} ({margin}, alpha {found.alpha:g})",
        columns=(
            Column("system", words=True),
            Column("metric", words=True),
            Column("baseline", spare=2),
            Column("run", spare=3),
            Column("drop"),
            Column(f"{1 - 2 * found.alpha:.0%}"),
            Column("Holm p", spare=1),
            Column(f"could show ({POWER:.0%})", spare=5),
            Column("tasks", spare=4),
            Column("outcome"),
        ),
        blocks=(tuple(rows),),
        said=(
            *([] if found.outcome == "passed" else [found.summary]),
            *(f"note: {note}" for note in found.notes),
        ),
    )
