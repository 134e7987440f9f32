"""The pages above a report: the run with its systems, its tasks, one system, one task."""

import asyncio

import pyarrow.compute as pc

from adjudge.engine.leaderboard.board import MetricBoard
from adjudge.engine.leaderboard.comparisons import FROM_COMPARISONS
from adjudge.engine.leaderboard.missing import explained
from adjudge.engine.records.provenance import Provenance
from adjudge.engine.rendering.cells import Cell, bounds, number
from adjudge.engine.rendering.markup import Markup, tag
from adjudge.engine.rendering.standings import Kind, Ranking, rankings, standings
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ListQuery, NotThere, ReportQuery, SystemQuery, TaskQuery, address
from adjudge.engine.viewer.pages.frame import (
    ROWS,
    Column,
    Frame,
    Row,
    choice,
    facts,
    listing,
    pager,
    sorted_by,
    submit,
)
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["home", "system_page", "task_page", "tasks_page"]


async def home(run: OpenRun, frame: Frame, query: ListQuery) -> str:
    """The run, and its systems by protocol."""
    try:
        board = await asyncio.to_thread(run.leaderboard)
        standings = [
            part
            for ranking in rankings(board.metrics)
            for part in _standings(ranking, set(run.record.systems), query)
        ]
        standings += [tag("p", note, class_="note") for note in board.notes]
    except NotThere as error:
        standings = [tag("p", str(error), class_="note"), _names(run)]
    return frame.page(
        f"Run {run.record.run}",
        facts(_facts(Provenance.of(run.record))),
        submit("./", _filter("Filter systems", query.filter), label="Filter"),
        *standings,
    )


def _facts(source: Provenance) -> list[tuple[str, str | None]]:
    return [
        ("Judge", "; ".join(judge.line for judge in source.judges_used)),
        ("Command", tag("code", source.command)),
        ("Began", f"{source.began}, took {source.seconds:,.0f} s"),
        ("Input", f"{source.systems:,} systems, {source.tasks:,} tasks, {source.rejected:,} lines left out"),
        ("Judgments", f"{source.from_judge:,} asked, {source.from_store:,} from the store"),
    ]


def _names(run: OpenRun) -> Markup:
    return tag(
        "ul",
        *(
            tag("li", tag("a", name, href=address("system", SystemQuery(system=name))))
            for name in run.record.systems
        ),
    )


_NOT_SHOWN: tuple[Kind, ...] = ("rank interval", "interval", "tier")


def _standings(ranking: Ranking, known: set[str], query: ListQuery) -> list[Markup]:
    found = standings(ranking).without(*_NOT_SHOWN)
    # The first column heads the rows.
    order = sorted(range(len(found.columns)), key=lambda place: found.columns[place].kind != "system")
    columns = [found.columns[place] for place in order]
    rows = []
    for row in found.rows:
        system, *_ = cells = [row[place] for place in order]
        if query.filter.lower() in system.text.lower():
            drawn = zip(columns, cells, strict=True)
            rows.append(
                [_cell(column.kind, cell, ranking.head, system.text, known) for column, cell in drawn]
            )
    return [
        tag("h2", ranking.title),
        tag("p", f"{ranking.head.basis}.", class_="quiet"),
        listing(
            f"Systems by {ranking.title}",
            [Column(column.name, number=column.numeric) for column in columns],
            rows,
        ),
    ]


def _cell(kind: Kind, cell: Cell, head: MetricBoard, system: str, known: set[str]) -> str:
    """Names, values and reasons lead to the reports of a system that this run holds."""
    leads = kind == "system" or cell.metric or (kind == "unscored" and cell.text != "-")
    if system not in known or not leads:
        return cell.text
    query = SystemQuery(
        system=system,
        protocol=head.protocol,
        metric=cell.metric or head.metric,
        reason="any" if kind == "unscored" else "",
    )
    return tag("a", cell.text, href=address("system", query))


def _filter(label: str, words: str) -> Markup:
    return tag(
        "span",
        tag("label", label, for_="f-filter"),
        " ",
        tag("input", id="f-filter", name_="filter", type="search", value=words),
    )


