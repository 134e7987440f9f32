"""One task: its prompt, every system's reports, and two of them side by side."""

import asyncio
import math

from adjudge.engine.config.metrics import headlines
from adjudge.engine.tables.standings import about_metric
from adjudge.engine.viewer.data.index import Verdicts
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import NotThere, ReportQuery, TaskQuery, address
from adjudge.engine.viewer.pages.frame import Column, Ends, Frame, Listing, Row, natural, writer
from adjudge.scoring.contract.scorecard import Metric

_LONG = 1_200


async def task_page(run: OpenRun, frame: Frame, query: TaskQuery) -> str:
    """One task: its prompt, and every system's scores for it, the best first."""
    task = run.record.tasks.get(query.task)
    if task is None:
        raise NotThere(f"this run has no task {query.task!r}")
    protocol = query.protocol or next(iter(run.record.metrics))
    metrics = [metric for metric in run.metrics(protocol) if metric.ratio is None and metric.shown]
    found = await asyncio.to_thread(_reports_for, run, query.task, protocol, metrics)
    await _add_verdicts(run, query.task, protocol, found)
    prompt = (await run.prompts()).get(query.task, "The run's tasks file is not where it was.")
    several = [name for name in ("sample", "repeat") if any(row[name] for row in found)]
    kinds, reasons = Verdicts.kinds(row["verdicts"] for row in found), any(row["reason"] for row in found)
    columns = [
        Column("system", "system"),
        *(Column(name, name, number=True, low_first=True) for name in several),
        *(
            Column(
                one.name, f"m.{one.name}", number=True, low_first=one.lower_is_better, tip=about_metric(one)
            )
            for one in metrics
        ),
        *(
            [Column("verdicts", tip="How many of all are supported, matched, or have full points.")]
            if kinds
            else []
        ),
        *([Column("reason")] if reasons else []),
    ]
    listing = Listing.of(
        columns, found, "task", query, at_once=frame.rows, noun="report",
        words=lambda row: str(row["system"]),
    )  # fmt: skip
    return frame.show(
        "task.html.jinja",
        f"Task {query.task}",
        crumbs=[("Tasks", address("tasks"))],
        here="tasks",
        query=query,
        task=task,
        prompt=prompt,
        long=len(prompt) > _LONG,
        protocol=protocol,
        protocols=[(name, name) for name in run.record.metrics],
        several=several,
        listing=listing,
        kinds=kinds,
        reasons=reasons,
    )


def _reports_for(run: OpenRun, task: str, protocol: str, metrics: list[Metric]) -> list[Row]:
    """A row per report, the best by the first metric that ranks first."""
    columns = ["system", "sample", "repeat", "metric", "value", "reason"]
    found: dict[tuple[str, int, int], Row] = {}
    for row in run.scores.select(columns, task_id=task, protocol=protocol).to_pylist():
        identity = row["system"], row["sample"], row["repeat"]
        report = found.setdefault(identity, {"reason": None, "verdicts": None})
        report[f"m.{row['metric']}"] = row["value"]
        if row["value"] is None:
            report["reason"] = row["reason"]
    ranked = headlines(metrics)
    values = {one.name: [row.get(f"m.{one.name}") for row in found.values()] for one in metrics}
    ends = {one.name: Ends.of(one, values[one.name]) for one in metrics}
    written = {one.name: writer(one, values[one.name]) for one in metrics}
    for (system, sample, repeat), row in found.items():
        query = ReportQuery(system=system, task=task, sample=sample, repeat=repeat, protocol=protocol)
        row.update(
            system=system, sample=sample, repeat=repeat, to=address("report", query), name=_name(query),
            cells=[
                (value, written[one.name](value), ends[one.name].bar(value) if one in ranked else None)
                for one in metrics
                for value in [row.setdefault(f"m.{one.name}")]
            ],
        )  # fmt: skip
    head = next(iter(ranked), None)
    return sorted(found.values(), key=lambda row: (_rank(row, head), natural(row["system"]), row["sample"]))


def _rank(row: Row, head: Metric | None) -> float:
    value = None if head is None else row[f"m.{head.name}"]
    if head is None or value is None:
        return math.inf
    return float(value) if head.lower_is_better else -float(value)


def _name(query: ReportQuery) -> str:
    """A report's name among those of its task."""
    several = [
        f"{name} {count}" for name, count in (("sample", query.sample), ("repeat", query.repeat)) if count
    ]
    return ", ".join([query.system, *several])


async def _add_verdicts(run: OpenRun, task: str, protocol: str, rows: list[Row]) -> None:
    index = await run.cards()
    found = await asyncio.to_thread(index.verdicts_of_task, task)
    for row in rows:
        verdicts = found.get((protocol, row["system"], task, row["sample"], row["repeat"]))
        row["verdicts"] = verdicts if verdicts is not None and verdicts.total else None
