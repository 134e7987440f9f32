"""Two runs side by side: reports by how much a metric differs, and one report's evidence under both judges."""

import asyncio
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.rendering.cells import number
from adjudge.engine.rendering.markup import Markup, join, tag
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import DifferencesQuery, NotThere, ReportQuery, address
from adjudge.engine.viewer.data.score_rows import joined
from adjudge.engine.viewer.pages.frame import (
    ROWS,
    Column,
    Frame,
    choice,
    facts,
    listing,
    pager,
    submit,
)
from adjudge.engine.viewer.pages.report import report_crumbs
from adjudge.scoring.contract.scorecard import Evidence, Metric, Scorecard

__all__ = ["difference_page", "differences_page"]

_COLUMNS = [
    Column("system", "system"), Column("task", "task_id"), Column("sample", number=True),
    Column("repeat", number=True), Column("here", "value", number=True), Column("there", "other", number=True),
    Column("difference", "difference", number=True),
]  # fmt: skip


async def differences_page(run: OpenRun, other: OpenRun, frame: Frame, query: DifferencesQuery) -> str:
    """Reports by how much one metric differs between two runs, the largest difference first."""
    shared = [
        (f"{protocol}.{metric.name}", protocol, metric)
        for protocol, metrics in run.record.metrics.items()
        for metric in metrics
        if metric.ratio is None
        and metric.name in {one.name for one in other.record.metrics.get(protocol, ())}
    ]
    if not shared:
        raise NotThere("the two runs have no metric in common")
    name, protocol, metric = _chosen(shared, query)
    rows = await asyncio.to_thread(_apart, run, other, protocol, metric, query)
    start = (query.page - 1) * ROWS
    shown = [_row(row, protocol, metric.scale) for row in rows.slice(start, ROWS).to_pylist()]
    return frame.page(
        "Differences between two runs",
        facts(
            [
                ("Here", _judged(run, protocol)),
                ("There", _judged(other, protocol)),
                *_summary(rows, metric.scale),
            ]
        ),
        submit(
            "differences",
            choice("Metric", "metric", [(one, one) for one, _, _ in shared], name),
            tag("label", "Filter systems and tasks", for_="f-filter"),
            tag("input", id="f-filter", name_="filter", type="search", value=query.filter),
            keep={"sort": query.sort},
        ),
        pager("differences", query, len(rows)),
        listing("Differences", _COLUMNS, shown, "differences", query),
    )


def _chosen(shared: list[tuple[str, str, Metric]], query: DifferencesQuery) -> tuple[str, str, Metric]:
    if not query.metric:
        return next((one for one in shared if one[2].headline), shared[0])
    for one in shared:
        if query.metric == one[0]:
            return one
    raise NotThere(f"the two runs have no metric {query.metric!r} in common")


def _apart(run: OpenRun, other: OpenRun, protocol: str, metric: Metric, query: DifferencesQuery) -> pa.Table:
    """Reports of both runs, sorted."""
    rows = joined(run.scores.of_metric(protocol, metric.name), other.scores.of_metric(protocol, metric.name))
    if query.filter:
        named = (
            pc.match_substring(rows[name], query.filter, ignore_case=True) for name in ("system", "task_id")
        )
        rows = rows.filter(reduce(pc.or_, named))
    key = query.sort.removeprefix("-")
    if key in {column.key for column in _COLUMNS if column.key}:
        order = "descending" if query.sort.startswith("-") else "ascending"
        return rows.sort_by([(key, order), ("system", "ascending"), ("task_id", "ascending")])
    rows = rows.append_column("apart", pc.abs(rows["difference"]))
    return rows.sort_by([("apart", "descending"), ("system", "ascending"), ("task_id", "ascending")])


def _summary(rows: pa.Table, scale: float) -> list[tuple[str, str | None]]:
    both = rows.filter(pc.is_valid(rows["difference"]))
    if not len(both):
        return [("Scored in both", "no report")]
    equal = pc.sum(pc.equal(both["difference"], 0.0)).as_py()
    return [
        ("Scored in both", f"{len(both):,} of {len(rows):,} reports, {equal:,} of them the same"),
        (
            "Mean",
            " and ".join(
                f"{number(pc.mean(both[column]).as_py(), scale)} {side}"
                for column, side in (("value", "here"), ("other", "there"))
            ),
        ),
        ("Mean difference", number(pc.mean(both["difference"]).as_py(), scale)),
    ]