async def tasks_page(run: OpenRun, frame: Frame, query: ListQuery) -> str:
    """The run's tasks."""
    prompts = await run.prompts()
    words = query.filter.lower()
    every: list[Row] = [
        {"id": name, "language": task.language, "domain": task.domain, "prompt": prompts.get(name, "")}
        for name, task in run.record.tasks.items()
        if not words or words in f"{name}\n{task.language}\n{task.domain}\n{prompts.get(name, '')}".lower()
    ]
    rows = sorted_by(every, query.sort, ("id", "language", "domain"))
    shown = [
        [
            tag("a", row["id"], href=address("task", task=row["id"])),
            row["language"],
            row["domain"] or "-",
            _clipped(row["prompt"]),
        ]
        for row in rows[(query.page - 1) * ROWS : query.page * ROWS]
    ]
    columns = [
        Column("task", "id"), Column("language", "language"), Column("domain", "domain"), Column("prompt", long=True),
    ]  # fmt: skip
    return frame.page(
        "Tasks",
        submit("tasks", _filter("Filter tasks", query.filter), label="Filter", keep={"sort": query.sort}),
        pager("tasks", query, len(rows)),
        listing("Tasks", columns, shown, "tasks", query),
    )


def _clipped(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


async def task_page(run: OpenRun, frame: Frame, query: TaskQuery) -> str:
    """One task: its prompt, and every system's scores for it."""
    task = run.record.tasks.get(query.task)
    if task is None:
        raise NotThere(f"this run has no task {query.task!r}")
    protocol = query.protocol or next(iter(run.record.metrics))
    metrics = [metric for metric in run.metrics(protocol) if metric.ratio is None and metric.shown]
    every = await asyncio.to_thread(_reports_for, run, query.task, protocol)
    names = [metric.name for metric in metrics]
    rows = sorted_by(every, query.sort, ("system", *names))
    rows = [row for row in rows if query.filter.lower() in row["system"].lower()]
    shown = [
        [
            _report_link(row, query.task, protocol),
            f"{row['sample']}",
            f"{row['repeat']}",
            *(
                number(row[metric.name], metric.scale) if row[metric.name] is not None else f"{row['reason']}"
                for metric in metrics
            ),
        ]
        for row in rows[(query.page - 1) * ROWS : query.page * ROWS]
    ]
    columns = [
        Column("system", "system"), Column("sample", number=True), Column("repeat", number=True),
        *(Column(name, name, number=True) for name in names),
    ]  # fmt: skip
    prompts = await run.prompts()
    return frame.page(
        f"Task {query.task}",
        facts([("Language", task.language), ("Domain", task.domain)]),
        tag("h2", "Prompt"),
        tag(
            "p",
            prompts.get(query.task, "The run's tasks file is not where it was."),
            class_="text",
            dir="auto",
        ),
        tag("h2", "Reports"),
        submit(
            "task",
            choice("Protocol", "protocol", ((name, name) for name in run.record.metrics), protocol),
            _filter("Filter systems", query.filter),
            keep={"task": query.task, "sort": query.sort},
        ),
        pager("task", query, len(rows)),
        listing("Reports", columns, shown, "task", query),
        crumbs=[("Tasks", "tasks")],
    )


def _reports_for(run: OpenRun, task: str, protocol: str) -> list[Row]:
    columns = ["system", "sample", "repeat", "metric", "value", "reason"]
    rows: dict[tuple[str, int, int], Row] = {}
    empty = dict.fromkeys(metric.name for metric in run.metrics(protocol))
    for row in run.scores.select(columns, task_id=task, protocol=protocol).to_pylist():
        identity = row["system"], row["sample"], row["repeat"]
        found = rows.setdefault(
            identity, {**empty, "reason": "-", **dict(zip(columns[:3], identity, strict=True))}
        )
        found[row["metric"]] = row["value"]
        if row["value"] is None:
            found["reason"] = row["reason"]
    return list(rows.values())


def _report_link(row: Row, task: str, protocol: str) -> Markup:
    query = ReportQuery(
        system=row["system"],
        task=task,
        sample=row["sample"],
        repeat=row["repeat"],
        protocol=protocol,
    )
    return tag("a", query.system, href=address("report", query))


async def system_page(run: OpenRun, frame: Frame, query: SystemQuery) -> str:
    """One system's reports by one metric, with their mean as in the leaderboard."""
    if query.system not in run.record.systems:
        raise NotThere(f"this run has no system {query.system!r}")
    protocol, metric = _metric(run, query)
    rows, reasons = await asyncio.to_thread(_scored, run, query, protocol, metric)
    below = metric.ratio[1] if metric.ratio else ""
    rows = sorted_by(rows, query.sort, ("task_id", "value"))
    shown = [
        [
            tag("a", row["task_id"], href=address("report", _report(query.system, protocol, row))),
            f"{row['sample']}",
            f"{row['repeat']}",
            number(row["value"], 1.0 if below else metric.scale),
            *([number(row["below"])] if below else []),
            row["reason"] or "-",
        ]
        for row in rows[(query.page - 1) * ROWS : query.page * ROWS]
    ]
    columns = [
        Column("task", "task_id"), Column("sample", number=True), Column("repeat", number=True),
        Column(metric.ratio[0] if metric.ratio else metric.name, "value", number=True),
        *([Column(below, number=True)] if below else []), Column("reason"),
    ]  # fmt: skip
    chosen = f"{protocol}.{metric.name}"
    options = [(f"{name}.{one.name}",) * 2 for name, metrics in run.record.metrics.items() for one in metrics]
    return frame.page(
        query.system,
        *await asyncio.to_thread(_value, run, query.system, protocol, metric),
        submit(
            "system",
            choice("Metric", "metric", options, chosen),
            choice("Reports", "reason", _REASONS + [(name, name) for name in reasons], query.reason),
            keep={"system": query.system, "sort": query.sort},
        ),
        pager("system", query, len(rows)),
        listing("Reports", columns, shown, "system", query),
        crumbs=[("Systems", "./")],
    )


def _value(run: OpenRun, system: str, protocol: str, metric: Metric) -> list[Markup]:
    """What the leaderboard says of a system: its value, what that could become, and what is missing and why."""
    name = f"{protocol}.{metric.name}"
    try:
        boards = run.leaderboard().metrics
    except NotThere as error:
        return [tag("p", f"{name}: {error}", class_="note")]
    head = next((one for one in boards if (one.protocol, one.metric) == (protocol, metric.name)), None)
    row = None if head is None else next((one for one in head.standings if one.system == system), None)
    if head is None or row is None:
        return [tag("p", f"{name}: not in the leaderboard.", class_="note")]
    held = f", held between {metric.clip[0]:g} and {metric.clip[1]:g}," if metric.clip else ""
    how = f"the sum of {metric.ratio[0]} over the sum of {metric.ratio[1]}" if metric.ratio else f"mean{held}"
    open_ = f" ({bounds(row, head).text})" if row.open else ""
    rank = "without a rank" if row.rank is None else f"rank {row.rank:g}"
    value = tag("strong", number(row.value, metric.scale), id="value")
    said = f"{open_}, {how} over all {head.n_tasks:,} tasks, {rank}, as in the leaderboard."
    lacking = [f"{count:,} unscored: {explained(reason)}." for reason, count in row.unscored.items()]
    return [tag("p", f"{name}: ", value, said), *(tag("p", line, class_="note") for line in lacking)]


_REASONS = [("", "all"), ("any", "those with a reason")]


def _metric(run: OpenRun, query: SystemQuery) -> tuple[str, Metric]:
    """The metric that the query names, alone or as PROTOCOL.METRIC; by default the first headline.

    Figures that are made of comparisons lead to these.
    """
    for protocol, metrics in run.record.metrics.items():
        if query.protocol not in ("", protocol):
            continue
        if not query.metric or (query.protocol and query.metric in FROM_COMPARISONS):
            return protocol, next((metric for metric in metrics if metric.headline), metrics[0])
        for metric in metrics:
            if query.metric in (f"{protocol}.{metric.name}", metric.name if query.protocol else ""):
                return protocol, metric
    raise NotThere(f"this run has no metric {query.metric!r}")


def _scored(run: OpenRun, query: SystemQuery, protocol: str, metric: Metric) -> tuple[list[Row], list[str]]:
    name = metric.ratio[0] if metric.ratio else metric.name
    table = run.scores.of_metric(protocol, name, system=query.system)
    below = run.scores.of_metric(protocol, metric.ratio[1], system=query.system) if metric.ratio else None
    if below is not None:
        keys = ["system", "task_id", "sample", "repeat"]
        other = below.drop_columns("reason").rename_columns([*keys, "below"])
        table = table.join(other, keys, join_type="left outer")
    reasons = sorted(reason for reason in pc.unique(table["reason"]).to_pylist() if reason is not None)
    if query.reason == "any":
        table = table.filter(pc.is_valid(table["reason"]))
    elif query.reason:
        table = table.filter(pc.equal(table["reason"], query.reason))
    return table.sort_by("task_id").to_pylist(), reasons


def _report(system: str, protocol: str, row: Row) -> ReportQuery:
    return ReportQuery(
        system=system,
        task=row["task_id"],
        sample=row["sample"],
        repeat=row["repeat"],
        protocol=protocol,
    )
