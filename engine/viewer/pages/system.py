"""One system's reports by one metric: its mean, its largest differences from the other systems, and every task."""

import asyncio
import math
from collections.abc import Callable

import msgspec
import pyarrow.compute as pc

from adjudge.engine.config.metrics import headlines, named, names_in
from adjudge.engine.runs.board import FROM_COMPARISONS
from adjudge.engine.statistics.selection import explained
from adjudge.engine.tables.cells import bounds, number
from adjudge.engine.tables.standings import about_metric
from adjudge.engine.viewer.data.index import Verdicts
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import NotThere, ReportQuery, SystemQuery, address
from adjudge.engine.viewer.pages.frame import Column, Ends, Frame, Listing, Row, differences, natural, writer
from adjudge.judges.plural import plural
from adjudge.scoring.contract.scorecard import Metric

_MOST = 10


class _Value(msgspec.Struct, frozen=True):
    """A system on the leaderboard: its value with an explanation, or why it has none, and what is missing."""

    text: str
    said: str
    lacking: tuple[str, ...] = ()


async def system_page(run: OpenRun, frame: Frame, query: SystemQuery) -> str:
    """One system's reports by one metric, with their mean as in the leaderboard."""
    if query.system not in run.record.systems:
        raise NotThere(f"this run has no system {query.system!r}")
    protocol, metric = _metric(run, query)
    rows, reasons, in_words = await asyncio.to_thread(_scored, run, query, protocol, metric)
    prompts = await run.prompts()
    for row in rows:
        row["prompt"] = prompts.get(row["task_id"], "")
    columns = _columns(metric, rows)
    listing = Listing.of(
        columns, rows, "system", query, at_once=frame.rows, noun="report",
        words=lambda row: f"{row['task_id']} {row['prompt']}",
    )  # fmt: skip
    listing = msgspec.structs.replace(listing, rows=tuple(map(in_words, listing.rows)))
    shown = await _with_verdicts(run, query.system, protocol, listing)
    return frame.show(
        "system.html.jinja",
        query.system,
        crumbs=[("Systems", address("./"))],
        here="./",
        query=query,
        protocol=protocol,
        metric=metric,
        value=await asyncio.to_thread(_value, run, query.system, protocol, metric),
        options=[(f"{name}.{one.name}",) * 2 for name, every in run.record.metrics.items() for one in every],
        reasons=[("", "all"), ("any", "those with a reason"), *((one, one) for one in reasons)],
        most=_most_apart(rows, in_words) if len(rows) > _MOST else [],  # else the table below shows no less
        listing=shown,
        kinds=Verdicts.kinds(row["verdicts"] for row in shown.rows),
        others=len(run.record.systems) > 1,
    )


def _columns(metric: Metric, rows: list[Row]) -> list[Column]:
    """The columns that hold something."""
    value, below = metric.ratio or (metric.name, "")
    several = [name for name in ("sample", "repeat") if any(row[name] for row in rows)]
    return [
        Column("task", "task_id"),
        *(Column(name, name, number=True, low_first=True) for name in several),
        Column(
            value,
            "value",
            number=True,
            low_first=metric.lower_is_better,
            tip="" if below else about_metric(metric),
        ),
        *([Column(below, "below", number=True)] if below else []),
        *(
            [
                Column(
                    "others", "others", number=True, tip="The mean of the other systems on the same task."
                ),
                Column(
                    "difference", "difference", number=True, tip="The value minus the mean of the others."
                ),
            ]
            if any(row["others"] is not None for row in rows)
            else []
        ),
        Column("verdicts", tip="How many of all are supported, matched, or have full points."),
        *([Column("reason", "reason")] if any(row["reason"] for row in rows) else []),
    ]