def _row(row: dict[str, Any], protocol: str, scale: float) -> list[str]:
    query = ReportQuery(
        system=row["system"],
        task=row["task_id"],
        sample=row["sample"],
        repeat=row["repeat"],
        protocol=protocol,
    )
    return [
        tag("a", row["system"], href=address("difference", query)),
        row["task_id"],
        str(row["sample"]),
        str(row["repeat"]),
        _figure(row["value"], row["reason"], scale),
        _figure(row["other"], row["other_reason"], scale),
        number(row["difference"], scale),
    ]


def _figure(value: float | None, reason: str | None, scale: float) -> str:
    return reason or "-" if value is None else number(value, scale)


async def difference_page(run: OpenRun, other: OpenRun, frame: Frame, query: ReportQuery) -> str:
    """One report in two runs: scores, and evidence line by line, differing lines first."""
    cards = [{card.protocol: card for card in await one.find_cards(query)} for one in (run, other)]
    shared = [name for name in cards[0] if name in cards[1]]
    protocol = query.protocol or next(iter(shared), "")
    if protocol not in shared:
        raise NotThere(f"the two runs have no scorecards of this report under {protocol!r}")
    here, there = cards[0][protocol], cards[1][protocol]
    scales = {metric.name: metric.scale for metric in run.record.metrics.get(protocol, ())}
    scores = [
        [
            name,
            *(
                _figure(card.scores.get(name), card.reasons.get(name), scales.get(name, 1.0))
                for card in (here, there)
            ),
        ]
        for name in dict.fromkeys([*here.scores, *there.scores])
    ]
    lines = _aligned(here, there)
    differ = [line for line in lines if line[0] != line[1]]
    same = [line for line in lines if line[0] == line[1]]
    columns = [Column("statement", long=True), Column("source", long=True), Column("here"), Column("there")]
    judges = [
        Column("metric"),
        *(
            Column(f"{one.record.judging.said_of(protocol)}, {side}", number=True)
            for one, side in ((run, "here"), (other, "there"))
        ),
    ]
    return frame.page(
        f"{query.system}: {query.task}, in two runs",
        tag("p", tag("a", "The report here", href=address("report", query)), " ",
            tag("a", "and there", href=f"{frame.other}{address('report', query)}")),
        tag("h2", f"Scores under {protocol}"),
        listing("Scores", judges, scores),
        tag("h2", f"Evidence that differs ({len(differ):,})"),
        listing("Evidence that differs", columns, map(_shown, differ)),
        tag("details", tag("summary", f"Evidence that is the same ({len(same):,})"),
            listing("Evidence that is the same", columns, map(_shown, same))),
        crumbs=[("Differences", "differences"), *report_crumbs(query)[1:]],
    )  # fmt: skip


def _aligned(here: Scorecard, there: Scorecard) -> list[tuple[str, str, str, str]]:
    """(outcome here, outcome there, statement, URL) of all lines, paired in order by equal statement and URL."""
    sides: list[dict[tuple[str, str, int], Evidence]] = []
    for card in (here, there):
        lines: dict[tuple[str, str, int], Evidence] = {}
        for line in card.evidence:
            turn = 0
            while (line.what, line.url, turn) in lines:
                turn += 1
            lines[line.what, line.url, turn] = line
        sides.append(lines)
    keys = dict.fromkeys([*sides[0], *sides[1]])
    return [(*(_outcome(side.get(key)) for side in sides), key[0], key[1]) for key in keys]  # type: ignore[misc]


def _outcome(line: Evidence | None) -> str:
    return "missing" if line is None else line.outcome or line.reason or "-"


def _shown(line: tuple[str, str, str, str]) -> list[str | Markup]:
    here, there, what, url = line
    return [join(what[:400]), url or "-", here, there]


def _judged(run: OpenRun, protocol: str) -> str:
    judging = run.record.judging
    fingerprints = ", ".join(judge.fingerprint for judge in judging.all_of(protocol))
    return f"run {run.record.run}, judged by {judging.said_of(protocol)} ({fingerprints})"
