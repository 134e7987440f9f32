"""Two runs side by side: reports sorted by how much a metric differs, and one report's evidence under both judges."""

import asyncio
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from adjudge.engine.config.metrics import Name, headlines, named, names_in
from adjudge.engine.runs.scores import figure
from adjudge.engine.tables.cells import chance, number, span
from adjudge.engine.viewer.data.index import KINDS, joined
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import (
    DifferencesQuery,
    NotThere,
    ReportQuery,
    SystemQuery,
    address,
)
from adjudge.engine.viewer.pages.frame import (
    Column,
    Frame,
    Listing,
    Row,
    Scatter,
    differences,
    natural,
    writer,
)
from adjudge.engine.viewer.pages.report import report_crumbs
from adjudge.scoring.contract.scorecard import Evidence, Metric, Scorecard
from adjudge.scoring.kernels.base.arrays import Floats
from adjudge.scoring.kernels.comparison import claims
from adjudge.scoring.kernels.comparison.paired_tests import holm


class _Summary(msgspec.Struct, frozen=True):
    """The reports that are scored in both runs: how many, how many of them alike, and their means."""

    both: int
    total: int
    same: int
    here: str
    there: str
    difference: str


class _System(msgspec.Struct, frozen=True):
    """A system in both runs, by the tasks that are scored in both; `to` is where its reports are."""

    system: str
    to: str
    here: str
    there: str
    difference: str
    interval: str
    p: str
    tasks: int


async def differences_page(run: OpenRun, other: OpenRun, frame: Frame, query: DifferencesQuery) -> str:
    """Reports by how much one metric differs between two runs, the largest difference first."""
    there = {*names_in(other.record.metrics)}
    shared = {
        name: metric
        for protocol, metrics in run.record.metrics.items()
        for metric in metrics
        if metric.ratio is None and (name := Name(protocol, metric.name)) in there
    }
    if not shared:
        raise NotThere("the two runs have no metric in common")
    name = named(query.metric, shared, "metric", NotThere) if query.metric else _first(shared)
    protocol, metric = name.protocol, shared[name]
    rows = await asyncio.to_thread(_apart, run, other, protocol, metric)
    several = [of for of in ("sample", "repeat") if any(row[of] for row in rows)]
    columns = [
        Column("system", "system"),
        Column("task", "task_id"),
        *(Column(of, of, number=True, low_first=True) for of in several),
        Column("here", "value", number=True, low_first=metric.lower_is_better),
        Column("there", "other", number=True, low_first=metric.lower_is_better),
        Column("difference", "difference", number=True, tip="The value here minus the value there."),
    ]
    listing = Listing.of(
        columns, rows, "differences", query, at_once=frame.rows, noun="report",
        words=lambda row: f"{row['system']} {row['task_id']}",
    )  # fmt: skip
    return frame.show(
        "differences.html.jinja",
        "Differences between two runs",
        here="differences",
        judged=[("Here", _judged(run, protocol)), ("There", _judged(other, protocol))],
        metric=metric,
        name=name.full,
        options=[(one.full, one.full) for one in shared],
        query=query,
        summary=_summary(rows, metric),
        systems=await asyncio.to_thread(_by_system, rows, name, metric),
        scatter=Scatter.of(rows, metric),
        several=several,
        listing=listing,
    )


def _first(shared: Mapping[Name, Metric]) -> Name:
    """The first metric that ranks."""
    (ranked, *_) = headlines(shared.values())
    return next(name for name, metric in shared.items() if metric is ranked)


def _apart(run: OpenRun, other: OpenRun, protocol: str, metric: Metric) -> list[Row]:
    """Reports of both runs, the largest difference first; those without one come last."""
    table = joined(run.scores.of_metric(protocol, metric.name), other.scores.of_metric(protocol, metric.name))
    rows = table.to_pylist()
    written = writer(metric, [row[of] for row in rows for of in ("value", "other")])
    for row, bar in zip(rows, differences([row["difference"] for row in rows]), strict=True):
        row["to"] = address("difference", _report(row, protocol))
        row["value_text"] = written(row["value"]) if row["value"] is not None else row["reason"] or "-"
        row["other_text"] = written(row["other"]) if row["other"] is not None else row["other_reason"] or "-"
        row["difference_text"] = number(row["difference"], metric.scale, metric.decimals)
        row["apart"] = bar
    return sorted(rows, key=_largest_first)


def _largest_first(row: Row) -> tuple[Any, ...]:
    apart = math.inf if row["difference"] is None else -abs(row["difference"])
    return apart, natural(row["system"]), natural(row["task_id"]), row["sample"], row["repeat"]


def _report(row: Row, protocol: str) -> ReportQuery:
    return ReportQuery(
        system=row["system"],
        task=row["task_id"],
        sample=row["sample"],
        repeat=row["repeat"],
        protocol=protocol,
    )


def _summary(rows: list[Row], metric: Metric) -> _Summary | None:
    """None if no report is scored in both."""
    both = [row for row in rows if row["difference"] is not None]
    if not both:
        return None
    means = (math.fsum(row[name] for row in both) / len(both) for name in ("value", "other", "difference"))
    same = sum(row["difference"] == 0 for row in both)
    return _Summary(
        len(both), len(rows), same, *(number(mean, metric.scale, metric.decimals) for mean in means)
    )


