"""`adjudge agreement`: a judge compared with people, another judge or preferences."""

import argparse
from collections.abc import Iterable, Sequence
from functools import partial

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.notices import unfinished
from adjudge.engine.commands.output import print_as_table
from adjudge.engine.statistics.agreement import (
    MetricAgreement,
    MetricPreference,
    with_humans,
    with_preferences,
    with_run,
)
from adjudge.engine.statistics.extraction import SHARED, Extraction, with_claims
from adjudge.engine.statistics.labels import LabelAgreement, with_labels
from adjudge.engine.tables.cells import coefficient, over_interval
from adjudge.engine.tables.table import Column, Table
from adjudge.judges.plural import plural

# The figures of an agreement, the first to be shown first.
_AGREEMENTS = (
    "par opc par_people pooled_rho pooled_r alpha kappa_quadratic kappa icc_2_k icc_1_1 fap fas par_dr3"
).split()

_RANK_CORRELATIONS = {"tau": "Kendall's tau-b", "rho": "Spearman's rho"}
_SWAPS = 5  # pairs that are named


def run(options: argparse.Namespace) -> int:
    """Compare a judge with people, another judge or preferences."""
    unfinished(options.run_folder)
    if options.preferences is not None:
        preferred = with_preferences(options.run_folder, options.preferences)
        print_as_table(options, preferred, preferences_table, preferences_said)
    elif options.labels is not None:
        print_as_table(options, with_labels(options.run_folder, options.labels), labels_table, labels_said)
    elif options.claims is not None:
        print_as_table(options, with_claims(options.run_folder, options.claims), claims_table, claims_said)
    elif options.human is not None:
        rated = with_humans(options.run_folder, options.human)
        print_as_table(options, rated, agreement_table, partial(agreement_said, whom="people"))
    else:
        judged = with_run(options.run_folder, options.other)
        if not options.json:
            if any(row.verdicts is not None for row in judged):
                print_as_table(options, judged, verdicts_table)
            print_as_table(options, judged, rankings_table)
        print_as_table(options, judged, agreement_table, partial(agreement_said, whom="the other judge"))
    return DONE


def agreement_table(found: Iterable[MetricAgreement]) -> Table:
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
    return Table.of(
        columns=(
            Column("metric", words=True),
            *(Column(name, spare=place) for place, name in enumerate(names)),
            Column("systems", spare=len(names)),
            Column("reports", spare=1),
        ),
        blocks=[cells],
        said=tuple(f"left out, because the run does not have these rated reports: {one}" for one in left_out),
    )


def verdicts_table(found: Iterable[MetricAgreement]) -> Table:
    """Single verdicts of two judges on the same things, one line per protocol."""
    rows = [row.verdicts for row in found if row.verdicts is not None]
    return Table.of(
        title="Verdicts of both judges on the same things",
        columns=(
            Column("protocol", words=True),
            Column("same"),
            Column("kappa"),
            Column("if the run's judge said one thing"),
            Column("its commonest", words=True, spare=1),
            Column("verdicts", spare=2),
        ),
        blocks=[
            [
                (
                    row.protocol,
                    f"{row.same:.1%}",
                    coefficient(row.kappa),
                    f"{row.constant:.1%}",
                    f"{row.commonest} ({row.share:.0%})",
                    f"{row.n:,}",
                )
                for row in rows
            ]
        ],
        said=[
            f"{row.protocol}: the run's judge says the same to everything"
            for row in rows
            if row.share == 1.0 and row.kinds > 1
        ],
    )


def rankings_table(found: Iterable[MetricAgreement]) -> Table:
    """The rankings by two judges side by side, for each metric that ranks, and which systems swap."""
    blocks, said = [], []
    for row in found:
        own = row.rankings
        if own is None:
            continue
        name = f"{row.protocol}.{row.metric}"
        blocks.append(
            [
                (
                    name if not place else "",
                    one.system,
                    f"{one.rank}",
                    f"{one.mean:.4f}",
                    f"{one.other_rank}",
                    f"{one.other_mean:.4f}",
                )
                for place, one in enumerate(own.systems)
            ]
        )
        swapped = ", ".join(f"{a} and {b}" for a, b in own.swaps[:_SWAPS])
        more = f" and {len(own.swaps) - _SWAPS:,} more" if len(own.swaps) > _SWAPS else ""
        said.append(
            f"{name}: {len(own.swaps):,} of {plural(own.n_pairs, 'pair')} of systems swap their order"
            f"{f' ({swapped}{more})' if swapped else ''}; {_correlation(row, 'tau', own.tau)}, "
            f"{_correlation(row, 'rho', own.rho)}"
        )
    return Table.of(
        title="Both rankings, by means over the tasks that both judges score",
        columns=(
            Column("metric", words=True),
            Column("system", words=True),
            Column("rank"),
            Column("score"),
            Column("other rank"),
            Column("other score"),
        ),
        blocks=blocks,
        said=said,
    )


def _correlation(row: MetricAgreement, name: str, value: float | None) -> str:
    interval = row.intervals.get(name)
    inside = "" if interval is None else f" [{interval[0]:.3f}, {interval[1]:.3f}]"
    return f"{_RANK_CORRELATIONS[name]} {coefficient(value)}{inside}"


