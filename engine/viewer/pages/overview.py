"""The pages above a report: the run and its systems, its tasks, one system, one task."""

import asyncio

import pyarrow.compute as pc

from adjudge.engine.leaderboard.board import Leaderboard, MetricBoard, Standing
from adjudge.engine.records.provenance import Provenance
from adjudge.engine.rendering.markup import Markup, tag
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ListQuery, NotThere, ReportQuery, SystemQuery, TaskQuery, address
from adjudge.engine.viewer.data.score_rows import pooled
from adjudge.engine.viewer.pages.frame import (
    ROWS,
    Column,
    Frame,
    Row,
    choice,
    facts,
    listing,
    number,
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
            for name in dict.fromkeys(metric.protocol for metric in board.metrics)
            for part in _standings(board, name, set(run.record.systems), query)
        ]
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
        ("Judge", f"{source.judge}, fingerprint {source.fingerprint}"),
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


def _standings(board: Leaderboard, protocol: str, known: set[str], query: ListQuery) -> list[Markup]:
    metrics = [metric for metric in board.metrics if metric.protocol == protocol]
    head = next((metric for metric in metrics if metric.headline), metrics[0])
    shown = [head, *(metric for metric in metrics if metric.shown and metric is not head)]
    by_metric = {metric.metric: {row.system: row for row in metric.standings} for metric in shown}
    rows = [
        [
            _system_link(row.system, protocol, head.metric, known),
            "-" if row.rank is None else f"{row.rank:g}",
            *(_figure(metric, by_metric[metric.metric].get(row.system), known) for metric in shown),
            f"{row.n_scored:,}/{row.n_total:,}",
            _reasons(row, protocol, head.metric, known),
        ]
        for row in head.standings
        if query.filter.lower() in row.system.lower()
    ]
    columns = [
        Column("system"),
        Column("rank", number=True),
        *(Column(metric.metric, number=True) for metric in shown),
        Column("scored", number=True),
        Column("unscored"),
    ]
    return [tag("h2", protocol), listing(f"Systems by {protocol}", columns, rows)]


def _system_link(system: str, protocol: str, metric: str, known: set[str]) -> str:
    if system not in known:
        return system
    query = SystemQuery(system=system, protocol=protocol, metric=metric)
    return tag("a", system, href=address("system", query))


def _figure(metric: MetricBoard, row: Standing | None, known: set[str]) -> str:
    if row is None or row.value is None or row.system not in known:
        return number(None if row is None else row.value, metric.scale)
    query = SystemQuery(system=row.system, protocol=metric.protocol, metric=metric.metric)
    return tag("a", number(row.value, metric.scale), href=address("system", query))


def _reasons(row: Standing, protocol: str, metric: str, known: set[str]) -> str:
    said = ", ".join(f"{count:,} {reason}" for reason, count in row.unscored.items())
    if not said or row.system not in known:
        return said or "-"
    query = SystemQuery(system=row.system, protocol=protocol, metric=metric, reason="any")
    return tag("a", said, href=address("system", query))


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
    """One system's reports by one metric, whose mean is what the leaderboard says."""
    if query.system not in run.record.systems:
        raise NotThere(f"this run has no system {query.system!r}")
    protocol, metric = _metric(run, query)
    rows, value, tasks, reasons = await asyncio.to_thread(_scored, run, query, protocol, metric)
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
    how = f"the sum of {metric.ratio[0]} over the sum of {below}" if metric.ratio else "mean"
    return frame.page(
        query.system,
        tag(
            "p",
            f"{chosen}: ",
            tag("strong", number(value, metric.scale), id="value"),
            f", {how} over {tasks:,} scored tasks, as the leaderboard has it.",
        ),
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


_REASONS = [("", "all"), ("any", "those with a reason")]


def _metric(run: OpenRun, query: SystemQuery) -> tuple[str, Metric]:
    """The metric that is asked for, as a protocol's or as PROTOCOL.METRIC; without one the first headline."""
    for protocol, metrics in run.record.metrics.items():
        if query.protocol not in ("", protocol):
            continue
        if not query.metric:
            return protocol, next((metric for metric in metrics if metric.headline), metrics[0])
        for metric in metrics:
            if query.metric in (f"{protocol}.{metric.name}", metric.name if query.protocol else ""):
                return protocol, metric
    raise NotThere(f"this run has no metric {query.metric!r}")


def _scored(
    run: OpenRun, query: SystemQuery, protocol: str, metric: Metric
) -> tuple[list[Row], float | None, int, list[str]]:
    name = metric.ratio[0] if metric.ratio else metric.name
    table = run.scores.of_metric(protocol, name, system=query.system)
    below = run.scores.of_metric(protocol, metric.ratio[1], system=query.system) if metric.ratio else None
    value, tasks = pooled(table, below)
    if below is not None:
        keys = ["system", "task_id", "sample", "repeat"]
        other = below.drop_columns("reason").rename_columns([*keys, "below"])
        table = table.join(other, keys, join_type="left outer")
    reasons = sorted(reason for reason in pc.unique(table["reason"]).to_pylist() if reason is not None)
    if query.reason == "any":
        table = table.filter(pc.is_valid(table["reason"]))
    elif query.reason:
        table = table.filter(pc.equal(table["reason"], query.reason))
    return table.sort_by("task_id").to_pylist(), value, tasks, reasons


def _report(system: str, protocol: str, row: Row) -> ReportQuery:
    return ReportQuery(
        system=system,
        task=row["task_id"],
        sample=row["sample"],
        repeat=row["repeat"],
        protocol=protocol,
    )