def _by_system(rows: list[Row], name: Name, metric: Metric) -> list[_System]:
    """Every system that has a task scored in both runs, tested on these tasks."""
    both = [row for row in rows if row["difference"] is not None]
    systems = sorted({row["system"] for row in both}, key=natural)
    sides = [_sides([row for row in both if row["system"] == system]) for system in systems]
    tested = [claims.differences(one) for one in sides]
    corrected = holm(np.array([one.p[0] for one in tested]))
    found = []
    for system, one, test, p in zip(systems, sides, tested, corrected, strict=True):
        here, there = (number(figure(mean), metric.scale, metric.decimals) for mean in one.mean(axis=1))
        apart = figure(test.difference[0])
        found.append(
            _System(
                system=system,
                to=address("system", SystemQuery(system=system, protocol=name.protocol, metric=metric.name)),
                here=here,
                there=there,
                difference="+" * ((apart or 0.0) > 0) + number(apart, metric.scale, metric.decimals),
                interval=span(figure(test.low[0]), figure(test.high[0]), metric.scale, metric.decimals),
                p=chance(figure(p)),
                tasks=one.shape[1],
            )
        )
    return found


def _sides(rows: list[Row]) -> Floats:
    """[2, T]: the mean of a system's reports on each task, here over there."""
    tasks = groupby(sorted(rows, key=lambda row: str(row["task_id"])), key=lambda row: row["task_id"])
    means = [np.mean([[row["value"], row["other"]] for row in of], axis=0) for _, of in tasks]
    return np.stack(means, axis=1)


def _written(metric: Metric, *cards: Scorecard) -> list[str]:
    """A metric's value in each of `cards`, or why it has none."""
    written = writer(metric, [card.scores.get(metric.name) for card in cards])
    return [
        card.reasons.get(metric.name, "-") if card.scores.get(metric.name) is None
        else written(card.scores[metric.name])
        for card in cards
    ]  # fmt: skip


class _Line(msgspec.Struct, frozen=True):
    """A line of evidence under both judges: (outcome in words, kind of verdict) each."""

    here: tuple[str, str]
    there: tuple[str, str]
    what: str
    url: str


async def difference_page(run: OpenRun, other: OpenRun, frame: Frame, query: ReportQuery) -> str:
    """One report in two runs: scores, and evidence line by line, differing lines first."""
    cards = [{card.protocol: card for card in await one.find_cards(query)} for one in (run, other)]
    shared = [name for name in cards[0] if name in cards[1]]
    protocol = query.protocol or next(iter(shared), "")
    if protocol not in shared:
        raise NotThere(f"the two runs have no scorecards of this report under {protocol!r}")
    here, there = cards[0][protocol], cards[1][protocol]
    metrics = {metric.name: metric for metric in run.record.metrics.get(protocol, ())}
    names = dict.fromkeys([*here.scores, *there.scores])
    scores = [(name, *_written(metrics.get(name, Metric(name=name)), here, there)) for name in names]
    lines = _aligned(here, there)
    return frame.show(
        "difference.html.jinja",
        f"{query.system}: {query.task}, in two runs",
        crumbs=[("Differences", "differences"), *report_crumbs(query)[1:]],
        here="differences",
        links=[
            ("The report here", address("report", query)),
            ("The report there", f"{frame.other}{address('report', query)}"),
        ],
        protocol=protocol,
        judges=[one.record.judging.said_of(protocol) for one in (run, other)],
        scores=scores,
        tables=[
            ("Evidence that differs", [line for line in lines if line.here != line.there], True),
            ("Evidence that is the same", [line for line in lines if line.here == line.there], False),
        ],
    )


def _aligned(here: Scorecard, there: Scorecard) -> list[_Line]:
    """The lines of both, paired in order by equal statement and URL."""
    sides: list[dict[tuple[str, str, int], Evidence]] = []
    for card in (here, there):
        lines: dict[tuple[str, str, int], Evidence] = {}
        for line in card.evidence:
            turn = 0
            while (line.what, line.url, turn) in lines:
                turn += 1
            lines[line.what, line.url, turn] = line
        sides.append(lines)
    first, second = sides
    keys = dict.fromkeys([*first, *second])
    return [_Line(_outcome(first.get(key)), _outcome(second.get(key)), key[0][:400], key[1]) for key in keys]


def _outcome(line: Evidence | None) -> tuple[str, str]:
    if line is None:
        return "missing", ""
    kind = line.outcome.kind
    return line.outcome.words or line.reason or "-", kind if kind in KINDS else ""


def _judged(run: OpenRun, protocol: str) -> str:
    judging = run.record.judging
    fingerprints = ", ".join(judge.fingerprint for judge in judging.all_of(protocol))
    began = f"{datetime.fromtimestamp(run.record.started, UTC):%Y-%m-%d %H:%M}"
    return f"run {run.record.run} of {began}, judged by {judging.said_of(protocol)} ({fingerprints})"