def _scored(
    run: OpenRun, query: SystemQuery, protocol: str, metric: Metric
) -> tuple[list[Row], list[str], Callable[[Row], Row]]:
    """A row per report, tasks in natural order, beside the mean of the others on its task; and the reasons.

    Last what adds a row's bar, texts and addresses, which only the rows on the page need.
    """
    name = metric.ratio[0] if metric.ratio else metric.name
    table = run.scores.of_metric(protocol, name, system=query.system)
    reasons = sorted(reason for reason in pc.unique(table["reason"]).to_pylist() if reason is not None)
    if metric.ratio:
        keys = ["system", "task_id", "sample", "repeat"]
        below = run.scores.of_metric(protocol, metric.ratio[1], system=query.system)
        other = below.drop_columns("reason").rename_columns([*keys, "below"])
        table = table.join(other, keys, join_type="left outer")
    tasks = {} if metric.ratio else run.scores.by_task(protocol, name)
    rows = table.to_pylist()
    every = [value for systems in tasks.values() for value in systems.values()]
    ends = Ends.of(metric, [*every, *(row["value"] for row in rows)])
    written = writer(metric, [row[of] for row in rows for of in ("value", "below") if of in row])
    kept = []
    for row in rows:
        if query.reason not in ("", row["reason"]) and not (query.reason == "any" and row["reason"]):
            continue
        rest = [value for system, value in tasks.get(row["task_id"], {}).items() if system != query.system]
        others = math.fsum(rest) / len(rest) if rest else None
        apart = None if others is None or row["value"] is None else row["value"] - others
        kept.append({**row, "others": others, "difference": apart})

    def in_words(row: Row) -> Row:
        report = ReportQuery(
            system=query.system, task=row["task_id"], sample=row["sample"], repeat=row["repeat"], protocol=protocol
        )  # fmt: skip
        return {
            **row,
            "bar": None if metric.ratio else ends.bar(row["value"], row["others"]),
            "value_text": written(row["value"]),
            "below_text": written(row.get("below")),
            "others_text": number(row["others"], metric.scale, metric.decimals),
            "difference_text": number(row["difference"], metric.scale, metric.decimals),
            "to": address("report", report),
            "task_to": address("task", task=row["task_id"], protocol=protocol),
        }

    kept.sort(key=lambda row: (natural(row["task_id"]), row["sample"], row["repeat"]))
    return kept, reasons, in_words


def _most_apart(rows: list[Row], in_words: Callable[[Row], Row]) -> list[Row]:
    """The reports whose value differs most from the mean of the others on their task, the largest difference first."""
    apart = sorted((row for row in rows if row["difference"]), key=lambda row: -abs(row["difference"]))[
        :_MOST
    ]
    bars = differences([row["difference"] for row in apart])
    return [{**in_words(row), "apart": bar} for row, bar in zip(apart, bars, strict=True)]


async def _with_verdicts(run: OpenRun, system: str, protocol: str, listing: Listing) -> Listing:
    """`listing` with the verdicts of each row's scorecard."""
    index = await run.cards()
    tasks = {row["task_id"] for row in listing.rows}
    found = await asyncio.to_thread(index.verdicts_of_system, system, tasks)
    rows = tuple(
        {**row, "verdicts": found.get((protocol, system, row["task_id"], row["sample"], row["repeat"]))}
        for row in listing.rows
    )
    if Verdicts.kinds(row["verdicts"] for row in rows):
        return msgspec.structs.replace(listing, rows=rows)
    heads = tuple(head for head in listing.heads if head.column.title != "verdicts")
    return msgspec.structs.replace(listing, rows=rows, heads=heads)


def _value(run: OpenRun, system: str, protocol: str, metric: Metric) -> _Value:
    try:
        boards = run.leaderboard().metrics
    except NotThere as error:
        return _Value("", str(error))
    head = next((one for one in boards if (one.protocol, one.metric) == (protocol, metric.name)), None)
    row = None if head is None else next((one for one in head.standings if one.system == system), None)
    if head is None or row is None:
        return _Value("", "not in the leaderboard.")
    held = f", held between {metric.clip[0]:g} and {metric.clip[1]:g}," if metric.clip else ""
    how = f"the sum of {metric.ratio[0]} over the sum of {metric.ratio[1]}" if metric.ratio else f"mean{held}"
    open_ = f" ({bounds(row, head).text})" if row.open else ""
    rank = "without a rank" if row.rank is None else f"rank {row.place}"
    return _Value(
        number(row.value, metric.scale, metric.decimals),
        f"{open_}, {how} over all {plural(head.n_tasks, 'task')}, {rank}, as in the leaderboard.",
        tuple(f"{count:,} unscored: {explained(reason)}." for reason, count in row.unscored.items()),
    )


def _metric(run: OpenRun, query: SystemQuery) -> tuple[str, Metric]:
    """The metric that the query names, by default the one that the first table is ranked by.

    Figures that are made of comparisons lead to these.
    """
    among = {query.protocol: run.metrics(query.protocol)} if query.protocol else run.record.metrics
    if not query.metric or (query.protocol and query.metric in FROM_COMPARISONS):
        protocol, metrics = next(iter(among.items()))
        return protocol, headlines(metrics)[0]
    name = named(query.metric, names_in(among), "metric", NotThere)
    return name.protocol, next(one for one in among[name.protocol] if one.name == name.metric)
