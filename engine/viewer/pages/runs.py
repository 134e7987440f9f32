"""The runs below a folder: their list, and what each system reached in them, one run after the other."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from adjudge.engine.runs.listed import Headline, ListedRun
from adjudge.engine.tables.cells import leaders, number
from adjudge.engine.viewer.data.query import ListQuery
from adjudge.engine.viewer.pages.frame import Column, Ends, Frame, Listing, Row, natural

_STEPS = 60  # the last runs that a course shows

_Value = tuple[
    int, str, ListedRun, Headline
]  # the place of a run among those shown, its name, and what it says


class Step(msgspec.Struct, frozen=True):
    """A run in the course of a system: where its value and its interval are drawn, in percent, and what it says.

    `before` is where the system's last run under the same judge is drawn: only these are joined by a line.
    """

    x: float
    y: float
    top: float
    height: float
    to: str
    words: str
    before: tuple[float, float] | None


class Course(msgspec.Struct, frozen=True):
    """A system under one metric, in the order of the runs."""

    system: str
    first: str
    last: str
    change: str
    steps: tuple[Step, ...]


class Courses(msgspec.Struct, frozen=True):
    """The systems of two runs or more under one metric, drawn between the same ends; `single` have but one run."""

    metric: str
    low: str
    high: str
    systems: tuple[Course, ...]
    single: int


def runs_page(folder: str, found: Mapping[str, ListedRun], query: ListQuery) -> str:
    """The list of runs, by their names in addresses, and the courses of their systems."""
    frame = Frame("", "", shelf="./")
    priced = any(one.cost is not None for one in found.values())
    columns = [
        Column("run", "folder"),
        Column("date", "started", number=True),
        Column("judge", "judge"),
        Column("commit", "commit"),
        Column("best systems", tip="The best system by each metric that ranks."),
        Column("systems", "systems", number=True),
        Column("tasks", "tasks", number=True),
        *([Column("cost", "cost", number=True)] if priced else []),
        Column("state", "state"),
    ]
    rows = [_row(folder, name, one) for name, one in found.items()]
    listing = Listing.of(
        columns, rows, "./", query, at_once=frame.rows, noun="run", words=lambda row: " ".join(
            str(row[key]) for key in ("folder", "judge", "commit", "protocols", "state")
        ),
    )  # fmt: skip
    choices = [(row["name"], f"{row['date']}, {row['folder']}") for row in rows if row["to"]]
    return frame.show(
        "runs.html.jinja",
        f"Runs in {folder}",
        here="./",
        listing=listing,
        priced=priced,
        choices=choices,
        courses=list(_courses(found)),
    )


def _row(folder: str, name: str, one: ListedRun) -> Row:
    return {
        "name": name,
        "folder": one.folder.removeprefix(folder).lstrip("/") or one.folder,
        "to": "" if one.state == "unreadable" else f"runs/{name}/",
        "started": one.started,
        "date": _date(one),
        "judge": one.judge,
        "commit": one.commit,
        "protocols": ", ".join(one.protocols),
        "best": leaders(one),
        "systems": one.systems,
        "tasks": one.tasks,
        "cost": one.cost,
        "cost_text": number(one.cost),
        "state": one.state,
        "why": one.why,
    }


def _date(one: ListedRun) -> str:
    return "-" if one.started is None else f"{datetime.fromtimestamp(one.started, UTC):%Y-%m-%d %H:%M}"


def _courses(found: Mapping[str, ListedRun]) -> Iterator[Courses]:
    """What systems reached by each metric that ranks them in two runs or more."""
    dated = [(name, one) for name, one in reversed(list(found.items())) if one.headlines][-_STEPS:]
    for metric in dict.fromkeys(each.full for _, one in dated for each in one.headlines):
        by_system: dict[str, list[_Value]] = {}
        for place, (name, one) in enumerate(dated):
            for each in one.headlines:
                if each.full == metric and each.value is not None:
                    by_system.setdefault(each.system, []).append((place, name, one, each))
        again = {
            system: by_system[system]
            for system in sorted(by_system, key=natural)
            if len(by_system[system]) > 1
        }
        values = [each for found in again.values() for *_, each in found]
        if not values:
            continue
        ends, ticks = Ends.around(
            [end for each in values for end in (each.value, each.low, each.high) if end is not None]
        )
        decimals = values[0].decimals
        yield Courses(
            metric,
            number(ticks[0], 1.0, decimals),
            number(ticks[-1], 1.0, decimals),
            tuple(_course(system, found, ends, len(dated)) for system, found in again.items()),
            len(by_system) - len(again),
        )


def _course(system: str, values: list[_Value], ends: Ends, runs: int) -> Course:
    (*_, first), (*_, last) = values[0], values[-1]
    apart = round((last.value or 0.0) - (first.value or 0.0), last.decimals) + 0.0  # no sign before 0
    steps: list[Step] = []
    places: dict[str, tuple[float, float]] = {}
    for place, name, one, each in values:
        steps.append(_step(place, name, one, each, ends, runs, places.get(one.judge)))
        places[one.judge] = (steps[-1].x, steps[-1].y)
    return Course(
        system,
        number(first.value, 1.0, first.decimals),
        number(last.value, 1.0, last.decimals),
        f"{'+' * (apart > 0)}{number(apart, 1.0, last.decimals)}",
        tuple(steps),
    )


def _step(
    place: int,
    name: str,
    one: ListedRun,
    each: Headline,
    ends: Ends,
    runs: int,
    before: tuple[float, float] | None,
) -> Step:
    value = each.value or 0.0
    low = ends.at(value if each.low is None else each.low)
    high = ends.at(value if each.high is None else each.high)
    said = number(value, 1.0, each.decimals)
    if each.low is not None and each.high is not None:
        said += f" [{number(each.low, 1.0, each.decimals)}, {number(each.high, 1.0, each.decimals)}]"
    return Step(
        x=round(4 + 92 * place / max(runs - 1, 1), 2),
        y=round(100 - ends.at(value), 2),
        top=round(100 - high, 2),
        height=round(max(high - low, 0.5), 2),
        to=f"runs/{name}/",
        words=f"{_date(one)}: {said}, judged by {one.judge}",
        before=before,
    )
