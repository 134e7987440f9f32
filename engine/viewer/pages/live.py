"""The page of an unfinished run, and the figures that keep it up to date.

All texts are made here: the template draws a view of the run, and the page's script replaces it with later ones.
"""

import asyncio
from collections.abc import Iterator

import msgspec

from adjudge.engine.statistics.selection import explained
from adjudge.engine.tables.cells import number
from adjudge.engine.tables.page import title_of
from adjudge.engine.viewer.data.following import Snapshot, Standing
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ListQuery, SystemQuery, address
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.judges.plural import plural

_FAR = 36_000.0  # seconds: beyond it, hours are precise enough


class LiveCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cell: text, where it leads, and perhaps what is drawn.

    `share` is how much of something is done, 0 to 100; `bar` are the low end, value and high end of an interval, on the
    same scale.
    """

    text: str
    href: str = ""
    share: float | None = None
    bar: tuple[float, float, float] | None = None


class LiveTable(msgspec.Struct, frozen=True):
    """A table of the page, by the `key` of its element. Its rows are named by the text of their first cells."""

    key: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[LiveCell, ...], ...]
    empty: str = ""


class LiveView(msgspec.Struct, frozen=True):
    """All that the page shows: `figures` by their keys, and tables."""

    state: str
    figures: dict[str, str]
    share: float
    tables: tuple[LiveTable, ...]


async def live_page(run: OpenRun, frame: Frame, query: ListQuery) -> str:
    """How far the run is, what has failed, and the provisional standings."""
    assert run.following is not None
    shown = live_view(await asyncio.to_thread(run.following.look))
    board = await asyncio.to_thread(run.following.board)
    title = title_of(board) if board.metrics else ", ".join(run.record.metrics)
    return frame.show("live.html.jinja", title, here="./", view=shown)


def live_view(now: Snapshot) -> LiveView:
    """The figures of a run as they are shown."""
    share = 100 * now.done / now.due if now.due else 0.0
    state = "paused" if now.state == "running" and now.waiting else now.state
    said = {
        "paused": "The judge does not answer. Questions wait, and the run goes on when it is back.",
        "running": "The run is at work. This page follows it by itself.",
    }
    figures = {
        "state": state,
        "said": said.get(state, f"The run has {now.said}."),
        "headline": headline(now),
        "done": f"{now.done:,} of {now.due:,}",
        "share": f"{share:.0f} %",
        "rate": "-" if now.rate is None else _speed(now.rate),
        "left": "-" if now.left_s is None else f"about {_time(now.left_s)}",
        "cost": "-" if now.cost is None else f"{now.cost:,.2f}",
        "cost_left": "-" if now.cost_left is None else f"about {now.cost_left:,.2f}",
        "asked": f"{now.asked:,}",
        "unscored": f"{now.unscored:,}",
    }
    return LiveView(state, figures, round(share, 2), (_progress(now), _failures(now), *_standings(now)))


def headline(now: Snapshot) -> str:
    """The run in one line, for the top of every page."""
    left = "" if now.left_s is None else f", about {_time(now.left_s)} left"
    return f"{now.done:,} of {plural(now.due, 'scorecard')}{left}"


def _speed(rate: float) -> str:
    if rate * 60 < 1:
        return f"{rate * 3600:,.1f} an hour"
    return f"{rate * 60:,.1f} a minute" if rate < 1 else f"{rate:,.1f} a second"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if seconds >= _FAR:
        return f"{hours} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _progress(now: Snapshot) -> LiveTable:
    protocols = tuple(dict.fromkeys(one.protocol for one in now.tallies))
    by_system: dict[str, dict[str, LiveCell]] = {}
    for one in now.tallies:
        share = 100 * one.done / one.due if one.due else None
        text = f"{one.done:,} of {one.due:,}" if one.due else f"{one.done:,}"
        by_system.setdefault(one.system, {})[one.protocol] = LiveCell(text, share=share)
    rows = tuple(
        (_system(name) if name else LiveCell("all systems"), *(cells[protocol] for protocol in protocols))
        for name, cells in by_system.items()
    )
    return LiveTable("progress", "Scorecards", "", ("system", *protocols), rows)


def _failures(now: Snapshot) -> LiveTable:
    rows = tuple(
        (LiveCell(f"{one.protocol}: {explained(one.reason)}"), LiveCell(f"{one.scorecards:,}"))
        for one in now.failures
    )
    empty = "Nothing is missing from what has been scored."
    return LiveTable("failures", "Missing scores by reason", "", ("reason", "scorecards"), rows, empty)


def _standings(now: Snapshot) -> Iterator[LiveTable]:
    """One table for each protocol, with or without standings yet."""
    found = {one.protocol: one for one in now.standings}
    for protocol in dict.fromkeys(one.protocol for one in now.tallies):
        one = found.get(protocol)
        name = f"{protocol} {one.metric}" if one else protocol
        note = f"Over the {one.tasks:,} of {plural(now.tasks, 'task')} done for every system." if one else ""
        yield LiveTable(
            f"standings-{protocol}",
            f"{name}, provisional",
            note,
            ("system", "rank", "score", "95 % interval"),
            tuple(_placed(one)) if one else (),
            "No task is done for every system yet.",
        )


def _placed(one: Standing) -> Iterator[tuple[LiveCell, ...]]:
    ends = [end for row in one.rows for end in (row.low, row.value, row.high) if end is not None]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    width = (high - low) or 1.0
    for row in one.rows:
        interval = LiveCell("-")
        if row.low is not None and row.value is not None and row.high is not None:
            bar = tuple(round(100 * (end - low) / width, 2) for end in (row.low, row.value, row.high))
            interval = LiveCell(f"{number(row.low)} to {number(row.high)}", bar=bar)  # type: ignore[arg-type]
        rank = row.place
        yield _system(row.system), LiveCell(rank), LiveCell(number(row.value)), interval


def _system(name: str) -> LiveCell:
    return LiveCell(name, href=address("system", SystemQuery(system=name)))