def agreement_said(found: Sequence[MetricAgreement], whom: str) -> str:
    """How often the judge orders two reports as `whom` does, by the first metric of each protocol."""
    first = {row.protocol: row for row in reversed(found)}
    said = "; ".join(_ordered(row, whom) for row in reversed(first.values()))
    return f"{said}." if said else "No metric was rated."


def _ordered(row: MetricAgreement, whom: str) -> str:
    name = f"{row.protocol} {row.metric}"
    if row.par is None:
        if not row.n_cases:
            return f"by {name} no report has a score of the judge and one of {whom}"
        return f"by {name} no two reports on a task can be compared, with {plural(row.n_systems, 'system')}"
    interval = row.intervals.get("par")
    inside = "" if interval is None else f", 95 % interval {interval[0]:.1%} to {interval[1]:.1%}"
    people = f", people among themselves {row.par_people:.1%}" if row.par_people is not None else ""
    pairs = plural(row.n_pairs, "pair")
    return f"by {name} the judge orders {row.par:.1%} of {pairs} of reports as {whom} would{_aside(inside + people)}"


def labels_table(found: Iterable[LabelAgreement]) -> Table:
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
        said += [
            f"{one.protocol}.{one.metric} by people's verdicts {one.people:.3f}, by the judge's {one.judge:.3f}: over "
            f"{plural(one.n_reports, 'report')} whose every verdict is labelled"
            for one in row.by_people
        ]
        if row.left_out:
            said.append(f"left out, because the run does not have it: {row.left_out}")
        if row.alpha_judge is not None:
            said.append(
                f"{row.name}: Krippendorff's alpha of the raters and the judge: {row.alpha_judge:.2f}"
            )
    return Table.of(
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
        blocks=blocks,
        said=tuple(dict.fromkeys(said)),
    )


def labels_said(found: Sequence[LabelAgreement]) -> str:
    """How often the judge's verdict is that of most people, by protocol."""
    said = "; ".join(_labelled(row) for row in found)
    return f"{said}." if said else "No verdict was labelled."


def _labelled(row: LabelAgreement) -> str:
    if row.accuracy is None:
        return f"under {row.name} no verdict has a label of people and of the judge"
    ends = row.accuracy_interval
    inside = "" if ends is None else f", 95 % interval {ends[0]:.1%} to {ends[1]:.1%}"
    kappa = "" if row.kappa is None else f", kappa {coefficient(row.kappa)}"
    verdicts = plural(row.n_items, "verdict")
    if row.weighed:
        inside, verdicts = (
            f"{inside}, estimated from {verdicts} by {plural(row.n_raters, 'rater')}",
            f"the run's {plural(row.n_verdicts, 'verdict')}",
        )
    return f"under {row.name} the judge gives {row.accuracy:.1%} of {verdicts} as people do{_aside(inside + kappa)}"


def claims_table(found: Iterable[Extraction]) -> Table:
    """Extracted claims against people's, a line for each protocol, and for each system."""
    by: dict[str, list[tuple[str, ...]]] = {}
    rows = list(found)
    for row in rows:
        figures = map(coefficient, (row.precision, row.recall, row.f1))
        counts = (f"{count:,}" for count in (row.n_extracted, row.n_people, row.n_same, row.n_reports))
        by.setdefault(row.protocol, []).append(
            ("" if row.system else row.protocol, row.system or "all", *figures, *counts)
        )
    left_out = dict.fromkeys(row.left_out for row in rows if row.left_out)
    return Table.of(
        columns=(
            Column("protocol", words=True),
            Column("system", words=True),
            Column("precision"),
            Column("recall"),
            Column("f1"),
            Column("extracted", spare=1),
            Column("people's", spare=2),
            Column("both", spare=3),
            Column("reports", spare=4),
        ),
        blocks=by.values(),
        said=tuple(f"left out, because the run does not have these reports: {one}" for one in left_out),
    )


def claims_said(found: Sequence[Extraction]) -> str:
    """What counts as the same claim."""
    return f"Two claims are the same if both have {SHARED:.0%} of the words of the longer one; each is paired once."


def preferences_table(found: Iterable[MetricPreference]) -> Table:
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
    return Table.of(
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
        blocks=blocks,
    )


def preferences_said(found: Sequence[MetricPreference]) -> str:
    """How often the metric puts what people preferred first, by metric."""
    said = "; ".join(_preferred(row) for row in found)
    return f"{said}." if said else "No preference could be looked up."


def _preferred(row: MetricPreference) -> str:
    name = f"{row.protocol} {row.metric}"
    if row.overall.best_of is None:
        return f"by {name} no set has a score for each of its reports"
    inside = "" if row.low is None or row.high is None else f", 95 % interval {row.low:.1%} to {row.high:.1%}"
    sets = plural(row.overall.n_scored, "set")
    return (
        f"by {name} the report that people chose comes first in {row.overall.best_of:.1%} of {sets}"
        f"{_aside(f'{inside}, {row.chance:.1%} by chance')}"
    )


def _aside(text: str) -> str:
    return f" ({text.removeprefix(', ')})" if text else ""
