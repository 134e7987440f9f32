"""Comparisons as tables for a terminal: systems, runs, a judge with people or with another judge."""

from collections.abc import Iterable

from adjudge.engine.cli.figures import chance, coefficient, over_interval, span
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.agreement import MetricAgreement
from adjudge.engine.commands.check import POWER, Check
from adjudge.engine.commands.compare import Comparison
from adjudge.engine.commands.labels import LabelAgreement
from adjudge.engine.commands.preferences import MetricPreference
from adjudge.engine.rendering.cells import number

__all__ = ["agreement_sheet", "check_sheet", "comparison_sheet", "labels_sheet", "preferences_sheet"]


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


# The figures of an agreement, the first to be shown first.
_AGREEMENTS = (
    "par",
    "opc",
    "par_people",
    "pooled_rho",
    "pooled_r",
    "alpha",
    "kappa_quadratic",
    "kappa",
    "icc_2_k",
    "icc_1_1",
    "fap",
    "fas",
    "par_dr3",
)


def agreement_sheet(found: Iterable[MetricAgreement]) -> Sheet:
    """Agreement, one line per metric."""
    rows = list(found)
    names = [name for name in _AGREEMENTS if any(getattr(row, name) is not None for row in rows)]
    cells = [
        (
            f"{row.protocol}.{row.metric}",
            *(over_interval(getattr(row, name), row.intervals.get(name)) for name in names),
            f"{row.n_systems:,}",
            f"{row.n_cases:,}",
        )
        for row in rows
    ]
    left_out = dict.fromkeys(row.left_out for row in rows if row.left_out)
    return Sheet(
        columns=(
            Column("metric", words=True),
            *(Column(name, spare=place) for place, name in enumerate(names)),
            Column("systems", spare=len(names)),
            Column("reports", spare=1),
        ),
        blocks=(tuple(cells),),
        said=tuple(f"left out, because the run does not have these rated reports: {one}" for one in left_out),
    )


def labels_sheet(found: Iterable[LabelAgreement]) -> Sheet:
    """Agreement of single verdicts with people's: a line for each protocol, and for each verdict."""
    blocks = []
    said = []
    for row in found:
        whole = (
            over_interval(row.accuracy, row.accuracy_interval),
            coefficient(row.kappa),
            coefficient(row.alpha),
        )
        lines = [(row.name, "all", *whole, "", "", f"{row.n_items:,}", f"{row.n_items:,}")]
        for one in row.verdicts:
            shares = (
                over_interval(one.recall, one.recall_interval),
                over_interval(one.precision, one.precision_interval),
            )
            lines.append(("", one.verdict, "", "", "", *shares, f"{one.n_people:,}", f"{one.n_judge:,}"))
        for group in row.groups:
            figures = (over_interval(group.accuracy, group.accuracy_interval), coefficient(group.kappa))
            size = f"{group.n_items:,}"
            lines.append(("", f"{group.attribute}: {group.name or 'none'}", *figures, "", "", "", size, size))
        blocks.append(tuple(lines))
        counts = {
            "without a verdict of the judge": row.n_unscored,
            "without a majority of raters": row.n_tied,
        }
        said += [f"{row.name}: left out: {count:,} {why}" for why, count in counts.items() if count]
        if row.left_out:
            said.append(f"left out, because the run does not have it: {row.left_out}")
        if row.alpha_judge is not None:
            said.append(
                f"{row.name}: Krippendorff's alpha of the raters and the judge: {row.alpha_judge:.2f}"
            )
    return Sheet(
        columns=(
            Column("protocol", words=True),
            Column("verdict", words=True),
            Column("accuracy"),
            Column("kappa", spare=3),
            Column("alpha", spare=4),
            Column("recall"),
            Column("precision"),
            Column("people", spare=1),
            Column("judge", spare=2),
        ),
        blocks=tuple(blocks),
        said=tuple(dict.fromkeys(said)),
    )


def preferences_sheet(found: Iterable[MetricPreference]) -> Sheet:
    """Agreement with people's preferences, one line per metric and subset."""
    blocks = []
    for row in found:
        interval = None if row.low is None or row.high is None else (row.low, row.high)
        lines = [
            (
                "" if subset else f"{row.protocol}.{row.metric}",
                subset or "all",
                over_interval(one.best_of, None if subset else interval),
                "" if subset else coefficient(row.chance),
                coefficient(one.pairwise),
                "" if subset or row.ties is None else coefficient(row.ties.overall),
                f"{one.n_scored:,}",
                f"{one.n_unscored:,}",
            )
            for subset, one in {"": row.overall, **row.subsets}.items()
        ]
        blocks.append(tuple(lines))
    return Sheet(
        columns=(
            Column("metric", words=True),
            Column("subset", words=True),
            Column("best of set"),
            Column("by chance", spare=1),
            Column("of pairs", spare=2),
            Column("ties test", spare=4),
            Column("sets", spare=3),
            Column("unscored", spare=5),
        ),
        blocks=tuple(blocks),
    )
